"""The whole service on virtual time, its tasks taken in an order drawn by a seed, its failures too."""
