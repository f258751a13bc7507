"""``culture-tasks lm-eval …``: lm-eval's own command, with our tasks added.

lm-eval has no entry points for tasks and takes one ``--include_path``, which may be the user's. So this command hands
our folder to lm-eval's task manager beside whatever folder it is given, and passes the arguments on as they are.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from typing import Any

from culture_tasks.catalog import task_folder


def register(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds the subcommand, which passes everything on."""
    parser = subparsers.add_parser(
        "lm-eval",
        help="run lm_eval with our tasks added",
        description="Passes everything on to lm_eval: culture-tasks lm-eval run --model hf …",
        add_help=False,
        prefix_chars="\0",  # nothing looks like an option, so all of it is passed on
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.tasks import TaskManager

    if not hasattr(TaskManager.__init__, "__wrapped__"):
        TaskManager.__init__ = _with_our_folder(TaskManager.__init__)
    sys.argv = ["lm_eval", *options.arguments]
    cli_evaluate()
    return 0


def _with_our_folder(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def initialize(self: Any, *args: Any, include_path: Any = None, **kwargs: Any) -> None:
        given = include_path if isinstance(include_path, (list, tuple)) else [include_path] if include_path else []
        original(self, *args, include_path=[*given, str(task_folder("lm_eval"))], **kwargs)

    return initialize
