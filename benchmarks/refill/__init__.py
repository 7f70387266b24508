"""Measures a refill of the job array with backlogs of different sizes."""
