"""Figures of a report: PNG and SVG files, and the values and words behind each for those who don't see it."""
