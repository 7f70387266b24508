"""The console: server-rendered pages for operators and submitters, with live updates where JavaScript runs."""
