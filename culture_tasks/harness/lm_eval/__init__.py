"""Our tasks on lm-eval: the hooks that task files name, and the task class, which completes lm-eval's results."""
