"""The real services in virtual time, with simulated volunteers and submitters."""
