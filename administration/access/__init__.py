"""Who asks, and may they? Signing in, sessions, tokens of the API, and what people did."""
