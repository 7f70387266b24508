"""Everything that runs: composition, supervisor, workers, periodic tasks, metrics, limits."""
