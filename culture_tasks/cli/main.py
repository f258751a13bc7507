"""Entry point of the command ``culture-tasks``."""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import sys
from collections.abc import Sequence

from culture_tasks import __version__
from culture_tasks.errors import CultureTasksError
from culture_tasks.text_tables import printable

_COMMANDS = (
    "doctor",
    "tasks",
    "data",
    "lm_eval",
    "cost",
    "rejudge",
    "report",
    "compare",
    "agreement",
    "spotcheck",
    "cache",
    "insertion",
    "preferences",
)
"""Modules of this package; the ``register`` of each adds subcommands and sets ``handler`` on their parsers."""


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command."""
    parser = argparse.ArgumentParser(prog="culture-tasks", description="Cultural benchmarks for lm-eval and lmms-eval.")
    parser.add_argument("--version", action="version", version=f"culture-tasks {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in _COMMANDS:
        importlib.import_module(f"culture_tasks.cli.{name}").register(commands)
    return parser


class _PrintableFormatter(logging.Formatter):
    """Messages in which the name of a file can't act on the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: Command line without the program's name; None means the process's own.

    Returns:
        Exit status: 0 for success, 1 for an error that was explained on standard error (2 where 1 means something else,
        as for ``compare``).
    """
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and not getattr(options, "passes_on", False):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    log = logging.StreamHandler()
    log.setFormatter(_PrintableFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING, handlers=[log])
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not a traceback
    try:
        status = int(options.handler(options))
        sys.stdout.flush()
    except CultureTasksError as error:
        print(f"culture-tasks: error: {printable(str(error))}", file=sys.stderr)
        return int(getattr(options, "error_status", 1))
    except BrokenPipeError:  # the reader, such as `head`, has gone; Python would flush once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(getattr(options, "reader_gone_status", 0))
    return status


if __name__ == "__main__":
    sys.exit(main())
