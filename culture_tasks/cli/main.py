"""Entry point of the command ``culture-tasks``."""

from __future__ import annotations

import argparse
import io
import logging
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from culture_tasks import __version__
from culture_tasks.cli.options import INTERRUPTED, Parser
from culture_tasks.errors import CultureTasksError
from culture_tasks.text_tables import printable

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "doctor": ("doctor:register", "look at packages, harnesses, judge and data, and say what to do"),
    "selftest": ("selftest:register", "check that images reach the model, and that the judge grades as it should"),
    "tasks": ("tasks:register", "list the tasks, and where their data are now"),
    "include-path": ("tasks:register_include_path", "print the folder to give to a harness's --include_path"),
    "data": ("data:register", "check a benchmark's data, and list what benchmarks share"),
    "culture": ("culture:register", "check the folder of an own culture, and tell how well its people agree"),
    "lm-eval": ("lm_eval:register", "run lm_eval with our tasks added"),
    "cost": ("cost:register", "estimate what a judge will cost, before it is asked"),
    "rejudge": ("rejudge:register", "grade the logged samples of finished runs again"),
    "report": ("report:register", "write tables over all models and benchmarks"),
    "compare": ("compare:register", "compare the runs of two models, also as a check in CI"),
    "agreement": ("agreement:register", "compare a judge with people"),
    "spotcheck": ("spotcheck:register", "have people check the judge, and correct its score"),
    "cache": ("cache:register", "show what the verdict cache holds, clear it, or merge several"),
    "insertion": ("insertion:register", "fit a method of knowledge insertion, and list the methods"),
    "preferences": ("preferences:register", "make pairs of rated responses, to train on with TRL"),
}
"""Of each command: the function that makes its parser and sets the ``handler``, and its help."""


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of the whole command, with the options of one command, or with None those of all.

    The modules of other commands aren't imported.
    """
    parser = Parser(prog="culture-tasks", description="Cultural benchmarks for lm-eval and lmms-eval.")
    parser.add_argument("--version", action="version", version=f"culture-tasks {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (register, summary) in _COMMANDS.items():
        add_parser = partial(commands.add_parser, name, help=summary)
        if command is None or command == name:
            pkgutil.resolve_name(f"culture_tasks.cli.{register}")(add_parser)
        else:
            add_parser()
    return parser


def all_commands(
    parser: argparse.ArgumentParser, name: str = "culture-tasks", summary: str = ""
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yields a command and its subcommands at any depth: the words that call each, its help, and its parser."""
    yield name, summary, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for word, inner in action.choices.items():
                yield from all_commands(inner, f"{name} {word}", summaries.get(word, ""))


class _PrintableFormatter(logging.Formatter):
    """Messages in which the name of a file can't act on the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command on arguments, or on the process's own, and returns its exit status.

    It is 0 for success, 1 for an error that was explained on standard error (2 where 1 means something else, as for
    ``compare``), 130 after Ctrl-C.
    """
    words = sys.argv[1:] if arguments is None else arguments
    options = argparse.Namespace()
    log = logging.StreamHandler()
    log.setFormatter(_PrintableFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[log])
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not a traceback
    try:
        parser = build_parser(next((word for word in words if not word.startswith("-")), ""))
        options = parser.parse_args(words)
        if options.verbose:
            logging.getLogger().setLevel(logging.INFO)
        status = int(options.handler(options))
        sys.stdout.flush()
    except CultureTasksError as error:
        print(f"culture-tasks: error: {printable(str(error))}", file=sys.stderr)
        return int(getattr(options, "error_status", 1))
    except KeyboardInterrupt:
        print("culture-tasks: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has gone; Python would flush once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(getattr(options, "reader_gone_status", 0))
    return status


if __name__ == "__main__":
    sys.exit(main())
