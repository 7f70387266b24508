"""Compares waits under the ordering policies on workload logs of real clusters."""
