"""GRACE: a codebook of learned outputs, looked up by a layer's input (Hartvigsen et al., 2023)."""

LABEL = "GRACE"
