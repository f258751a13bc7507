"""Metrics: pure functions of numbers and texts."""
