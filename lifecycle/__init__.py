"""What may happen to an instance and a job. Pure."""
