"""Whether a judge's verdicts on twenty answers that are clearly right or wrong are what anybody would give."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from itertools import cycle

from culture_tasks.benchmarks.registry import rubrics
from culture_tasks.errors import WAYS_OUT, JudgeNotConfiguredError
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.judges.selection import make_judge, spec_for
from culture_tasks.selftest.findings import Finding
from culture_tasks.settings import Settings

_BAND = 0.25
"""Share of a rubric's range, from the end that is right, in which a verdict agrees."""

_GOOD, _POOR = 0.9, 0.75
"""Shares of agreement: from the first on a judge is right, and below the second nothing it says counts."""


def grade_known_answers(settings: Settings) -> Finding:
    """Has the judge grade ten right answers and ten wrong ones, each question by the next rubric, past the cache."""
    try:
        specs = [(rubric, spec_for(settings, rubric.model)) for rubric in rubrics().values()]
    except JudgeNotConfiguredError:
        return Finding("note", "none is configured", WAYS_OUT)
    judge_specs = list(dict.fromkeys(spec for _, spec in specs))
    if any(spec.backend == "none" for spec in judge_specs):
        return Finding("note", "none: responses are recorded, and graded later by `culture-tasks rejudge`")
    if all(spec.backend == "lexical" for spec in judge_specs):
        return Finding("note", "text overlap stands in for a judge: good for trials, not for results")
    uncached = settings.model_copy(update={"judge_cache": "off"})
    judges = {spec: make_judge(spec, uncached) for spec in judge_specs}
    answers = json.loads(resources.files(__package__).joinpath("known_answers.json").read_text(encoding="utf-8"))
    requests = [
        (spec, rubric, side, JudgeItem(row["question"], (row["reference"],), row[side], language=row["language"]))
        for row, (rubric, spec) in zip(answers, cycle(specs), strict=False)
        for side in ("right", "wrong")
    ]
    try:
        for spec, judge in judges.items():
            judge.check([(rubric, item) for item_spec, rubric, _, item in requests if item_spec == spec])
        tickets = [judges[spec].submit(rubric, item) for spec, rubric, _, item in requests]
        verdicts = [ticket.verdict() for ticket in tickets]
    finally:
        for judge in judges.values():
            judge.close()
    listed = [
        {
            "rubric": rubric.name,
            "side": side,
            "response": item.response,
            "rating": verdict.score,
            "agrees": None if verdict.score is None else _agrees(rubric, side, verdict.score),
            "error": verdict.error,
        }
        for (_, rubric, side, item), verdict in zip(requests, verdicts, strict=True)
    ]
    agreed = sum(row["agrees"] is True for row in listed)
    unread = [verdict for verdict in verdicts if verdict.score is None]
    summary = f"{', '.join(map(str, judge_specs))}: {agreed} of {len(listed)} verdicts as expected"
    if unread:
        summary += f", {len(unread)} unread or failed, such as: {unread[0].error}"
    facts = {"outcomes": Counter(verdict.outcome for verdict in verdicts), "agreed": agreed, "verdicts": listed}
    if agreed >= _GOOD * len(listed) and not unread:
        return Finding("ok", summary, facts=facts)
    remedy = "Look at the verdicts (--json). A judge needs a larger model, another prompt version or more tokens."
    if example := next((row for row in listed if row["agrees"] is False), None):
        rating = f"{example['rating']:g} by {example['rubric']}"
        remedy = f"The {example['side']} answer {example['response']!r} has {rating}. {remedy}"
    return Finding("note" if agreed >= _POOR * len(listed) else "fix", summary, remedy, facts)


def _agrees(rubric: Rubric, side: str, rating: float) -> bool:
    place = (rating - rubric.lowest) / (rubric.highest - rubric.lowest)
    return place >= 1 - _BAND if side == "right" else place <= _BAND
