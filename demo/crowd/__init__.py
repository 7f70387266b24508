"""A crowd of volunteers over real HTTP: they speak the client's protocol and run the real application."""
