"""The console: server-rendered pages for operators and submitters. They update live if JavaScript is enabled."""
