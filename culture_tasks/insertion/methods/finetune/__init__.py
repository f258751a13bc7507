"""FineTune: some steps on the insertion sample's answer, the simplest baseline of CrossCult-KIBench's paper."""

LABEL = "FineTune"
ROW = 2
