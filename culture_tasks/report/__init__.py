"""One table over the result and sample files of both harnesses, with intervals, tests and what can't be compared."""
