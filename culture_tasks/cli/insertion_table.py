"""``culture-tasks insertion table``: the papers' table of one model, planned, fitted, evaluated and reported."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.cli.options import (
    add_model_options,
    add_repeatable,
    at_least,
    model_options,
    names,
    settings_of,
)
from culture_tasks.errors import SettingsError, nearest
from culture_tasks.text_tables import as_text, printable

if TYPE_CHECKING:
    from culture_tasks.insertion.table import MethodTable

_TASKS = ("crosscult_single", "crosscult_sequential")


def add_table(actions: argparse._SubParsersAction[Any]) -> None:
    """Adds the action."""
    table = actions.add_parser(
        "table",
        help="fit and evaluate the methods of the papers' tables, and write the report",
        description="Prints what the table needs, then fits and evaluates each method in processes and writes the "
        "report with the published rows beside. After a crash the same command continues. Judge and data are those of "
        "the environment (CULTURE_JUDGE, CULTURE_TASKS_DATA).",
    )
    table.add_argument("--model", required=True, help="multimodal model, on the Hub or in a folder")
    table.add_argument(
        "--methods", type=names, default=("all",), metavar="LIST", help="all (those of the papers' tables), or names"
    )
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
    table = _table(options)
    print("\n".join(_plan(table)), flush=True)
    if options.plan:
        return 0
    failures = table.run(lambda row: print(f"{row.name}: done", flush=True))
    status = table.report()
    for failure in failures:
        print(f"culture-tasks: error: {printable(failure)}", file=sys.stderr)
    return 1 if failures else status


def _table(options: argparse.Namespace) -> MethodTable:
    """Checks everything that can be checked before a model is loaded: methods, models, backend, data, judge."""
    from datasets import Image

    from culture_tasks.benchmarks.registry import entries, reading_data, tasks_below
    from culture_tasks.harness.loading import check_judge, load_ahead, loaded
    from culture_tasks.insertion.core.training_data import load_training_data
    from culture_tasks.insertion.estimates import device_at_hand
    from culture_tasks.insertion.table import MethodTable, Models, TableOptions, rows_of
    from culture_tasks.settings import Settings

    for name in options.tasks:
        if name not in entries():
            raise SettingsError(f"insertion: no task {name!r}.{nearest(name, entries())}")
    if options.batch_size != "auto" and not (options.batch_size.isdigit() and int(options.batch_size)):
        raise SettingsError(f"insertion: --batch-size {options.batch_size}. Expected a whole number, or auto.")
    chosen: dict[str, dict[str, str]] = {}
    for name, value in settings_of("--set", options.set).items():
        method, _, option = name.partition(".")
        chosen.setdefault(method, {})[option] = value
    settings = Settings.from_environment()
    given = TableOptions(
        out=options.out,
        pretrained=options.model,
        model=model_options(options, options.device),
        tasks=options.tasks,
        limit=options.limit,
        fit_limit=options.fit_limit,
        batch_size=options.batch_size,
        backend=options.backend,
        backend_arguments=settings_of("--backend-args", options.backend_args),
        options=chosen,
        judge=hashlib.sha256((settings.judge or "").encode()).hexdigest()[:16],
    )
    rows = rows_of(given, options.methods)
    models = Models(given, rows)
    if given.backend is not None:
        from culture_tasks.insertion.core.vllm_engine import check_arguments

        check_arguments(given.backend_arguments)
    tasks = {task.name: task for name in options.tasks for task in tasks_below(name)}
    load_ahead(tasks)
    for name in tasks:
        check_judge(name)
    documents = []
    for name in tasks:
        data = loaded(name)
        pictures = [column for column, kind in data.features.items() if isinstance(kind, Image)]
        documents += data.remove_columns(pictures).select(range(min(len(data), options.limit or len(data)))).to_list()
    with reading_data(settings):
        cases = load_training_data(settings.data_folder, options.fit_limit)
    tokens = max(task.decoding.max_tokens for task in tasks.values())
    return MethodTable(given, cases, documents, tokens, device_at_hand(), rows, models)


def _plan(table: MethodTable) -> Iterator[str]:
    """Yields the plan: rows with hours and memory, the numbers of requests, downloads, judge and data."""
    from culture_tasks.insertion.estimates import ASSUMED
    from culture_tasks.settings import Settings

    lines: list[tuple[str, ...]] = []
    hours = 0.0
    for row in table.rows:
        estimate, fitted = table.estimates[row.name], row.is_fitted(table.data)
        finished = fitted and row.is_evaluated()
        left = "finished" if finished else "evaluation" if fitted else "fit, evaluation"
        by = row.backend or "transformers"
        if estimate is None:
            lines.append((row.name, left, by, *["not known"] * 4))
            continue
        fit = ("-", "-") if fitted else (f"{estimate.fit_hours:.1f}", f"{estimate.fit_gib:.0f}")
        rest = ("-", "-") if finished else (f"{estimate.hours:.1f}", f"{estimate.gib:.0f}")
        hours += (0 if fitted else estimate.fit_hours) + (0 if finished else estimate.hours)
        lines.append((row.name, left, by, *fit, *rest))
    head = ("method", "to do", "answers by", "fit, hours", "GiB", "evaluation, hours", "GiB")
    yield as_text(head, lines)
    counts, cases, prompt = table.estimator.requests, table.estimator.cases, table.estimator.prompt
    yield (
        f"\nRequests: {counts.alone} to the plain model, {counts.after} after {counts.insertions} insertions. "
        f"Training cases: {cases.count}. A request has {prompt.tokens:.0f} tokens."
    )
    yield f"{hours:.1f} hours, estimated for one {table.device.name}, not measured. Assumed: {ASSUMED}."
    yield "Models:"
    for name, located in table.models.located.items():
        size = (
            f"{located.download / 2**30:.1f} GiB to download" if located.place == "Hub" else f"in the {located.place}"
        )
        yield f"  {name}: {size}"
    settings = Settings.from_environment()
    judge = (settings.judge or "that of the paper").partition(",")[0]  # a local judge's arguments may hold a key
    yield f"Data: {settings.data_folder or 'the Hub'}. Judge: {judge}."
    yield f"Folder: {table.options.out}\n"
