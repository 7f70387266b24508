"""The ordering of batches: a background duty."""
