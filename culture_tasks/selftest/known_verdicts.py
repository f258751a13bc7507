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
    named = list(dict.fromkeys(spec for _, spec in specs))
    if any(spec.backend == "none" for spec in named):
        return Finding("note", "none: responses are recorded, and graded later by `culture-tasks rejudge`")
    if all(spec.backend == "lexical" for spec in named):
        return Finding("note", "text overlap stands in for a judge: good for trials, not for results")
    uncached = settings.model_copy(update={"judge_cache": "off"})
    judges = {spec: make_judge(spec, uncached) for spec in named}
    answers = json.loads(resources.files(__package__).joinpath("known_answers.json").read_text(encoding="utf-8"))
    requests = [
        (spec, rubric, side, JudgeItem(each["question"], (each["reference"],), each[side], language=each["language"]))
        for each, (rubric, spec) in zip(answers, cycle(specs), strict=False)
        for side in ("right", "wrong")
    ]
    try:
        for spec, judge in judges.items():
            judge.check([(rubric, item) for named_by, rubric, _, item in requests if named_by == spec])
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
    agreed = sum(each["agrees"] is True for each in listed)
    unread = [verdict for verdict in verdicts if verdict.score is None]
    found = f"{', '.join(map(str, named))}: {agreed} of {len(listed)} verdicts as expected"
    if unread:
        found += f", {len(unread)} unread or failed, such as: {unread[0].error}"
    facts = {"outcomes": Counter(verdict.outcome for verdict in verdicts), "agreed": agreed, "verdicts": listed}
    if agreed >= _GOOD * len(listed) and not unread:
        return Finding("ok", found, facts=facts)
    remedy = "Look at the verdicts (--json). A judge needs a larger model, another prompt version or more tokens."
    if other := next((each for each in listed if each["agrees"] is False), None):
        remedy = (
            f"The {other['side']} answer {other['response']!r} has {other['rating']:g} by {other['rubric']}. {remedy}"
        )
    return Finding("note" if agreed >= _POOR * len(listed) else "fix", found, remedy, facts)


def _agrees(rubric: Rubric, side: str, rating: float) -> bool:
    place = (rating - rubric.lowest) / (rubric.highest - rubric.lowest)
    return place >= 1 - _BAND if side == "right" else place <= _BAND
