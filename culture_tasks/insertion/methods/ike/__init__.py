"""IKE, in-context knowledge editing (Zheng et al., 2023), as the paper adapts it (section 5.1, Table 5)."""

LABEL = "IKE"
ROW = 3
