"""Services for batches and their jobs: submission, validation, timeouts, ordering."""
