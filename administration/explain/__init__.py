"""Explains scheduling decisions: why a host gets no work, why a batch waits, how a due date was set."""
