"""NormAd: the same stories with five amounts of context, answered by Yes, No or Neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from culture_tasks.benchmarks.choice_reader import read_choice
from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, UNPARSED, filled, score_choices, share
from culture_tasks.benchmarks.interface import (
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    MeanScore,
    Score,
    Tag,
    Variant,
)
from culture_tasks.benchmarks.likelihood import by_likelihood
from culture_tasks.benchmarks.reporting import Groups, names_in
from culture_tasks.benchmarks.tables import BenchmarkNumbers
from culture_tasks.benchmarks.tables import Table as ReportTable
from culture_tasks.data.checking import count, tally
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, OptionalText, TableRow, Text, one_of
from culture_tasks.data.tables import Release, Table
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in
from culture_tasks.vocabulary import places

STORIES = 2_633

LABELS: Mapping[str, str] = {"yes": "Yes", "no": "No", "neutral": "Neither"}
"""Whether the action is acceptable, as in the data, and the option of the prompt."""

BIN_OF = names_in(__package__, "countries.txt")
"""The countries by the bins of Inglehart and Welzel, as the authors assign them (``src/data_description.py``)."""

TOPIC_OF = names_in(__package__, "topics.txt")
"""The sub-axes by the four topics that the authors merge them into."""

GROUPS = {
    "label": Groups(LABELS),
    "bin": Groups(tuple(dict.fromkeys(BIN_OF.values())), of=lambda doc: BIN_OF.get(doc["country"], "")),
    "topic": Groups({topic: topic.replace("_", " ").capitalize() for topic in TOPIC_OF.values()}),
    "country": Groups(tuple(BIN_OF), places=places, shown=False),
}

CONDITIONS: Mapping[str, str] = {
    "none": "no context: the control",
    "country": "given the country",
    "value": "given an abstract value",
    "country_value": "given the country and the value",
    "rule": "given the norm (rule of thumb)",
}
"""The context beside the story."""


class StoryRow(TableRow):
    """A story."""

    id: Identifier
    country: Annotated[Label, one_of(sorted(BIN_OF))]
    value: OptionalText = None
    rule: OptionalText = None
    story: Text
    label: Annotated[Label, one_of(LABELS)]
    subaxis: OptionalLabel = None
    background: OptionalText = None
    axis: OptionalLabel = None
    explanation: OptionalText = None


STORY_TABLE = Table(
    model=StoryRow,
    folder="normad",
    stems=("normad_etiquette_final_data", "normad"),
    hub="akhilayerukola/NormAd",
    split="train",
    aliases={"Rule-of-Thumb": "rule", "Gold Label": "label"},
    id="ID",
    release=Release(STORIES),
    counts=lambda rows: [
        count("stories", len(rows), STORIES),
        *tally("stories labelled {}", (row.label for row in rows), LABELS),
    ],
)


def load(condition: str, settings: Settings) -> Documents:
    """Loads the stories with a condition's facts of the culture; raises DataError if they can't be used."""
    stories = STORY_TABLE.rows(settings)
    data = stories.fingerprint(include={"id", "country", "value", "rule", "story", "label"})
    # The value takes the place of the rule of thumb in the authors' templates.
    field, column = ("rule", "Rule-of-Thumb") if condition == "rule" else ("value", "Value")
    if condition in ("value", "country_value", "rule"):
        advice = f"normad_{condition} shows it to the model: complete the row, or leave this task out."
        stories.require(advice, **{field: column})
    documents = [
        {
            "id": identifier,
            "country": row.country,
            "topic": TOPIC_OF.get((row.subaxis or "").lower(), ""),
            "story": row.story,
            "rule": getattr(row, field) or "",
            "label": row.label,
            "data": data,
        }
        for identifier, row in stories
    ]
    return Documents(documents, reading=stories.reading)


YES_OR_NO = MeanScore(name="acc_yes_no", title="accuracy on stories that are not neutral", scale=PERCENT)
"""Accuracy on the stories whose label is yes or no: a model that is neutral throughout has 0."""

AUTHORS = MeanScore(name="acc_authors", title="accuracy by the authors' reader", scale=PERCENT)
"""Accuracy by the authors' reader, :func:`authors_label`."""

SAID = {
    label: MeanScore(name=f"said_{option.lower()}", title=f"replies {option}", scale=replace(PERCENT, better=None))
    for label, option in LABELS.items()
}
"""Share of the replies that say an option, by label."""

METRICS = (replace(ACCURACY, groups=GROUPS), YES_OR_NO, AUTHORS, *SAID.values(), UNPARSED)


def authors_label(reply: str) -> str:
    """Returns the label that the authors' script reads: whatever it doesn't find is neutral.

    Examples:
        >>> authors_label("Yes."), authors_label("Not at all"), authors_label("yes"), authors_label("I can't say.")
        ('yes', 'no', 'neutral', 'neutral')
    """
    if "Yes" in reply or "option 1" in reply.lower():
        return "yes"
    return "no" if "No" in reply or "option 2" in reply.lower() else "neutral"


def score(prompt: str, doc: Doc, responses: Sequence[str]) -> Score:
    """Reads which option the responses choose."""
    right, label_of = doc["label"], dict(zip("123", LABELS, strict=True))
    options = {number: LABELS[label] for number, label in label_of.items()}
    labels = [label_of.get(read_choice(response, options) or "") for response in responses]
    return score_choices(
        doc,
        responses,
        labels,
        right,
        GROUPS,
        values={
            YES_OR_NO.name: None if right == "neutral" else share(labels, right),
            AUTHORS.name: share([authors_label(answer_in(response)) for response in responses], right),
            **{metric.name: share(labels, label) for label, metric in SAID.items()},
        },
        question=doc["story"],
        references=(LABELS[right],),
        cluster=doc["id"],
        prompt=prompt_file(__package__, prompt),
    )


VARIANTS = [
    Variant(
        f"_{condition}",
        about,
        f"{'rule' if condition == 'value' else condition}.v1",
        Decoding(max_tokens=50),  # the authors' code, which has a temperature of 0.001
        about=f"is an action in a story acceptable, {about}",
        condition=condition,
    )
    for condition, about in CONDITIONS.items()
]
_TASKS = [
    variant.task(
        "normad",
        "NormAd",
        languages=("en",),
        metrics=lambda: METRICS,
        data=DataSet((STORY_TABLE,), partial(load, variant.facts["condition"])),
        prompt=filled(__package__, variant.prompt),
        score=partial(score, variant.prompt),
        target=lambda doc: LABELS[doc["label"]],
        tag="normad",
    )
    for variant in VARIANTS
]
_BY_LIKELIHOOD = [by_likelihood(task, lambda _: tuple(LABELS.values())) for task in _TASKS]
_ABOUT = "is an action in a story acceptable, with five amounts of context"
ENTRIES: Sequence[Entry] = (
    Tag(name="normad", about=_ABOUT, members=tuple(task.name for task in _TASKS)),
    *_TASKS,
    Tag(name="normad_ll", about=f"{_ABOUT}; by log-likelihood", members=tuple(task.name for task in _BY_LIKELIHOOD)),
    *_BY_LIKELIHOOD,
)


class NormAd(Benchmark):
    """NormAd (Rao et al., 2025)."""

    name, title, paper, data = "normad", "NormAd", "Rao et al., 2025", "Hub akhilayerukola/NormAd"
    made_from = ("Cultural Atlas",)
    groups, culture_field = GROUPS, "country"

    def entries(self) -> Sequence[Entry]:
        """Returns a task for each amount of context, and a name for all of them; and the same by log-likelihood."""
        return ENTRIES

    def tables(self, numbers: BenchmarkNumbers) -> Iterator[ReportTable]:
        """Yields all amounts of context side by side, what each unit replies, and its accuracy by groups."""
        titles = {task.name: task.title.partition(", ")[2].capitalize() for task in (*_TASKS, *_BY_LIKELIHOOD)}
        for statistic, metric in {"score": ACCURACY, **{m.name: m for m in (YES_OR_NO, AUTHORS, UNPARSED)}}.items():
            columns = [
                numbers.column(
                    key, titles.get(key, key), key, statistic, printed={"condition": key.removeprefix("normad_")}
                )
                for key in numbers.units
            ]
            title = f"NormAd: {metric.in_words}, by amount of context"
            papers = ("normad_notebook",) if metric is AUTHORS else ()
            yield numbers.table(f"normad_{statistic}", title, columns, papers=papers)
        for unit in numbers.units.values():
            yield numbers.table(
                f"{unit.key}_said",
                f"{unit.title}: replies in percent, by option",
                [numbers.column(metric.name, LABELS[label], unit.key, metric.name) for label, metric in SAID.items()],
                notes=(
                    "The remaining replies choose nothing. Of the release's stories 36 % are Yes, 33 % No, 31 % "
                    "Neither.",
                ),
                question="biases",
            )
        yield from super().tables(numbers)


BENCHMARK = NormAd()
