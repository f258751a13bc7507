"""Judging in an endpoint's batches."""
