"""Whether a set-up is right: what reaches a model, how a judge grades, and scores that can be recomputed."""
