"""Notifications of people by e-mail and webhook."""
