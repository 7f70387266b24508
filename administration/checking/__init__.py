"""Checks a whole project: database and upload folder, independently of the code that writes them."""
