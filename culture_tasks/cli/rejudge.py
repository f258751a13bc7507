"""``culture-tasks rejudge``: grade logged samples again, without model inference."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from culture_tasks.cli.options import (
    INTERRUPTED,
    AddParser,
    add_json,
    at_least,
    print_json,
    show,
    with_progress,
    writing,
)
from culture_tasks.costs.prices import Prices, read_prices
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.harness.judge_costs import ASKED, KEPT, KEY, summed_costs
from culture_tasks.harness.session import Session, hold_session
from culture_tasks.judges.batch.batch_endpoint import BatchEndpoint
from culture_tasks.judges.batch.batch_rounds import BatchJudge, BatchRounds, described, state_file, state_files
from culture_tasks.judges.endpoint.budget import refused_requests
from culture_tasks.judges.rubric.verdicts import discounts_of
from culture_tasks.judges.selection import close_judges, parse_spec, spec_for
from culture_tasks.rejudge import rejudging
from culture_tasks.rejudge.rejudging import TaskToGrade
from culture_tasks.results.run_files import RunFiles
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_markdown, printable

_STILL_OPEN = 3
"""Exit status where batches are still being worked on, or something is left to be sent."""

_DESCRIPTION = """\
Grades the logged samples of lm-eval or lmms-eval with another judge, or for the first time after CULTURE_JUDGE=none,
and writes result and sample files in the same layout beside the old ones, for each judge its own.
For example: culture-tasks rejudge results/ --judge openai:gpt-4o --judge openai:gpt-4o-mini
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    parser.add_argument("results", nargs="+", type=Path, help="result files, folders with result files, or patterns")
    judge = "the judge, as in CULTURE_JUDGE; repeat the option for several judges (default: that variable)"
    parser.add_argument("--judge", action="append", metavar="SPEC", help=judge)
    failed_only = "keep the scored verdicts, and ask only for the others"
    parser.add_argument("--failed-only", action="store_true", help=failed_only)
    sample = (
        "grade N responses of each task, drawn evenly from cultures and clusters; where another judge graded all of "
        "them, the report estimates this judge's score of all"
    )
    parser.add_argument("--sample", type=at_least(2), metavar="N", help=sample)
    batches = parser.add_mutually_exclusive_group()
    mode: dict[str, Any] = {"dest": "batches", "action": "store_const"}
    wait = "ask in batches of the endpoint, at its lower price, and wait for the results (a day at most)"
    batches.add_argument("--batch", const="wait", help=wait, **mode)
    batches.add_argument("--submit", const="submit", help="send batches, and don't wait", **mode)
    collect = "fetch the results of batches that were sent; exit status 3 while some run"
    batches.add_argument("--collect", const="collect", help=collect, **mode)
    resend = (
        "with --batch or --submit, send requests again whose results can't be fetched, and pay for them a second time"
    )
    parser.add_argument("--resend", action="store_true", help=resend)
    add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    if options.sample is not None and options.failed_only:
        raise SettingsError("rejudge: --sample grades a draw of the responses anew. Leave out --failed-only.")
    if options.resend and options.batches not in ("wait", "submit"):
        raise SettingsError("rejudge: --resend needs --batch or --submit.")
    try:
        return _rejudge(options)
    except KeyboardInterrupt:
        if options.batches is not None:
            _say("Interrupted. Batches that were sent go on: the same command, or --collect, fetches their results.")
        elif (cache := Settings.from_environment().cache_file) is not None:
            _say(f"Interrupted. The verdicts so far are kept ({cache}): the same command goes on with the others.")
        else:
            _say("Interrupted. Without a verdict cache (CULTURE_JUDGE_CACHE=off), the same command begins anew.")
        return INTERRUPTED


def _rejudge(options: argparse.Namespace) -> int:
    failed_only = options.failed_only
    runs = rejudging.find_runs(options.results)
    judged_runs = [(run, tasks) for run in runs if (tasks := rejudging.judged_tasks(run.files))]
    if options.sample is not None:
        judged_runs = [
            (run, [rejudging.sample_of(run.files, task, options.sample) for task in tasks])
            for run, tasks in judged_runs
        ]
    if not judged_runs:
        raise DataError(
            "rejudge: none of these runs has logged samples that a judge grades. Expected runs of a judged benchmark "
            "with --log_samples and --output_path."
        )
    result_files = [run.files.result_file for run, _ in judged_runs]
    settings = Settings.from_environment()
    prices = read_prices(settings.prices_file)
    judges: dict[str, BatchJudge] = {}
    rounds: BatchRounds | None = None
    with ExitStack() as stack:
        stack.callback(close_judges)
        sessions = [_batches(options, settings, judges)] if options.batches else _sessions(options.judge, settings)
        work = [
            (session, rejudging.runs_for_judge(judged_runs, session, failed_only=failed_only)) for session in sessions
        ]
        if options.batches:
            rounds = _rounds(options, work[0], judges, result_files, stack)
        else:
            for file in state_files(result_files):
                _say(f"Batches of these results were sent ({file}). Uncollected results will be paid for again.")
        for session, gradings in work:
            rejudging.check_judges(session, _tasks(gradings), failed_only=failed_only)
        for session, gradings in work:
            hold_session(session)
            rejudging.submit(_tasks(gradings), failed_only=failed_only)
        if rounds is not None:
            with redirect_stdout(sys.stderr if options.json else sys.stdout):
                status = _status(rounds, options.batches)
            if status is not None:
                return status
            rounds.end_verdicts()
        summaries: list[dict[str, Any]] = []
        for session, gradings in work:
            for run, tasks in gradings:
                progress = partial(with_progress, label="verdicts")
                with writing("rejudge", run.result_file.parent):
                    new = rejudging.finish(run, tasks, progress=progress, prices=prices, now=datetime.now())
                summaries.append(_summary(new, tasks, session.settings.judge))
                if not options.json:
                    _print(summaries[-1], prices, shows_judge=len(work) > 1)
        if options.json:
            print_json({"currency": prices.currency, "runs": summaries})
        if rounds is not None:
            rounds.finish()
        if refusal := refused_requests():
            show(refusal, sys.stderr if options.json else None)
    return 0


def _sessions(judges: Sequence[str] | None, settings: Settings) -> list[Session]:
    if judges is None:
        return [Session(settings)]
    if len({parse_spec(judge) for judge in judges}) < len(judges):
        raise SettingsError("rejudge: the same judge is named twice. Name each judge once.")
    return [Session(settings.model_copy(update={"judge": judge})) for judge in judges]


def _batches(options: argparse.Namespace, settings: Settings, judges: dict[str, BatchJudge]) -> Session:
    """Returns a session whose judges ask in batches; each is put among the judges once it is made."""
    if options.judge is not None:
        if len(options.judge) > 1:
            raise SettingsError("rejudge: batches ask one judge. Name one with --judge.")
        settings = settings.model_copy(update={"judge": options.judge[0]})
    if settings.cache_file is None:
        raise SettingsError("rejudge: batches need the verdict cache. Unset CULTURE_JUDGE_CACHE=off.")

    def judge_for(paper_model: str) -> BatchJudge:
        spec = spec_for(settings, paper_model)
        if spec.backend != "openai":
            raise SettingsError(f"rejudge: {spec} has no batches. Name a judge behind an endpoint: openai:<model>.")
        if spec.model not in judges:
            judges[spec.model] = BatchJudge(spec.model, settings, asks=options.batches != "collect")
        return judges[spec.model]

    return Session(settings, judge_for)


def _rounds(
    options: argparse.Namespace,
    work: tuple[Session, Sequence[tuple[RunFiles, Sequence[TaskToGrade]]]],
    judges: Mapping[str, BatchJudge],
    result_files: Sequence[Path],
    stack: ExitStack,
) -> BatchRounds:
    session, gradings = work
    rubrics = {sample.rubric.name: sample.rubric for task in _tasks(gradings) for sample in task.samples}
    for rubric in rubrics.values():
        stack.callback(session.judge(rubric.model).close)
    endpoint = BatchEndpoint(next(iter(judges.values())).address, session.settings)
    stack.callback(endpoint.close)
    file = state_file(result_files)
    rounds = BatchRounds(judges, rubrics, endpoint=endpoint, file=file, say=_say, resend=options.resend)
    if options.batches == "collect" and not rounds.were_sent:
        raise DataError(f"rejudge: no batches of these results were sent ({file} isn't there). Use --submit first.")
    rounds.adopt_sampling()
    return rounds


def _status(rounds: BatchRounds, mode: str) -> int | None:
    """Sends, waits or collects; returns the exit status where the files aren't to be written yet."""
    if mode == "wait":
        rounds.wait()
    elif mode == "submit":
        rounds.submit()
    elif open_batches := rounds.collect():
        show(f"{described(open_batches).capitalize()}. Collect again later.")
        return _STILL_OPEN
    if unfetched := rounds.unfetched:
        print(
            f"{unfetched:,} requests are in batches that have ended and whose results can't be fetched, so they aren't "
            "sent again. The same command tries once more. --resend, with --batch or --submit, sends them again, and "
            "they are paid for a second time (`culture-tasks cost` with --results and --batch estimates how much)."
        )
        return _STILL_OPEN
    if mode == "submit" and rounds.were_sent:
        print("Fetch the results with `culture-tasks rejudge` and the same options, but --collect for --submit.")
        return 0
    if mode == "collect" and (remaining := rounds.open_requests()):
        foreign = rounds.foreign_results()
        ending = f". {foreign:,} results belong to other samples or settings: were they the same?" if foreign else "."
        print(
            f"{remaining:,} requests are still open: they failed, expired, or an unreadable reply is to be asked for "
            "again. `--submit` sends them in another batch; without it and --collect, they are asked at once, at full "
            f"price{ending}"
        )
        return _STILL_OPEN
    return None


def _say(line: str) -> None:
    show(line, sys.stderr)


def _tasks(gradings: Sequence[tuple[RunFiles, Sequence[TaskToGrade]]]) -> list[TaskToGrade]:
    return [task for _, tasks in gradings for task in tasks]


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


def _print(summary: Mapping[str, Any], prices: Prices, *, shows_judge: bool) -> None:
    judge = f", judge {summary['judge']}" if shows_judge else ""
    show(f"{summary['result_file']}{judge}")
    rows = [
        [f"{value:.4f}" if isinstance(value, float) else printable(str(value)) for value in score.values()]
        for score in summary["scores"]
    ]
    print(as_markdown(("task", "metric", "value", "stderr", "coverage"), rows))
    for cost in summary["costs"]:
        usage = cost["tokens"]
        tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens{discounts_of(usage)}"
        print(f"{cost['verdicts']:,} verdicts {cost['part']}: {tokens}, {prices.text(cost['money'])}")
