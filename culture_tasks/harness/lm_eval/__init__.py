"""Our tasks on lm-eval: the task class, which also writes their results."""
