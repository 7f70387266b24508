"""The running processes: composition, supervisor, workers, periodic tasks, metrics, limits."""
