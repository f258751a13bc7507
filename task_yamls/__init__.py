"""Task definitions of both harnesses, as data."""
