"""Encodes and decodes the BOINC client protocol. Pure."""
