"""What keeps a stranger from having all of a worker."""
