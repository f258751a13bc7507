"""SERAC, semi-parametric editing with a retrieval-augmented counterfactual model (Mitchell et al., 2022)."""

LABEL = "SERAC"
ROW = 5
