"""``culture-tasks merge``: put the shards of a run together."""

from __future__ import annotations

import argparse
from pathlib import Path

from culture_tasks.cli.options import AddParser, add_json, print_json, writing
from culture_tasks.costs.prices import read_prices
from culture_tasks.harness.session import Session, hold_session
from culture_tasks.results.merging import merge
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text, plain

_DESCRIPTION = """\
Puts the results of all shards of a run (CULTURE_SHARD=1/16 to 16/16) into one result file with its sample files, which
every other command reads as an ordinary run. Values, groups and standard errors are worked out from all samples, and
are those of a run without shards. Fails if a shard or a document is missing, is there twice, or was run under other
settings. The shards' files stay as they are.
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION, epilog="example: culture-tasks merge results/* -o results/merged")
    results = "the shards' result files, folders with them, or patterns"
    parser.add_argument("results", nargs="+", type=Path, help=results)
    output = "folder to write; result files in it aren't read"
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="DIR", help=output)
    add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    hold_session(Session(settings))
    with writing("merge", options.output):
        result = merge(options.results, options.output, settings, read_prices(settings.prices_file))
    if options.json:
        parts = {"shards": result.shards, "tasks": result.tasks, "left_out": result.left_out}
        print_json({"result_file": result.run.result_file, **parts})
        return 0
    print(as_text(("task", "documents"), [(plain(task), str(count)) for task, count in result.tasks.items()]))
    print(plain(f"{result.run.result_file}: {result.shards} result files put together"))
    if result.left_out:
        print(plain(f"Not included, since every shard ran them whole: {', '.join(result.left_out)}"))
    return 0
