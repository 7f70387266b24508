"""Whose batch goes first, why, and what accounts and submitters may have: shown, emulated and changed."""
