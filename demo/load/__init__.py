"""Load generator: simulated volunteers that speak the client's protocol over HTTP and run the real application."""
