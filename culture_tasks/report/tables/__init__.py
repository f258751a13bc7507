"""The tables of a report: overviews over all benchmarks, each benchmark's own, and what papers print."""
