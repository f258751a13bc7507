"""Whether a set-up is right: what reaches a model, and how a judge grades."""
