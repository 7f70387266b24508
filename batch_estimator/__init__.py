"""Forecasts when batches complete, with uncertainty and the causes of delay."""
