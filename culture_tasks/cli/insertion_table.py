"""``culture-tasks insertion table``: the papers' table of one model, planned, fitted, evaluated and reported."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.benchmarks.registry import entries, reading_data, tasks_below
from culture_tasks.cli.options import (
    add_model_options,
    add_repeatable,
    at_least,
    model_options,
    names,
    settings_of,
)
from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text, printable

if TYPE_CHECKING:
    from culture_tasks.insertion.core.training_data import TrainingData
    from culture_tasks.insertion.estimates import RowEstimator
    from culture_tasks.insertion.table import MethodRow, TableModels, TableOptions

_TASKS = ("crosscult_single", "crosscult_sequential")

_DESCRIPTION = (
    "Prints what the table needs, then fits and evaluates each method in processes and writes the report with the "
    "published rows beside. After a crash the same command continues. Judge and data are those of the environment "
    "(CULTURE_JUDGE, CULTURE_TASKS_DATA)."
)


def add_table(actions: argparse._SubParsersAction[Any]) -> None:
    """Adds the action."""
    text = "fit and evaluate the methods of the papers' tables, and write the report"
    table = actions.add_parser("table", help=text, description=_DESCRIPTION)
    table.add_argument("--model", required=True, help="multimodal model, on the Hub or in a folder")
    methods = "all (those of the papers' tables), or names"
    table.add_argument("--methods", type=names, default=("all",), metavar="LIST", help=methods)
    table.add_argument("--out", type=Path, required=True, help="folder for states, results, logs and the report")
    table.add_argument("--plan", action="store_true", help="print the plan and stop")
    table.add_argument("--tasks", type=names, default=_TASKS, metavar="LIST", help=f"default: {','.join(_TASKS)}")
    table.add_argument("--limit", type=at_least(1), metavar="N", help="evaluate on this many documents of each task")
    table.add_argument("--fit-limit", type=at_least(1), metavar="N", help="fit on this many training cases")
    table.add_argument("--batch-size", default="auto", metavar="N", help="requests answered together (default: auto)")
    table.add_argument("--backend", choices=("vllm",), help="engine for the methods that leave weights alone")
    table.add_argument("--backend-args", type=names, default=(), metavar="NAME=VALUE,…", help="its arguments")
    add_repeatable(table, "--set", "METHOD.OPTION=VALUE", "set an option of a method")
    add_model_options(table)
    table.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    """Checks all that can be checked before a model is loaded, prints the plan, and runs the rows.

    A row that fails doesn't stop the others.
    """
    from culture_tasks.harness.loading import check_judge, load_ahead
    from culture_tasks.insertion.core.training_data import load_training_data
    from culture_tasks.insertion.core.vllm_engine import check_arguments
    from culture_tasks.insertion.estimates import EVALUATED
    from culture_tasks.insertion.table import CULTURE_TASKS, find_models, row_estimator, rows_of

    settings = Settings.from_environment()
    chosen = _table_options(options, settings)
    rows = rows_of(chosen, options.methods)
    models = find_models(chosen, rows)
    if chosen.backend is not None:
        check_arguments(chosen.backend_arguments)
    tasks = {task.name: task for name in options.tasks for task in tasks_below(name)}
    load_ahead(tasks)
    for name in tasks:
        check_judge(name)
    with reading_data(settings):
        data = load_training_data(settings.data_folder, options.fit_limit)
    documents = [doc for name in tasks for doc in _documents(name, options.limit)]
    tokens = max(task.decoding.max_tokens for task in tasks.values())
    estimator = row_estimator(chosen, models.of_rows[rows[0].name][EVALUATED], data, documents, tokens)
    print("\n".join(_plan(rows, models, data, estimator)))
    judge = (settings.judge or "that of the paper").partition(",")[0]  # a local judge's arguments may hold a key
    print(f"Data: {settings.data_folder or 'the Hub'}. Judge: {judge}.\nFolder: {chosen.out}\n", flush=True)
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
    command = [*CULTURE_TASKS, "report", str(chosen.out / "results"), "-o", str(chosen.out / "report"), "--published"]
    status = subprocess.run(command, check=False).returncode  # noqa: S603 - this interpreter
    for failure in failures:
        print(f"culture-tasks: error: {printable(failure)}", file=sys.stderr)
    return 1 if failures else status


def _table_options(options: argparse.Namespace, settings: Settings) -> TableOptions:
    from culture_tasks.insertion.table import TableOptions

    for name in options.tasks:
        if name not in entries():
            raise SettingsError(f"insertion: no task {name!r}.{nearest(name, entries())}")
    if options.batch_size != "auto" and not (options.batch_size.isdigit() and int(options.batch_size)):
        raise SettingsError(f"insertion: --batch-size {options.batch_size}. Expected a whole number, or auto.")
    of_methods: dict[str, dict[str, str]] = {}
    for name, value in settings_of("--set", options.set).items():
        method, _, option = name.partition(".")
        of_methods.setdefault(method, {})[option] = value
    shared = ("out", "tasks", "limit", "fit_limit", "batch_size", "backend")
    return TableOptions(
        **{name: getattr(options, name) for name in shared},
        pretrained=options.model,
        model=model_options(options, options.device),
        backend_arguments=settings_of("--backend-args", options.backend_args),
        options=of_methods,
        judge=hashlib.sha256((settings.judge or "").encode()).hexdigest()[:16],
    )


def _documents(task: str, limit: int | None) -> list[dict[str, Any]]:
    """Returns the documents of a task without their images."""
    from datasets import Image

    from culture_tasks.harness.loading import loaded

    data = loaded(task)
    pictures = [column for column, kind in data.features.items() if isinstance(kind, Image)]
    some: list[dict[str, Any]] = (
        data.remove_columns(pictures).select(range(min(len(data), limit or len(data)))).to_list()
    )
    return some


def _plan(rows: Sequence[MethodRow], models: TableModels, data: TrainingData, estimator: RowEstimator) -> Iterator[str]:
    """Yields the plan: rows with hours and memory, the numbers of requests, and downloads."""
    from culture_tasks.insertion.estimates import ASSUMED
    from culture_tasks.insertion.table import estimate

    lines: list[tuple[str, ...]] = []
    hours, stored = 0.0, set[str]()
    for row in rows:
        expected = estimate(
            row.method, row.config, models.of_rows[row.name], estimator, backend=row.backend is not None, stored=stored
        )
        fitted = row.is_fitted(data)
        finished = fitted and row.is_evaluated()
        to_do = "finished" if finished else "evaluation" if fitted else "fit, evaluation"
        cells = ["not known"] * 4
        if expected is not None:
            fit = ("-", "-") if fitted else (f"{expected.fit_hours:.1f}", f"{expected.fit_gib:.0f}")
            rest = ("-", "-") if finished else (f"{expected.hours:.1f}", f"{expected.gib:.0f}")
            cells = [*fit, *rest]
            hours += (0 if fitted else expected.fit_hours) + (0 if finished else expected.hours)
        lines.append((row.name, to_do, row.backend or "transformers", *cells))
    yield as_text(("method", "to do", "answers by", "fit, hours", "GiB", "evaluation, hours", "GiB"), lines)
    counts, cases, prompt = estimator.requests, estimator.cases, estimator.prompt
    yield (
        f"\nRequests: {counts.alone} to the plain model, {counts.after} after {counts.insertions} insertions. "
        f"Training cases: {cases.count}. A request has {prompt.tokens:.0f} tokens."
    )
    yield f"{hours:.1f} hours, estimated for one {estimator.device.name}, not measured. Assumed: {ASSUMED}."
    yield "Models:"
    for name, (place, download) in models.located.items():
        yield f"  {name}: {f'{download / 2**30:.1f} GiB to download' if place == 'Hub' else f'in the {place}'}"
