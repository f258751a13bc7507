"""The store of verdicts."""
