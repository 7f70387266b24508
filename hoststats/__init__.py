"""Ranks every (host, app version) by speed and reliability, and publishes the cut points used by requests."""
