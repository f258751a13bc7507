"""Our tasks on lm-eval: the hooks that task files name, the task class, and what its results lack."""
