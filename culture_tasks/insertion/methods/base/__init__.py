"""The plain model: every method is compared with it."""

LABEL = "Base Model"
ROW = 1
