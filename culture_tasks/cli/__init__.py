"""The command ``culture-tasks``: one module a subcommand."""
