"""The plain model: what every method is compared with."""

LABEL = "Base Model"
