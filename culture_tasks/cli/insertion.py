"""``culture-tasks insertion``: list the methods, or fit one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.registry import check_revisions
from culture_tasks.cli import options as common
from culture_tasks.errors import SettingsError
from culture_tasks.settings import Settings
from culture_tasks.text_tables import plain

if TYPE_CHECKING:
    from culture_tasks.insertion.core.insertion_method import InsertionMethod
    from culture_tasks.insertion.core.training import TrainingData

_FEATURES = "features.sqlite3"
_CHECKPOINT = "training.safetensors"

_FIT = (
    "Fits a method on a benchmark's training cases and writes its state. After a crash, the same command continues "
    "where it stopped."
)


def register(add_parser: common.AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    methods = actions.add_parser("methods", help="list the methods with their options and requirements")
    methods.set_defaults(handler=_list)
    fit = actions.add_parser("fit", help="fit a method on training cases", description=_FIT)
    add = fit.add_argument
    add("--method", required=True, help="a method that needs a state, such as mcki (see methods)")
    add("--model", required=True, help="multimodal model, on the Hub or in a folder")
    add("--benchmark", help="benchmark whose training cases are used (default: the only one with some)")
    add("--data", type=Path, help="folder of local data (default: CULTURE_TASKS_DATA, else the Hub)")
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the state")
    common.add_repeatable(fit, "--set", "OPTION=VALUE", "set an option of the method (see methods)")
    limit = "use this many training cases, evenly spaced over all"
    add("--limit", type=common.at_least(1), metavar="N", help=limit)
    add("--features", type=Path, help=f"file that caches features (default: {_FEATURES} in --output)")
    add("--overwrite", action="store_true", help="replace another state in --output")
    batch = "requests whose features are computed together"
    add("--batch-size", type=common.at_least(1), default=1, metavar="N", help=batch)
    minutes = "time between checkpoints of a training; 0 writes one after each step"
    add("--checkpoint-minutes", type=common.not_negative, default=10.0, metavar="MINUTES", help=minutes)
    common.add_model_options(fit)
    fit.set_defaults(handler=_fit)


def _list(_: argparse.Namespace) -> int:
    from culture_tasks.insertion.core.method_registry import described, method_names

    for line in "\n\n".join(map(described, method_names())).splitlines():
        text = line.lstrip()
        print(f"{line[: len(line) - len(text)]}{plain(text)}")
    return 0


def _fit(options: argparse.Namespace) -> int:
    from culture_tasks.insertion.core.adapter import MultimodalModel
    from culture_tasks.insertion.core.method_registry import method_class
    from culture_tasks.insertion.core.store import Store
    from culture_tasks.insertion.core.training import Checkpoints, load_training_data

    method_type = method_class(options.method)
    config = method_type.read_config(common.settings_of("--set", options.set))
    if not method_type.needs_state:
        raise SettingsError(f"insertion: {options.method} has nothing to fit. Use it without a state.")
    settings = Settings.from_environment()
    if options.data:
        settings = settings.model_copy(update={"data": options.data})
    check_revisions(settings)
    data = load_training_data(settings, options.limit, options.benchmark)
    method = method_type(MultimodalModel.load(options.model, common.model_options(options, options.device)), config)
    method.batch_size = options.batch_size
    if not options.overwrite and _is_done(options.output, method, data):
        print(f"{options.output}: is already fitted")
        return 0
    checkpoints = Checkpoints(options.output / _CHECKPOINT, minutes=options.checkpoint_minutes)
    features = Store(options.features or options.output / _FEATURES)
    method.fit(data, features, checkpoints)
    description = method.save(options.output)
    checkpoints.clear()
    print(f"{options.output}: {options.method} on {data.facts.count} cases {json.dumps(description.report)}")
    return 0


def _is_done(folder: Path, method: InsertionMethod, data: TrainingData) -> bool:
    """Whether the folder holds exactly this state."""
    from culture_tasks.insertion.core import state

    if not (folder / state.DESCRIPTION).exists():
        return False
    present, _ = state.read(folder)
    different = state.differences(present.compared, method.plan(data.facts).compared)
    if different:
        raise state.StateError(
            f"{folder}: holds the state of another fit ({different}). Name another --output, or replace it with "
            "--overwrite."
        )
    return True
