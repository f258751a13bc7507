"""NormAd as a benchmark: the same stories with five amounts of context, answered by Yes, No or Neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.choices import by_likelihood, read_choice
from culture_tasks.benchmarks.interface import (
    Answered,
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Entry,
    MeanScore,
    Prompt,
    Scale,
    Tag,
    Task,
)
from culture_tasks.benchmarks.normad.documents import (
    ALIASES,
    BIN_OF,
    BINS,
    CONDITIONS,
    LABELS,
    SOURCE,
    STORIES,
    TOPICS,
    Condition,
    StoryRow,
    load,
)
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.text import answer_in

if TYPE_CHECKING:
    from culture_tasks.benchmarks.reporting import BenchmarkReport

PERCENT = Scale("percent", 0.0, 100.0, digits=1, times=100.0)
UNREAD = Scale("percent", 0.0, 100.0, better="lower", digits=1, times=100.0)
SHARE = Scale("percent", 0.0, 100.0, better=None, digits=1, times=100.0)

ACCURACY = "acc"
AUTHORS = "acc_authors"
"""Accuracy by the authors' reader, :func:`authors_label`."""

YES_OR_NO = "acc_yes_no"
"""Accuracy on the stories whose label is yes or no: a model that is neutral throughout has 0."""

SAID: dict[str, str] = {label: f"said_{option.lower()}" for label, option in LABELS.items()}
"""Share of the replies that say an option, by label."""

UNPARSED = "unparsed"

ABOUT: dict[Condition, str] = {
    "none": "no context: the control",
    "country": "given the country",
    "value": "given an abstract value",
    "country_value": "given the country and the value",
    "rule": "given the norm (rule of thumb)",
}

_OPTIONS = {str(number): option for number, option in enumerate(LABELS.values(), start=1)}


class NormAd(Benchmark):
    """NormAd (Rao et al., 2025)."""

    name = "normad"
    title = "NormAd"
    paper = "Rao et al., 2025"
    data = "Hub akhilayerukola/NormAd"
    made_from = ("Cultural Atlas",)

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each amount of context, and a name for all of them; and the same by log-likelihood."""
        tasks = [
            Task(
                name=f"normad_{condition}",
                about=f"is an action in a story acceptable, {ABOUT[condition]}",
                title=f"{self.title}, {ABOUT[condition]}",
                languages=("en",),
                metric=ACCURACY,
                metrics=_metrics,
                data=DataSet((SOURCE,), partial(load, condition)),
                prompt=partial(ask, condition),
                score=partial(score, condition),
                decoding=Decoding(max_tokens=50),
                target=lambda doc: LABELS[doc["label"]],
                tag=self.name,
                note="Decoding: the authors' 50 tokens; greedy, where they have a temperature of 0.001.",
            )
            for condition in CONDITIONS
        ]
        variants = [by_likelihood(task, lambda _: tuple(LABELS.values())) for task in tasks]
        about = "is an action in a story acceptable, with five amounts of context"
        return (
            Tag(name=self.name, about=about, members=tuple(task.name for task in tasks)),
            *tasks,
            Tag(
                name=f"{self.name}_ll",
                about=f"{about}; by log-likelihood",
                members=tuple(task.name for task in variants),
            ),
            *variants,
        )

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the stories."""
        stories = TableCheck(source=SOURCE, model=StoryRow, aliases=ALIASES, id="id", counts=_counts)
        return check_tables(self.name, data_folder, [stories])

    def report(self) -> BenchmarkReport:
        """Returns how it is reported."""
        from culture_tasks.benchmarks.normad.report import REPORT

        return REPORT


@cache
def _metrics() -> tuple[MeanScore, ...]:
    groups = {"label": tuple(LABELS), "bin": tuple(BINS), "topic": TOPICS, "country": tuple(BIN_OF)}
    return (
        MeanScore(name=ACCURACY, title="accuracy", scale=PERCENT, groups=groups),
        MeanScore(name=YES_OR_NO, title="accuracy on stories that are not neutral", scale=PERCENT),
        MeanScore(name=AUTHORS, title="accuracy by the authors' reader", scale=PERCENT),
        *(MeanScore(name=name, title=f"replies {LABELS[label]}", scale=SHARE) for label, name in SAID.items()),
        MeanScore(name=UNPARSED, title="replies without a choice", scale=UNREAD),
    )


def prompt_of(condition: Condition) -> PromptFile:
    """Returns the template of a condition; the value alone takes that of the rule of thumb."""
    return prompt_file(__package__, f"{'rule' if condition == 'value' else condition}.v1")


def ask(condition: Condition, doc: Doc) -> Prompt:
    """Returns the prompt of a story; the country stands as in the data, lower case and underscores."""
    return Prompt((prompt_of(condition).fill({name: doc[name] for name in ("country", "rule", "story")}),))


def authors_label(reply: str) -> str:
    """Returns the label that the authors' script reads: whatever it doesn't find is neutral.

    Examples:
        >>> authors_label("Yes."), authors_label("Not at all"), authors_label("yes"), authors_label("I can't say.")
        ('yes', 'no', 'neutral', 'neutral')
    """
    if "Yes" in reply or "option 1" in reply.lower():
        return "yes"
    return "no" if "No" in reply or "option 2" in reply.lower() else "neutral"


def score(condition: Condition, doc: Doc, responses: Sequence[str]) -> Answered:
    """Reads which option the responses choose. One that chooses none for certain is wrong, and no neutral answer."""
    numbers = [read_choice(response, _OPTIONS) for response in responses]
    labels = [None if number is None else tuple(LABELS)[int(number) - 1] for number in numbers]

    def share(found: Sequence[str | None], label: str | None) -> float:
        return sum(one == label for one in found) / len(found)

    right = share(labels, doc["label"])
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["story"],
        references=(LABELS[doc["label"]],),
        groups={
            "label": doc["label"],
            "country": doc["country"],
            "bin": BIN_OF.get(doc["country"], ""),
            "topic": doc["topic"],
        },
        cluster=doc["id"],
        data={"data": doc["data"]},
        prompt=prompt_of(condition),
        labels=tuple(labels),
        score=right,
        values={
            YES_OR_NO: None if doc["label"] == "neutral" else right,
            AUTHORS: share([authors_label(answer_in(response)) for response in responses], doc["label"]),
            **{name: share(labels, label) for label, name in SAID.items()},
            UNPARSED: share(labels, None),
        },
    )


def _counts(rows: Sequence[StoryRow]) -> Iterator[Count]:
    yield Count("stories", str(len(rows)), f"{STORIES}")
    yield Count("countries", str(len({row.country for row in rows})), str(len(BIN_OF)))
    labels = Counter(row.label for row in rows)
    for label in LABELS:
        yield Count(f"stories labelled {label}", str(labels[label]))


BENCHMARK = NormAd()
