"""Ratings by people: agreement of judges with them, and spot checks."""
