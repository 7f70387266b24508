"""Forecasts of batch completion as JSON and text."""
