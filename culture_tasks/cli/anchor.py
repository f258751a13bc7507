"""``culture-tasks anchor``: has the judge behind a name changed?"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from culture_tasks.cli.options import AddParser, add_json, add_tasks, at_least, print_json, show
from culture_tasks.costs.prices import read_prices
from culture_tasks.judges.endpoint.budget import refused_requests
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.judges.selection import close_judges, make_judge, spec_for
from culture_tasks.metrics.intervals import Interval
from culture_tasks.rejudge import anchors
from culture_tasks.rejudge.anchors import Anchor, NewVerdict, Round
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text

_DRIFT, _ERROR, _NOTHING_RATED, _INTERRUPTED = 1, 2, 3, 130

_DESCRIPTION = """\
Finds out whether the judge behind a name has changed: keeps an anchor set of responses with the ratings that they have
now, and asks the judge for them again, on any day and as often as you like.
"""

_MAKE = """\
Draws responses from judged runs of one judge, evenly from tasks, cultures and ratings, one per cluster, and writes them
with their ratings to one file. The same runs give the same file. The judge isn't asked.
"""

_CHECK = """\
Asks the judge for the ratings of an anchor set again, past the verdict cache, and adds them to a history file beside
it. The interval of the mean difference holds on any day: an unchanged judge is called changed in at most 5 % of
cases, however often you look. Exit status: 0 no drift seen, 1 drift, 2 an error, 3 the judge gave no rating.
"""

_EPILOG = """\
examples:
  culture-tasks anchor make results/ -o anchor.jsonl
  culture-tasks anchor check anchor.jsonl --judge openai:gpt-4o
"""


def register(add_parser: AddParser) -> None:
    """Adds the command with its two steps."""
    steps = add_parser(description=_DESCRIPTION, epilog=_EPILOG).add_subparsers(
        title="steps", metavar="STEP", required=True
    )
    make = steps.add_parser("make", help="draw an anchor set from judged runs", description=_MAKE)
    make.add_argument("results", nargs="+", type=Path, help="result files, folders with result files, or patterns")
    make.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="file to write, such as a.jsonl")
    size = "number of responses (default: %(default)s); docs/drift.md says which change is found by how many"
    make.add_argument("--size", type=at_least(1), default=200, metavar="N", help=size)
    judge = "the judge whose verdicts are taken, as in CULTURE_JUDGE, where the runs have several"
    make.add_argument("--judge", metavar="SPEC", help=judge)
    add_tasks(make, "only these tasks (default: all)")
    add_json(make)
    make.set_defaults(handler=_make)
    check = steps.add_parser("check", help="ask the judge again, and decide", description=_CHECK)
    check.add_argument("anchor", type=Path, help="file that `anchor make` has written")
    check.add_argument("--judge", metavar="SPEC", help="the judge, as in CULTURE_JUDGE (default: that variable)")
    number = "ask for at most N ratings in this look (default: all that are left in the round)"
    check.add_argument("-n", "--number", type=at_least(1), metavar="N", help=number)
    add_json(check)
    check.set_defaults(handler=_check, error_status=_ERROR)


def _make(options: argparse.Namespace) -> int:
    draw = {"size": options.size, "judge": options.judge, "tasks": options.tasks}
    anchor = anchors.make_anchor(options.results, options.output, **draw)
    counts = Counter(row.task for row in anchor.rows)
    if options.json:
        print_json({"file": anchor.path, "judge": anchor.judge_name, "tasks": counts})
        return 0
    print(as_text(("task", "responses"), [(task, str(counts[task])) for task in sorted(counts)]))
    show(f"{anchor.path}: {len(anchor.rows)} responses with ratings by {anchor.judge_name}")
    if len(anchor.rows) < options.size:
        print("These are all that there are, one per cluster. Runs of other questions add more.")
    return 0


def _check(options: argparse.Namespace) -> int:
    anchor = anchors.read_anchor(options.anchor)
    settings = Settings.from_environment()
    settings = settings.model_copy(update={"judge_cache": "off", "judge": options.judge or settings.judge})
    prices = read_prices(settings.prices_file)
    spec = spec_for(settings, next(iter(anchor.rubrics.values())).model)
    number, rows = anchors.open_rows(anchor, anchors.read_history(anchor))
    rows = rows[: options.number]
    usage, ratings = Usage(), 0
    with ExitStack() as stack:
        stack.callback(close_judges)  # and forget the budget
        judge = make_judge(spec, settings)
        stack.callback(judge.close)
        anchors.check_identity(anchor, judge, sampling=False)
        judge.check([(anchor.rubrics[row.judge.rubric], row.item) for row in rows])
        anchors.check_identity(anchor, judge, sampling=True)
        try:
            for verdict in anchors.ask_again(anchor, rows, judge, round_number=number, date=datetime.now(UTC)):
                usage += verdict.usage
                ratings += verdict.score is not None
        except KeyboardInterrupt:
            print("Interrupted. The ratings so far are kept: the same command goes on.", file=sys.stderr)
            return _INTERRUPTED
        if refused_requests():
            note = "CULTURE_JUDGE_BUDGET is used up: raise it, or ask for fewer ratings with -n."
            print(note, file=sys.stderr if options.json else sys.stdout)
    money = prices.cost_of_requests(spec.model, usage)
    history = anchors.read_history(anchor)
    if options.json:
        look = {"verdicts": len(rows), "rated": ratings, "tokens": usage, "money": money, "currency": prices.currency}
        rounds = anchors.rounds(anchor, history)
        entries = [{**round_._asdict(), "identical": round_.identical, "limit": round_.limit} for round_ in rounds]
        has_changed = any(round_.alarm for round_ in rounds)
        print_json({"judge": anchor.judge_name, "changed": has_changed, "look": look, "rounds": entries})
        return _DRIFT if has_changed else 0 if ratings else _NOTHING_RATED
    cost = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens, {prices.text(money)}"
    print(f"This look: {len(rows):,} verdicts asked for, {len(rows) - ratings:,} without a rating; {cost}.")
    return _DRIFT if _print(anchor, history) else 0 if ratings else _NOTHING_RATED


def _print(anchor: Anchor, history: Sequence[NewVerdict]) -> bool:
    """Prints all rounds and the decision, and returns whether the judge has changed."""
    rounds, scale = anchors.rounds(anchor, history), "on the scale from {} to {}".format(*anchor.scale)
    header = ("round", "asked", "no rating", "identical", "mean difference", "interval")
    print(as_text(header, list(map(_row, rounds))))
    looks, rated_lines = len({line.date for line in history}), [line for line in history if line.rating is not None]
    identical = _share(sum(round_.identical for round_ in rounds), len(rated_lines))
    print(f"All looks: {looks}; verdicts asked for: {len(history):,}; identical ratings: {identical or 'none yet'}.")
    cap = anchors.most_points(*anchor.scale)
    if larger := sum(abs(difference) > cap for round_ in rounds for difference in round_.differences):
        print(f"Differences of more than {cap:g} points, which count as {cap:g}: {larger}.")
    model = anchor.rows[0].judge.model
    old_models = sorted({row.reply_model or model for row in anchor.rows})
    new_models = sorted({line.reply_model or model for line in rated_lines if line.round == rounds[-1].number})
    if new_models and new_models != old_models:
        show(f"The endpoint names the model {', '.join(new_models)}; with the old ratings, {', '.join(old_models)}.")
    if alarm := next((round_.alarm for round_ in reversed(rounds) if round_.alarm), None):
        date, change = alarm
        print(f"The judge has changed by {change.value:+.2f} ({_ends(change)}) {scale} (look of {date:%Y-%m-%d}).")
        print("Scores from before and after don't compare: grade all with one judge, and make a new anchor set.")
    elif rounds[-1].differences:
        print(f"No drift seen; one of more than {rounds[-1].limit:.2f} {scale} would have been found by now.")
    return alarm is not None


def _row(round_: Round) -> tuple[str, ...]:
    ratings = len(round_.differences)
    counts = (str(round_.number), str(round_.asked), str(round_.asked - ratings), _share(round_.identical, ratings))
    return (*counts, f"{round_.difference.value:+.2f}", _ends(round_.difference)) if ratings else (*counts, "", "")


def _share(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else ""


def _ends(change: Interval) -> str:
    return f"{change.low:+.2f} to {change.high:+.2f}"
