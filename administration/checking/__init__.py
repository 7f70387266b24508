"""Checks a whole project, database and upload directory, independently of the code that writes them."""
