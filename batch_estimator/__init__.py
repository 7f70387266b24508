"""Forecasts when a batch completes, with the uncertainty and the reasons for delay."""
