"""``culture-tasks data``: check a benchmark's data, or make a draw of its cases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from culture_tasks.benchmarks.crosscult.draw import FILE_NAME, CrossLanguage, DrawOptions, LocalityPool, SplitBy
from culture_tasks.data.tables import extra_columns
from culture_tasks.data_checks import CHECKS
from culture_tasks.settings import Settings


def register(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds the subcommands."""
    parser = subparsers.add_parser("data", help="check a benchmark's data, or draw its cases")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _register_check(actions)
    _register_draw(actions)


def _register_check(actions: argparse._SubParsersAction[Any]) -> None:
    parser = actions.add_parser(
        "check",
        help="report what is in the data and what is wrong with them",
        description="Reads all data of a benchmark and compares them with its paper. Exit status 1: tasks can't run.",
    )
    parser.add_argument("benchmark", choices=sorted(CHECKS))
    _add_folder(parser)
    parser.set_defaults(handler=_check)


def _register_draw(actions: argparse._SubParsersAction[Any]) -> None:
    parser = actions.add_parser(
        "draw",
        help="split and pair the cases of CrossCult-KIBench",
        description=f"Writes the scenario split and the pairing of cases. As {FILE_NAME} in the data folder they go "
        "before the default ones.",
    )
    defaults = DrawOptions()
    parser.add_argument("benchmark", choices=["crosscult"])
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--split-by", choices=get_args(SplitBy), default=defaults.split_by)
    parser.add_argument("--cross-language", choices=get_args(CrossLanguage), default=defaults.cross_language)
    parser.add_argument("--locality-pool", choices=get_args(LocalityPool), default=defaults.locality_pool)
    _add_folder(parser)
    parser.set_defaults(handler=_draw)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="the data folder (default: CULTURE_TASKS_DATA, else the Hub)")


def _folder(options: argparse.Namespace) -> Path | None:
    return options.data or Settings.from_environment().data_folder


def _check(options: argparse.Namespace) -> int:
    with extra_columns(Settings.from_environment().extra_columns):
        report = CHECKS[options.benchmark](_folder(options))
    print(report.text())
    return 0 if report.usable else 1


def _draw(options: argparse.Namespace) -> int:
    from culture_tasks.benchmarks.crosscult.draw import make_draw
    from culture_tasks.benchmarks.crosscult.raw_cases import load

    chosen = DrawOptions(
        seed=options.seed,
        split_by=options.split_by,
        cross_language=options.cross_language,
        locality_pool=options.locality_pool,
    )
    with extra_columns(Settings.from_environment().extra_columns):
        cases = load(_folder(options))
    draw = make_draw(cases, chosen)
    draw.write(options.out)
    print(f"{options.out}: {len(draw.single)} single-insert cases, {len(draw.sequential)} chains ({draw.fingerprint})")
    return 0
