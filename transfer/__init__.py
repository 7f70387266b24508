"""Files: downloads, uploads, signing."""
