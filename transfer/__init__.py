"""File transfer: downloads, uploads, signing."""
