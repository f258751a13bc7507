"""MEND: edits by transformed gradients (Mitchell et al., 2022), as CrossCult-KIBench's paper uses it."""

LABEL = "MEND"
ROW = 4
