"""``culture-tasks preferences``: from rated responses to data that a model is trained on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from culture_tasks.settings import Settings


def register(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser("preferences", help="pairs of rated responses to train on with TRL")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    made = actions.add_parser("build", help="write a folder to train on: data, recipes and a manifest")
    made.add_argument("sources", nargs="+", metavar="SOURCE", help="rated rows: a file, or geyang627/CARE on the Hub")
    made.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write")
    made.add_argument(
        "--dev", type=float, default=0.1, metavar="P", help="share for development (default: %(default)s)"
    )
    made.add_argument("--seed", type=int, default=0, help="seed of every draw (default: %(default)s)")
    made.add_argument("--plain", action="store_true", help="write texts rather than messages")
    made.set_defaults(handler=_build)


def _build(options: argparse.Namespace) -> int:
    from culture_tasks.data.tables import extra_columns
    from culture_tasks.preferences.build import build
    from culture_tasks.preferences.manifest import Rule
    from culture_tasks.preferences.rated_answers import read_rated

    settings = Settings.from_environment()
    with extra_columns(settings.extra_columns):
        rated = read_rated(options.sources, settings.data_folder)
    manifest = build(rated, Rule(dev=options.dev, plain=options.plain), options.seed, options.output)
    print(f"{manifest.counts['train_pairs']} pairs to train on, {manifest.counts['dev_pairs']} for development")
    return 0
