"""Services around the life cycle: submission, validation, timeouts, ordering."""
