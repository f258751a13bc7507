"""The numbers of a report: scores, intervals, tests, ranks."""
