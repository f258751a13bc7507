"""The tables of a report: overviews over all benchmarks, each benchmark's tables, and papers' tables."""
