"""Load generator: simulated volunteers that use the client's protocol over HTTP and run the real application."""
