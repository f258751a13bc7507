"""``culture-tasks insertion``: fill the papers' table, list the methods, fit one, or describe a fitted state."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.benchmarks.registry import reading_data, tasks_below
from culture_tasks.cli.options import (
    AddParser,
    add_json,
    add_model_options,
    add_repeatable,
    add_tasks,
    at_least,
    matching_entries,
    model_options,
    names,
    not_negative,
    print_json,
    settings_of,
)
from culture_tasks.errors import CultureTasksError, SettingsError
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text, plain, printable

if TYPE_CHECKING:
    from culture_tasks.insertion.core.insertion_method import InsertionMethod
    from culture_tasks.insertion.core.training_data import TrainingData
    from culture_tasks.insertion.estimates import RowEstimator
    from culture_tasks.insertion.table import MethodRow, TableModels, TableOptions

_FEATURES = "features.sqlite3"
_CHECKPOINT = "training.safetensors"
_TASKS = ("crosscult_single", "crosscult_sequential")

_TABLE = (
    "Prints the plan, then fits and evaluates each method in separate processes, and writes the report with the "
    "published rows beside. After a crash the same command continues. Judge and data are those of the environment "
    "(CULTURE_JUDGE, CULTURE_TASKS_DATA)."
)

_FIT = (
    "Fits a method on a benchmark's training cases and writes its state. After a crash, the same command continues "
    "where it stopped. Under torchrun or accelerate launch, several GPUs share the work of methods that are trained by "
    "gradients."
)


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    methods = actions.add_parser("methods", help="list the methods with their options and requirements")
    add_json(methods)
    methods.set_defaults(handler=_list)
    _add_table(actions)
    fit = actions.add_parser("fit", help="fit a method on training cases", description=_FIT)
    fit.add_argument("--method", required=True, help="a method that needs a state, such as mcki (see methods)")
    fit.add_argument("--model", required=True, help="multimodal model, on the Hub or in a folder")
    fit.add_argument("--benchmark", help="benchmark whose training cases are used (default: the only one with some)")
    fit.add_argument("--data", type=Path, help="folder of local data (default: CULTURE_TASKS_DATA, else the Hub)")
    fit.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the state")
    add_repeatable(fit, "--set", "OPTION=VALUE", "set an option of the method (see methods)")
    limit = "use this many training cases, evenly spaced over all"
    fit.add_argument("--limit", type=at_least(1), metavar="N", help=limit)
    fit.add_argument("--features", type=Path, help=f"file that caches features (default: {_FEATURES} in --output)")
    fit.add_argument("--overwrite", action="store_true", help="replace another state in --output")
    batch = "requests whose features are computed together"
    fit.add_argument("--batch-size", type=at_least(1), default=1, metavar="N", help=batch)
    minutes = "time between checkpoints of a training; 0 writes one after each step"
    fit.add_argument("--checkpoint-minutes", type=not_negative, default=10.0, metavar="MINUTES", help=minutes)
    add_model_options(fit)
    fit.set_defaults(handler=_fit)
    show = actions.add_parser("show", help="describe a fitted state")
    show.add_argument("state", type=Path, help="folder that fit wrote")
    show.set_defaults(handler=_show)


def _add_table(actions: argparse._SubParsersAction[Any]) -> None:
    text = "fit and evaluate the methods of the papers' tables, and write the report"
    table = actions.add_parser("table", help=text, description=_TABLE)
    table.add_argument("--model", required=True, help="multimodal model, on the Hub or in a folder")
    methods = "all (those of the papers' tables), or names"
    table.add_argument("--methods", type=names, default=("all",), metavar="LIST", help=methods)
    folder = "folder for states, results, logs and the report"
    table.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", dest="out", help=folder)
    table.add_argument("--plan", action="store_true", help="print the plan and stop")
    table.add_argument("--json", action="store_true", help="print the plan as JSON and stop")
    add_tasks(table, f"tasks or groups (default: {','.join(_TASKS)})", default=_TASKS)
    table.add_argument("--limit", type=at_least(1), metavar="N", help="evaluate on this many documents of each task")
    table.add_argument("--fit-limit", type=at_least(1), metavar="N", help="fit on this many training cases")
    table.add_argument("--batch-size", default="auto", metavar="N", help="requests answered together (default: auto)")
    table.add_argument("--backend", choices=("vllm",), help="engine for the methods that leave weights alone")
    table.add_argument("--backend-args", type=names, default=(), metavar="NAME=VALUE,…", help="its arguments")
    add_repeatable(table, "--set", "METHOD.OPTION=VALUE", "set an option of a method")
    add_model_options(table)
    table.set_defaults(handler=_fill_table)


def _fill_table(options: argparse.Namespace) -> int:
    """Checks all that can be checked before a model is loaded, prints the plan, and runs the rows.

    A row that fails doesn't stop the others.
    """
    from culture_tasks.harness.loading import check_judge, load_ahead
    from culture_tasks.insertion.core.training_data import load_training_data
    from culture_tasks.insertion.core.vllm_engine import check_arguments
    from culture_tasks.insertion.estimates import EVALUATED
    from culture_tasks.insertion.table import CULTURE_TASKS, find_models, row_estimator, rows_of

    settings = Settings.from_environment()
    table = _table_options(options, settings)
    rows = rows_of(table, options.methods)
    models = find_models(table, rows)
    if table.backend is not None:
        check_arguments(table.backend_arguments)
    tasks = {task.name: task for name in options.tasks for task in tasks_below(name)}
    load_ahead(tasks)
    for name in tasks:
        check_judge(name)
    with reading_data(settings):
        data = load_training_data(settings.data_folder, options.fit_limit)
    documents = [doc for name in tasks for doc in _documents(name, options.limit)]
    tokens = max(task.decoding.max_tokens for task in tasks.values())
    estimator = row_estimator(table, models.of_rows[rows[0].name][EVALUATED], data, documents, tokens)
    plan = _plan(rows, models, data, estimator)
    if options.json:
        print_json(plan)
        return 0
    print("\n".join(_plan_in_words(plan)))
    judge = (settings.judge or "that of the paper").partition(",")[0]  # a local judge's arguments may hold a key
    print(f"Data: {settings.data_folder or 'the Hub'}. Judge: {judge}.\nFolder: {table.out}\n", flush=True)
    if options.plan:
        return 0
    failures = []
    for row in rows:
        try:
            row.run(data)
        except CultureTasksError as error:
            failures.append(str(error))
        else:
            print(f"{row.name}: done", flush=True)
    command = [*CULTURE_TASKS, "report", str(table.out / "results"), "-o", str(table.out / "report"), "--published"]
    status = subprocess.run(command, check=False).returncode  # noqa: S603 - this interpreter
    for failure in failures:
        print(f"culture-tasks: error: {printable(failure)}", file=sys.stderr)
    return 1 if failures else status


def _table_options(options: argparse.Namespace, settings: Settings) -> TableOptions:
    from culture_tasks.insertion.table import TableOptions

    options.tasks = tuple(matching_entries(options.tasks, "insertion"))
    if options.batch_size != "auto" and not (options.batch_size.isdigit() and int(options.batch_size)):
        raise SettingsError(f"insertion: --batch-size {options.batch_size}. Expected a whole number, or auto.")
    method_options: dict[str, dict[str, str]] = {}
    for name, value in settings_of("--set", options.set).items():
        method, _, option = name.partition(".")
        method_options.setdefault(method, {})[option] = value
    shared = ("out", "tasks", "limit", "fit_limit", "batch_size", "backend")
    return TableOptions(
        **{name: getattr(options, name) for name in shared},
        pretrained=options.model,
        model=model_options(options, options.device),
        backend_arguments=settings_of("--backend-args", options.backend_args),
        options=method_options,
        judge=hashlib.sha256((settings.judge or "").encode()).hexdigest()[:16],
    )


def _documents(task: str, limit: int | None) -> list[dict[str, Any]]:
    """Returns the documents of a task without their images."""
    from datasets import Image

    from culture_tasks.harness.loading import task_dataset

    data = task_dataset(task)
    data = data.remove_columns([column for column, kind in data.features.items() if isinstance(kind, Image)])
    return list(data.select(range(min(len(data), limit or len(data)))))


def _plan(
    rows: Sequence[MethodRow], models: TableModels, data: TrainingData, estimator: RowEstimator
) -> dict[str, Any]:
    """Returns the plan: rows with hours and memory, None where not known, the requests, and where models are."""
    from culture_tasks.insertion.estimates import ASSUMED
    from culture_tasks.insertion.table import estimate

    entries: list[dict[str, Any]] = []
    stored = set[str]()
    for row in rows:
        expected = estimate(
            row.method, row.config, models.of_rows[row.name], estimator, backend=row.backend is not None, stored=stored
        )
        fitted = row.is_fitted(data)
        finished = fitted and row.is_evaluated()
        entries.append(
            {
                "method": row.name,
                "fitted": fitted,
                "evaluated": finished,
                "backend": row.backend or "transformers",
                "fit_hours": expected and (0.0 if fitted else expected.fit_hours),
                "fit_gib": expected and (0.0 if fitted else expected.fit_gib),
                "evaluation_hours": expected and (0.0 if finished else expected.hours),
                "evaluation_gib": expected and (0.0 if finished else expected.gib),
            }
        )
    counts = estimator.requests
    return {
        "rows": entries,
        "hours": sum((row["fit_hours"] or 0.0) + (row["evaluation_hours"] or 0.0) for row in entries),
        "device": estimator.device.name,
        "assumed": ASSUMED,
        "requests": {"alone": counts.alone, "after": counts.after, "insertions": counts.insertions},
        "training_cases": estimator.cases.count,
        "tokens_per_request": estimator.prompt.tokens,
        "models": {
            name: {"place": place, "download_gib": download / 2**30 if place == "Hub" else 0.0}
            for name, (place, download) in models.located.items()
        },
    }


def _plan_in_words(plan: Mapping[str, Any]) -> Iterator[str]:
    lines: list[tuple[str, ...]] = []
    for row in plan["rows"]:
        to_do = "finished" if row["evaluated"] else "evaluation" if row["fitted"] else "fit, evaluation"
        numbers = [
            "not known" if row[f"{step}_hours"] is None else "-" if done else f"{row[f'{step}_{unit}']:.{digits}f}"
            for step, done in (("fit", row["fitted"]), ("evaluation", row["evaluated"]))
            for unit, digits in (("hours", 1), ("gib", 0))
        ]
        lines.append((row["method"], to_do, row["backend"], *numbers))
    yield as_text(("method", "to do", "answers by", "fit, hours", "GiB", "evaluation, hours", "GiB"), lines)
    counts = plan["requests"]
    yield (
        f"\nRequests: {counts['alone']} to the plain model, {counts['after']} after {counts['insertions']} insertions. "
        f"Training cases: {plan['training_cases']}. A request has {plan['tokens_per_request']:.0f} tokens."
    )
    yield f"{plan['hours']:.1f} hours, estimated for one {plan['device']}, not measured. Assumed: {plan['assumed']}."
    yield "Models:"
    for name, model in plan["models"].items():
        place = f"in the {model['place']}"
        missing = f"{model['download_gib']:.1f} GiB to download"
        yield f"  {name}: {missing if model['place'] == 'Hub' else place}"


def _list(options: argparse.Namespace) -> int:
    from culture_tasks.insertion.core.method_registry import method_class, method_names, options_of, summary

    descriptions: list[dict[str, Any]] = []
    for name in method_names():
        try:
            method = method_class(name)
        except CultureTasksError as error:  # one package's method mustn't hide the others
            descriptions.append({"name": name, "problem": str(error)})
            continue
        package = method.__module__.partition(".")[0]
        flags = {flag: getattr(method, flag) for flag in ("needs_state", "edits_weights", "other_models")}
        descriptions.append(
            {"name": name, "about": summary(method), "package": package, **flags, "options": options_of(method)}
        )
    if options.json:
        print_json(descriptions)
        return 0
    width = max(shutil.get_terminal_size((100, 24)).columns, 40)
    for description in descriptions:
        for indent, text in _lines(description):
            blank = " " * indent
            print(textwrap.fill(plain(text), width, initial_indent=blank, subsequent_indent=blank))
        print()
    return 0


def _lines(method: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yields the lines of a description, each with its indent."""
    name = method["name"]
    if "problem" in method:
        yield from ((0, name), (2, f"Can't be used: {method['problem']}"))
        return
    yield 0, name if method["package"] == __package__.partition(".")[0] else f"{name} ({method['package']})"
    yield 2, method["about"]
    if method["needs_state"]:
        yield 2, f"Needs a state: culture-tasks insertion fit --method {name} … --set OPTION=VALUE"
    else:
        yield 2, "Needs no state." + (" Options are model arguments: OPTION=VALUE." if method["options"] else "")
    if method["edits_weights"]:
        yield 2, "Changes the model's weights, so that no backend can generate for it."
    if method["other_models"]:
        yield 2, f"Loads further models, which these options name: {', '.join(method['other_models'])}."
    for option in method["options"]:
        default = "" if option["default"] is None else f"={option['default']}"
        yield 4, f"{option['name']}{default} ({option['kind']})"
        yield 8, option["meaning"]


def _fit(options: argparse.Namespace) -> int:
    import torch
    from accelerate import PartialState

    from culture_tasks.insertion.core.adapter import MultimodalModel
    from culture_tasks.insertion.core.method_registry import method_class
    from culture_tasks.insertion.core.progress import Progress
    from culture_tasks.insertion.core.training import Checkpoints
    from culture_tasks.insertion.core.training_data import load_training_data
    from culture_tasks.insertion.core.value_store import ValueStore

    method_type = method_class(options.method)
    config = method_type.read_config(settings_of("--set", options.set))
    if not method_type.needs_state:
        raise SettingsError(f"insertion: {options.method} has nothing to fit. Use it without a state.")
    settings = Settings.from_environment()
    with reading_data(settings):
        folder = options.data.expanduser() if options.data else settings.data_folder
        data = load_training_data(folder, options.limit, options.benchmark)
    processes = PartialState(cpu=options.device == "cpu" or not torch.cuda.is_available())
    if processes.num_processes > 1 and options.device_map:
        raise SettingsError(
            f"insertion: --device-map {options.device_map} in {processes.num_processes} processes. Each needs the "
            "whole model on one GPU: leave out --device-map, or start one process."
        )
    device = str(processes.device) if processes.num_processes > 1 else options.device
    model = MultimodalModel.load(options.model, model_options(options, device))
    method = method_type(model, config)
    method.batch_size = options.batch_size
    if not options.overwrite and _is_done(options.output, method, data):
        print(f"{options.output}: is already fitted")
        return 0
    checkpoints = Checkpoints(options.output / _CHECKPOINT, minutes=options.checkpoint_minutes)
    progress = Progress(hidden=not processes.is_main_process)
    with closing(ValueStore(options.features or options.output / _FEATURES)) as store:
        method.fit(data, store, progress, checkpoints)
    if processes.is_main_process:
        description = method.save(options.output)
        checkpoints.clear()
        print(f"{options.output}: {options.method} on {data.facts.count} cases {json.dumps(description.report)}")
    processes.destroy_process_group()
    return 0


def _is_done(folder: Path, method: InsertionMethod, data: TrainingData) -> bool:
    """Whether the folder holds exactly this state."""
    from culture_tasks.insertion.core import state

    if not state.exists(folder):
        return False
    present, _ = state.read(folder)
    expected = {
        "method": method.name,
        "version": method.answers_version,
        "config": method.config.model_dump(mode="json"),
        "weights": method.model.identity.weights,
        "parts": dict(method.model.identity.parts),
        "data": data.facts,
    }
    differences = state.differences(present.compared, present.model_copy(update=expected).compared)
    if differences:
        raise state.StateError(
            f"{folder}: holds the state of another fit ({differences}). "
            "Name another --output, or replace it with --overwrite."
        )
    return True


def _show(options: argparse.Namespace) -> int:
    from culture_tasks.insertion.core.state import read

    description, tensors = read(options.state)
    content = description.model_dump(mode="json", exclude={"facts", "tensors"})
    sizes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    print_json({**content, "fingerprint": description.fingerprint, "tensors": sizes})
    return 0
