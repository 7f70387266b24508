"""What does each way of cheating gain? Hostile clients against the real services, in virtual time."""
