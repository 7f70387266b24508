"""Thresholds that operators change at run time: look, preview what a change would do, change with a reason."""
