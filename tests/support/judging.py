"""What tests of judges share: a key to look for, patience that loses no time, and verdicts that are waited for."""

from __future__ import annotations

from collections.abc import Iterable

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Verdict

KEY = "sk-very-secret-0123456789abcdef"
QUICK = Patience(longest=20.0, first=0.004, cap=0.02)
BRIEF = Patience(longest=0.5, first=0.004, cap=0.02)


def ask(judge: Judge, item: JudgeItem, rubric: Rubric = LAVE) -> Verdict:
    """Returns a judge's verdict on an item."""
    return judge.submit(rubric, item).verdict()


def ask_all(judge: Judge, items: Iterable[JudgeItem], rubric: Rubric = LAVE) -> list[Verdict]:
    """Returns a judge's verdicts on items that were submitted together."""
    return [ticket.verdict() for ticket in [judge.submit(rubric, item) for item in items]]
