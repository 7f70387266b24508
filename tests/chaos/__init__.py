"""Breaks a real deployment under load at random, again and again, and checks that all acknowledged work exists.

    python -m tests.chaos --schedules 20 --seed 1

Schedule number i of seed S is schedule 0 of seed S + i: each can be repeated alone.
"""
