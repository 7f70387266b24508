"""Answers scheduler requests: chooses jobs for hosts and sets their due dates."""
