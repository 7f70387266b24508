"""The BOINC client protocol: bytes to messages and back. Pure."""
