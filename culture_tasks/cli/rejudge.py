"""``culture-tasks rejudge``: grade logged samples again, without model inference."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from culture_tasks.cli import options as common
from culture_tasks.costs.prices import Prices, read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.harness.judge_costs import ASKED, KEPT, KEY, summed_costs
from culture_tasks.harness.session import Session
from culture_tasks.judges.batch.batch_judge import BatchJudge, state_file
from culture_tasks.judges.endpoint.budget import refused_requests
from culture_tasks.judges.rubric.verdicts import discounts_of
from culture_tasks.judges.selection import close_judges, parse_spec
from culture_tasks.rejudge.rejudging import Rejudging, TaskToGrade, judged_runs
from culture_tasks.results.run_files import RunFiles
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_markdown, printable

_DESCRIPTION = """\
Grades the logged samples of lm-eval or lmms-eval with another judge, or for the first time after CULTURE_JUDGE=none,
and writes result and sample files in the same layout beside the old ones.
For example: culture-tasks rejudge results/ --judge openai:gpt-4o
"""


def register(add_parser: common.AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    parser.add_argument("results", nargs="+", type=Path, help="result files, folders with result files, or patterns")
    add = parser.add_argument
    common.add_judge(parser, "the judge, as in CULTURE_JUDGE (default: that variable)")
    add("--failed-only", action="store_true", help="keep the scored verdicts, and ask only for the others")
    sample = (
        "grade N responses of each task, drawn evenly from cultures and clusters; where another judge graded all of "
        "them, the report estimates this judge's score of all"
    )
    add("--sample", type=common.at_least(2), metavar="N", help=sample)
    batch = (
        "ask in batches of the endpoint, at its lower price, and wait for the results (a day at most); if interrupted, "
        "the same command goes on"
    )
    add("--batch", action="store_true", help=batch)
    resend = "with --batch, send requests again whose results can't be fetched, and pay for them a second time"
    add("--resend", action="store_true", help=resend)
    common.add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    if options.sample is not None and options.failed_only:
        raise SettingsError("rejudge: --sample grades a draw of the responses anew. Leave out --failed-only.")
    if options.resend and not options.batch:
        raise SettingsError("rejudge: --resend needs --batch.")
    try:
        with ExitStack() as stack:
            stack.callback(close_judges)
            return _rejudge(options, stack)
    except KeyboardInterrupt:
        _say("Interrupted. The same command goes on; without a verdict cache (CULTURE_JUDGE_CACHE=off) it begins anew.")
        return common.INTERRUPTED


def _rejudge(options: argparse.Namespace, stack: ExitStack) -> int:
    runs = judged_runs(options.results, sample=options.sample)
    result_files = [run.files.result_file for run in runs]
    settings = Settings.from_environment()
    settings = settings.model_copy(update={"judge": options.judge or settings.judge})
    prices = read_prices(settings.prices_file)
    session = Session(settings)
    in_batches: BatchJudge | None = None
    if options.batch:
        judge = in_batches = BatchJudge(settings, result_files, say=_say, resend=options.resend)
        stack.callback(judge.close)
        session = Session(settings, lambda _: judge)
    elif (file := state_file(result_files)).exists():
        _say(f"Batches of these results were sent ({file}). Without --batch, their verdicts are paid for again.")
    grading = Rejudging.of(runs, session, failed_only=options.failed_only)
    grading.check()
    grading.submit()
    summaries: list[dict[str, Any]] = []
    for run in grading.runs:
        with common.writing("rejudge", run.files.result_file.parent):
            new = grading.write(run, progress=partial(common.with_progress, label="verdicts"), prices=prices)
        summaries.append(_summary(new, run.tasks, settings.judge))
        if not options.json:
            _print(summaries[-1], prices)
    if in_batches is not None:
        in_batches.finish()
    if options.json:
        common.print_json({"currency": prices.currency, "runs": summaries})
    if refusal := refused_requests():
        common.show(refusal, sys.stderr if options.json else None)
    return 0


def _say(line: str) -> None:
    common.show(line, sys.stderr)


def _summary(run: RunFiles, tasks: Sequence[TaskToGrade], judge: str | None) -> dict[str, Any]:
    """Returns the summary of a new run: the scores of its tasks, and the cost of its verdicts."""
    scores: list[dict[str, Any]] = []
    for task in tasks:
        values = run.content["results"][task.name]
        for name in (task.metric, f"{task.metric}_lexical"):
            if f"{name},none" in values:
                value, stderr = values[f"{name},none"], values[f"{name}_stderr,none"]
                numbers = {"value": value, "stderr": stderr, "coverage": values[f"{task.metric}_coverage,none"]}
                scores.append({"task": task.name, "metric": name, **numbers})
    costs: list[dict[str, Any]] = []
    for part in (ASKED, KEPT) if KEY in run.content else ():
        verdicts, usage, money = summed_costs(run.content[KEY], part)
        if verdicts:
            costs.append({"part": part, "verdicts": verdicts, "tokens": usage, "money": money})
    spec = str(parse_spec(judge)) if judge else None
    return {"result_file": run.result_file, "judge": spec, "scores": scores, "costs": costs}


def _print(summary: Mapping[str, Any], prices: Prices) -> None:
    common.show(str(summary["result_file"]))
    rows = [
        [f"{value:.4f}" if isinstance(value, float) else printable(str(value)) for value in score.values()]
        for score in summary["scores"]
    ]
    print(as_markdown(("task", "metric", "value", "stderr", "coverage"), rows))
    for cost in summary["costs"]:
        usage = cost["tokens"]
        tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens{discounts_of(usage)}"
        print(f"{cost['verdicts']:,} verdicts {cost['part']}: {tokens}, {prices.text(cost['money'])}")
