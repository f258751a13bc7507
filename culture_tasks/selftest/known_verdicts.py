"""Whether a judge's verdicts on twenty answers that are clearly right or wrong are what anybody would give."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from itertools import cycle
from typing import NamedTuple

from culture_tasks.benchmarks.registry import rubrics
from culture_tasks.errors import WAYS_OUT, JudgeNotConfiguredError
from culture_tasks.judges.judge import Ticket
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.judges.selection import make_judge, spec_for
from culture_tasks.selftest.findings import Finding
from culture_tasks.settings import Settings

_BAND = 0.25
"""Share of a rubric's range, from the end that is right, in which a verdict agrees."""

_GOOD, _POOR = 0.9, 0.75
"""Shares of agreement: from the first on a judge is right, and below the second nothing it says counts."""


class _Graded(NamedTuple):
    rubric: Rubric
    is_right: bool
    response: str
    ticket: Ticket


def grade_known_answers(settings: Settings) -> Finding:
    """Has the judge grade ten right answers and ten wrong ones, each question by the next rubric, past the cache."""
    graded: list[_Graded] = []
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
    try:
        for answer, (rubric, spec) in zip(answers, cycle(specs), strict=False):
            for is_right in (True, False):
                response = answer["right" if is_right else "wrong"]
                item = JudgeItem(answer["question"], (answer["reference"],), response, language=answer["language"])
                graded.append(_Graded(rubric, is_right, response, judges[spec].submit(rubric, item)))
        verdicts = [each.ticket.verdict() for each in graded]
    finally:
        for judge in judges.values():
            judge.close()
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    scores = [verdict.score for verdict in verdicts]
    apart = [each for each, score in zip(graded, scores, strict=True) if score is not None and not _agrees(each, score)]
    agreed, scored = outcomes["scored"] - len(apart), outcomes["scored"]
    judged_by = ", ".join(map(str, named))
    found = f"{judged_by}: {agreed} of {len(graded)} verdicts as expected, {len(graded) - scored} unread or failed"
    listed = [
        {
            "rubric": each.rubric.name,
            "right": each.is_right,
            "response": each.response,
            "rating": verdict.score,
            "outcome": verdict.outcome,
            "error": verdict.error,
        }
        for each, verdict in zip(graded, verdicts, strict=True)
    ]
    facts = {"outcomes": dict(outcomes), "agreed": agreed, "verdicts": listed}
    if reasons := [verdict.error for verdict in verdicts if verdict.error]:
        found += f", such as {reasons[0]}"
    if agreed >= _GOOD * len(graded) and scored == len(graded):
        return Finding("ok", found, facts=facts)
    remedy = "Look at the verdicts (--json). A judge needs a larger model, another prompt version or more tokens."
    if apart:
        wrong = f"{'right' if apart[0].is_right else 'wrong'} answer {apart[0].response!r}"
        remedy = f"The {wrong} has another verdict by {apart[0].rubric.name}. {remedy}"
    return Finding("note" if agreed >= _POOR * len(graded) else "fix", found, remedy, facts)


def _agrees(graded: _Graded, rating: float) -> bool:
    rubric = graded.rubric
    place = (rating - rubric.lowest) / (rubric.highest - rubric.lowest)
    return place >= 1 - _BAND if graded.is_right else place <= _BAND
