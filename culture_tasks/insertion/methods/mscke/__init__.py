"""MSCKE, the multimodal scope classifier-based knowledge editor (Zeng et al., 2025), as the paper adapts it."""

LABEL = "MSCKE"
ROW = 6
