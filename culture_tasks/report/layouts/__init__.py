"""Finished tables: over all benchmarks, and in the layouts of the papers."""
