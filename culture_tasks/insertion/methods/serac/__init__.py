"""SERAC, semi-parametric editing with a retrieval-augmented counterfactual model (Mitchell et al., 2022)."""

from culture_tasks.insertion.methods.serac.method import SeracMethod

METHOD = SeracMethod
