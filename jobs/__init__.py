"""Services around the life-cycle: submission, validation, time-outs."""
