"""Thresholds that operators change at run time: show, preview, replay and set them."""
