"""What volunteers and their clients see besides work: the master page and the attach flow."""
