"""Insertion methods, one folder each, with the same file names (see :mod:`culture_tasks.insertion.method_registry`)."""
