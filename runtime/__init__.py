"""Running processes: composition, supervisor, workers, periodic tasks, metrics, limits."""
