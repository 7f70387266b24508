"""Which batch goes first. Pure."""
