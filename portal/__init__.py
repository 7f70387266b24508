"""What volunteers and their clients see besides work: the front page, the attach flow, and volunteers' own pages."""
