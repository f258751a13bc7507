"""Memory-Conditioned Knowledge Insertion, the method of CrossCult-KIBench's paper (section 4, Appendix D)."""

LABEL = "MCKI"
ROW = 7
