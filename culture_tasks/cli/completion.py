"""``culture-tasks completion``: a script by which a shell completes commands, options, tasks and files."""

from __future__ import annotations

import argparse
from pathlib import Path

from culture_tasks.cli.options import AddParser

_DESCRIPTION = """\
Prints a script for a shell, to be kept where the shell looks for it:

  culture-tasks completion bash > ~/.local/share/bash-completion/completions/culture-tasks
  culture-tasks completion zsh > ~/.zfunc/_culture-tasks      # with fpath+=(~/.zfunc) before compinit in ~/.zshrc
  culture-tasks completion fish > ~/.config/fish/completions/culture-tasks.fish

Write it again after an update.
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that is to read the script")
    parser.set_defaults(handler=_print_script)


def _print_script(options: argparse.Namespace) -> int:
    import shtab

    from culture_tasks.benchmarks.registry import benchmarks, entries
    from culture_tasks.cli.main import all_commands, build_parser

    parser = build_parser()
    names = {"tasks": sorted(entries()), "benchmarks": sorted(benchmarks())}
    for _, summary, inner in all_commands(parser):
        inner.description = summary or inner.description  # shtab shows the first line of it beside a command
        for action in inner._actions:
            if action.dest in names:
                action.choices = names[action.dest]
                continue
            # Reports and others take paths as text, since they may be patterns.
            is_text = action.type is None and action.choices is None and action.nargs != 0
            is_shown = action.metavar in ("FILE", "DIR", "PATH", "RESULTS") or not action.option_strings
            if action.type is Path or (is_text and is_shown):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
    return 0
