"""Insertion methods, one folder each, with the same file names in each (see :mod:`culture_tasks.insertion.registry`)."""
