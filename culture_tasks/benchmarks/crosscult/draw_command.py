"""``culture-tasks data draw``: splits the scenarios and pairs the cases of CrossCult-KIBench."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from culture_tasks.benchmarks.crosscult.draw import FILE_NAME, DrawOptions, make_draw
from culture_tasks.benchmarks.crosscult.raw_cases import load
from culture_tasks.benchmarks.registry import reading_data
from culture_tasks.settings import Settings


def register(actions: argparse._SubParsersAction[Any]) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "draw",
        help="split and pair the cases of CrossCult-KIBench",
        description=f"Writes the scenario split and the pairing of cases. As {FILE_NAME} in the data folder they "
        "replace the default ones.",
    )
    parser.add_argument("benchmark", choices=["crosscult"])
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    for name, field in DrawOptions.model_fields.items():
        flag, choices = f"--{name.replace('_', '-')}", get_args(field.annotation) or None
        parser.add_argument(flag, type=str if choices else int, choices=choices, default=field.default)
    parser.add_argument("--data", type=Path, help="the data folder (default: CULTURE_TASKS_DATA, else the Hub)")
    parser.set_defaults(handler=_draw)


def _draw(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    with reading_data(settings):
        cases = load(options.data or settings.data_folder)
    draw = make_draw(cases, DrawOptions(**{name: getattr(options, name) for name in DrawOptions.model_fields}))
    draw.write(options.out)
    print(f"{options.out}: {len(draw.single)} single-insert cases, {len(draw.sequential)} chains ({draw.fingerprint})")
    return 0
