"""Hooks that lmms-eval's task files name, and the plug-in that makes the tasks known."""
