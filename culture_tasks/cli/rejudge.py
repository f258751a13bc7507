"""``culture-tasks rejudge``: grade logged samples again, without model inference."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.errors import DataError, SettingsError
from culture_tasks.prices import Prices, read_prices
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from culture_tasks.harness.scoring import JudgedDocument
    from culture_tasks.harness.session import Session
    from culture_tasks.judges.verdicts import Usage
    from culture_tasks.rejudge.rejudging import TaskToGrade
    from culture_tasks.results.run_files import RunFiles


def register(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "rejudge",
        help="grade the logged samples of finished runs again",
        description=(
            "Grades the logged samples of lm-eval or lmms-eval with another judge, or for the first time after "
            "CULTURE_JUDGE=none, and writes result and sample files in the same layout beside the old ones. "
            "Several judges grade the same responses, each into files of its own. "
            "For example: culture-tasks rejudge results/ --judge openai:gpt-4o --judge openai:gpt-4o-mini"
        ),
    )
    parser.add_argument("results", nargs="+", type=Path, help="result files, folders with result files, or patterns")
    parser.add_argument(
        "--judge",
        action="append",
        metavar="SPEC",
        help="the judge, as in CULTURE_JUDGE; repeat the option for several judges (default: that variable)",
    )
    parser.add_argument(
        "--failed-only", action="store_true", help="keep the scored verdicts, and ask only for the others"
    )
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    from culture_tasks.harness.session import start_session
    from culture_tasks.judges.budget import refused_requests
    from culture_tasks.judges.selection import close_judges
    from culture_tasks.rejudge import rejudging
    from culture_tasks.text_tables import printable

    runs = rejudging.find_runs(options.results)
    found = [(run, tasks) for run in runs if (tasks := rejudging.judged_tasks(run.files))]
    if not found:
        raise DataError(
            "rejudge: none of these runs has logged samples that a judge grades. Needed are runs of a judged benchmark "
            "with --log_samples and --output_path."
        )
    prices = read_prices(Settings.from_environment().prices_file)
    try:
        work = []
        for session in _sessions(options.judge):
            graded = rejudging.to_grade(found, session, failed_only=options.failed_only)
            rejudging.check_judges(session, _tasks(graded), failed_only=options.failed_only)
            work.append((session, graded))
        for session, graded in work:
            start_session(session.settings)
            rejudging.submit(_tasks(graded), failed_only=options.failed_only)
        for session, graded in work:
            for run, tasks in graded:
                new = rejudging.finish(run, tasks, progress=_progress, prices=prices, now=datetime.now())
                _print(new, tasks, judge=session.settings.judge if len(work) > 1 else None, prices=prices)
        if refused := refused_requests():
            print(printable(refused))
    finally:
        close_judges()
    return 0


def _sessions(judges: Sequence[str] | None) -> list[Session]:
    """Returns a session for each judge that the user names, or one for that of the settings."""
    from culture_tasks.harness.session import Session
    from culture_tasks.judges.selection import parse_spec

    settings = Settings.from_environment()
    if judges is None:
        return [Session(settings)]
    specs = [parse_spec(judge) for judge in judges]
    if len(set(specs)) < len(specs):
        raise SettingsError("rejudge: the same judge is named twice. Name each judge once.")
    return [Session(settings.model_copy(update={"judge": judge})) for judge in judges]


def _tasks(graded: Sequence[tuple[RunFiles, Sequence[TaskToGrade]]]) -> list[TaskToGrade]:
    return [task for _, tasks in graded for task in tasks]


def _progress(documents: Sequence[JudgedDocument]) -> Iterable[JudgedDocument]:
    from tqdm import tqdm

    waited_for: Iterable[JudgedDocument] = tqdm(
        documents, desc="verdicts", file=sys.stderr, mininterval=1.0, disable=None
    )
    return waited_for


def _print(run: RunFiles, tasks: Sequence[TaskToGrade], *, judge: str | None, prices: Prices) -> None:
    from culture_tasks.harness.judge_costs import ASKED, KEPT, KEY, summed_costs
    from culture_tasks.judges.selection import parse_spec
    from culture_tasks.text_tables import as_markdown, printable

    print(printable(f"{run.result_file}{f', judge {parse_spec(judge)}' if judge else ''}"))
    rows = []
    for task in tasks:
        values = run.content["results"][task.name]
        for name in (task.metric, f"{task.metric}_lexical"):
            if f"{name},none" in values:
                shown = (values[f"{name},none"], values[f"{name}_stderr,none"], values[f"{task.metric}_coverage,none"])
                rows.append((printable(task.name), name, *(_number(value) for value in shown)))
    print(as_markdown(("task", "metric", "value", "stderr", "coverage"), rows))
    if KEY in run.content:
        for part in (ASKED, KEPT):
            print(_spent(*summed_costs(run.content[KEY], part), part=part, prices=prices))


def _spent(verdicts: int, usage: Usage, money: float | None, *, part: str, prices: Prices) -> str:
    from culture_tasks.judges.verdicts import discounts_of

    amount = "no price" if money is None else prices.shown(money)
    tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens{discounts_of(usage)}"
    return f"{verdicts:,} verdicts {part}: {tokens}, {amount}"


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
