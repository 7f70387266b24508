"""What keeps a stranger from having all of a worker: limits of requests, of connections and of bodies."""
