"""WISE: a second copy of one weight holds what is inserted, and a router chooses between both (Wang et al., 2024)."""

LABEL = "WISE"
