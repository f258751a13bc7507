"""Our tasks on lmms-eval: the task class, and the plug-in that makes the tasks known."""
