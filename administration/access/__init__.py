"""Authentication and authorization: signing in, sessions, API tokens, and the audit trail."""
