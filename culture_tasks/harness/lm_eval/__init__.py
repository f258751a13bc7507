"""Hooks that lm-eval's task files name."""
