"""A real deployment under load, broken again and again at random; whatever was told and acknowledged must be there.

    python -m tests.chaos --schedules 20 --seed 1

Schedule number i of seed S is schedule 0 of seed S + i: every one can be repeated alone.
"""
