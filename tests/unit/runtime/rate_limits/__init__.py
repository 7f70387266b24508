"""Tests of the limits that protect a worker."""
