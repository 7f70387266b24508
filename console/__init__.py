"""The console: pages for operators and submitters, made on the server, live where there is JavaScript."""
