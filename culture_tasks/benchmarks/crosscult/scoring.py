"""How the answers to a request of CrossCult-KIBench are scored: by ROUGE-L and by the judge of Figure 10.

In locality the reference is the model's answer without any insertion. A model that inserts returns a list of three
texts: the answer; the answer without insertions, or the answer again where the document doesn't want it; and its
method's facts about the request as JSON. Any other model returns one text, which is both answers: nothing was inserted,
so nothing can have changed, and its ROUGE-L is 100.

Identical texts are judged like all others, and not taken for a 10: the paper's base model scores 9.99, 9.98 and 9.89 in
locality (Tables 2 and 3), so its judge was asked too. The judge asks an identical question once, and its cache keeps
the reply for later runs and other methods.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition
from culture_tasks.benchmarks.crosscult.rubrics import CROSSCULT
from culture_tasks.benchmarks.crosscult.vocabulary import LOCALITY_ROLES, TOPICS, Setting
from culture_tasks.benchmarks.interface import Doc, JudgedScore, MeanScore, Metric, Scale, Score
from culture_tasks.metrics.rouge import rouge_l
from culture_tasks.text import answer_in, storable

OVERLAP = "rouge_l"  # F in percent: 0 to 100, higher is nearer
JUDGED = "judge_score"  # of the judge of Figure 10: 0 (opposite or irrelevant) to 10 (the same meaning)

_FACTS = "case_id", "setting", "scenario", "order", "step", "image_id", "insertion_image_id", "request_scenario"


class InsertionResponse(NamedTuple):
    """One response: with the insertions, without them, and the method's facts about the request, as JSON."""

    text: str
    base: str
    routing: str = "{}"


class Insertions:
    """Response filter that makes of each response the three texts of :class:`InsertionResponse`, all in a flat list.

    It is flat because lmms-eval strips each element before ``process_results``.
    """

    def __init__(self, **_: object) -> None:
        """Takes what the harnesses pass, and needs none of it."""

    def apply(self, resps: Sequence[Sequence[Any]], docs: Any) -> list[list[str]]:  # noqa: ARG002
        """Returns the texts of each document's runs."""
        return [[text for run in runs for text in _answer(run)] for runs in resps]


def _answer(run: Any) -> InsertionResponse:
    if not isinstance(run, (list, tuple)):
        text = "" if run is None else str(run)
        return InsertionResponse(text, text)
    if len(run) not in (2, 3):
        raise ValueError(f"crosscult: a response is a list of {len(run)}; expected [answer, base answer, routing]")
    return InsertionResponse(*map(str, run))


def metrics(setting: Setting, edition: Edition = PAPER) -> list[Metric]:
    """Returns the metrics of a setting's tasks, with means for parts of data that are of several partitions."""
    partitions = {"diagnostic": edition.codes, "single": edition.targets}.get(setting)
    groups = {"topic": TOPICS, "partition": partitions} if partitions else {}
    return [
        MeanScore(name=OVERLAP, title="ROUGE-L", scale=Scale("percent", 0.0, 100.0), groups=groups),
        JudgedScore(name=JUDGED, title="the judge's score", scale=Scale("score", 0.0, 10.0), groups=groups),
    ]


def score(doc: Doc, responses: Sequence[str], edition: Edition = PAPER) -> Score:
    """Scores the answers to a request, the texts of :class:`Insertions`; without any, it is not answered yet."""
    texts = list(responses) if len(responses) > 1 else _answer("".join(responses))
    answers = [InsertionResponse(*texts[start : start + 3]) for start in range(0, len(texts), 3)]
    reference = _cleaned(answers[0].base if doc["role"] in LOCALITY_ROLES else doc["reference"])
    overlaps = [rouge_l(_cleaned(answer.text), reference) for answer in answers]
    return Score(
        item=doc["id"],
        responses=[answer.text for answer in answers],
        question=doc["question"],
        references=(reference,),
        groups={
            "role": doc["role"],
            "topic": doc["topic"],
            "partition": doc["partition"],
            "language": doc["language"],
            "after": str(len(doc["insertions"])),
        },
        cluster=doc["scenario"],
        image=doc["image_id"],
        data={"data": doc["data"], "draw": doc["draw"]},
        # which insertion was used, scores and tokens, as the method says
        facts={name: doc[name] for name in _FACTS} | json.loads(answers[0].routing),
        rubric=CROSSCULT,
        judge_language=edition[doc["language"]].language,
        values={OVERLAP: sum(overlaps) / len(overlaps)},
    )


def _cleaned(text: str) -> str:
    return answer_in(storable(text))
