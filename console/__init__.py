"""The console: server-rendered pages for operators and submitters, with live updates if JavaScript is enabled."""
