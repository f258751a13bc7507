"""NormAd as a benchmark: the same stories with five amounts of context, answered by Yes, No or Neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Annotated, Literal

from culture_tasks.benchmarks.choices import (
    ACCURACY,
    PERCENT,
    UNPARSED,
    read_choice,
    score_choices,
    share,
)
from culture_tasks.benchmarks.interface import (
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    MeanScore,
    Prompt,
    Score,
    Tag,
    Task,
    Variant,
)
from culture_tasks.benchmarks.likelihood import by_likelihood
from culture_tasks.benchmarks.reporting import (
    At,
    ColumnSpec,
    Groups,
    ScoreUnit,
    TableSpec,
    columns_of,
    groups_of,
    names_in,
)
from culture_tasks.data.checking import Count, count, tally
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, OptionalText, TableRow, Text, one_of
from culture_tasks.data.tables import Release, Table
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in
from culture_tasks.vocabulary import places

STORIES = 2_633

Condition = Literal["none", "country", "value", "country_value", "rule"]

CONDITIONS: Mapping[Condition, str] = {
    "none": "no context: the control",
    "country": "given the country",
    "value": "given an abstract value",
    "country_value": "given the country and the value",
    "rule": "given the norm (rule of thumb)",
}
"""The context beside the story."""

VARIANTS = [
    Variant(
        f"_{condition}",
        about,
        f"{'rule' if condition == 'value' else condition}.v1",  # the value takes the place of the rule of thumb
        Decoding(max_tokens=50),
        condition=condition,
    )
    for condition, about in CONDITIONS.items()
]

LABELS: Mapping[str, str] = {"yes": "Yes", "no": "No", "neutral": "Neither"}
"""Whether the action is acceptable, as in the data, and the option of the prompt."""

BIN_OF = names_in(__package__, "countries.txt")
"""The countries by the bins of Inglehart and Welzel, as the authors assign them (``src/data_description.py``)."""

_TOPIC_OF = names_in(__package__, "topics.txt")
TOPICS = tuple(dict.fromkeys(_TOPIC_OF.values()))
"""The four topics that the authors merge the sub-axes into."""

GROUPS = {
    "label": Groups(LABELS),
    "bin": Groups(tuple(dict.fromkeys(BIN_OF.values())), of=lambda doc: BIN_OF.get(doc["country"], "")),
    "topic": Groups({topic: topic.replace("_", " ").capitalize() for topic in TOPICS}),
    "country": Groups(tuple(BIN_OF), places=places, shown=False),
}

YES_OR_NO = MeanScore(name="acc_yes_no", title="accuracy on stories that are not neutral", scale=PERCENT)
"""Accuracy on the stories whose label is yes or no: a model that is neutral throughout has 0."""

AUTHORS = MeanScore(name="acc_authors", title="accuracy by the authors' reader", scale=PERCENT)
"""Accuracy by the authors' reader, :func:`authors_label`."""

SAID = {
    label: MeanScore(name=f"said_{option.lower()}", title=f"replies {option}", scale=replace(PERCENT, better=None))
    for label, option in LABELS.items()
}
"""Share of the replies that say an option, by label."""

_METRICS = (replace(ACCURACY, groups=GROUPS), YES_OR_NO, AUTHORS, *SAID.values(), UNPARSED)
_OPTIONS = {str(number): option for number, option in enumerate(LABELS.values(), start=1)}


class StoryRow(TableRow):
    """A story."""

    id: Identifier
    country: Label
    value: OptionalText = None
    rule: OptionalText = None
    story: Text
    label: Annotated[Label, one_of(LABELS)]
    subaxis: OptionalLabel = None
    background: OptionalText = None
    axis: OptionalLabel = None
    explanation: OptionalText = None


def _counts(rows: Sequence[StoryRow]) -> Iterator[Count]:
    yield count("stories", len(rows), STORIES)
    yield count("countries", len({row.country for row in rows}), len(BIN_OF))
    yield from tally("stories labelled {}", (row.label for row in rows), LABELS)


STORY_TABLE = Table(
    model=StoryRow,
    folder="normad",
    stems=("normad_etiquette_final_data", "normad"),
    hub="akhilayerukola/NormAd",
    split="train",
    aliases={"Rule-of-Thumb": "rule", "Gold Label": "label"},
    id="ID",
    release=Release(
        rows=STORIES,
        culture="country",
        fits=lambda country: country in BIN_OF,
        expected=f"one of {', '.join(sorted(BIN_OF))}",
    ),
    counts=_counts,
)


def load(condition: Condition, settings: Settings) -> Documents:
    """Loads the stories with a condition's facts of the culture; raises DataError if they can't be used."""
    stories = STORY_TABLE.rows(settings)
    data = stories.fingerprint(include={"id", "country", "value", "rule", "story", "label"})
    field, column = ("rule", "Rule-of-Thumb") if condition == "rule" else ("value", "Value")
    if condition in ("value", "country_value", "rule"):
        advice = f"normad_{condition} shows it to the model: complete the row, or leave this task out."
        stories.require(advice, **{field: column})
    documents = [
        {
            "id": identifier,
            "country": row.country,
            "topic": _TOPIC_OF.get((row.subaxis or "").lower(), ""),
            "story": row.story,
            # The value takes the place of the rule of thumb in the authors' templates.
            "rule": getattr(row, field) or "",
            "label": row.label,
            "data": data,
        }
        for identifier, row in stories
    ]
    return Documents(documents, reading=stories.reading)


class NormAd(Benchmark):
    """NormAd (Rao et al., 2025)."""

    name = "normad"
    title = "NormAd"
    paper = "Rao et al., 2025"
    data = "Hub akhilayerukola/NormAd"
    made_from = ("Cultural Atlas",)
    groups = GROUPS
    culture_field = "country"
    ability = "norms"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each amount of context, and a name for all of them; and the same by log-likelihood."""
        tasks = [
            Task(
                name=f"{self.name}{variant.suffix}",
                about=f"is an action in a story acceptable, {variant.title}",
                title=variant.titled(self.title),
                languages=("en",),
                metrics=lambda: _METRICS,
                data=DataSet((STORY_TABLE,), partial(load, variant.facts["condition"])),
                prompt=partial(ask, variant.prompt),
                score=partial(score, variant.prompt),
                decoding=variant.decoding,
                target=lambda doc: LABELS[doc["label"]],
                tag=self.name,
                note="Decoding: the authors' 50 tokens; greedy, where they have a temperature of 0.001.",
            )
            for variant in VARIANTS
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

    def tables(self, units: Sequence[ScoreUnit]) -> Iterator[TableSpec]:
        """Yields all amounts of context side by side, what each unit replies, and its accuracy by groups."""
        titles = {
            f"{self.name}{variant.suffix}{ending}": f"{variant.title.capitalize()}{how}"
            for ending, how in (("", ""), ("_ll", "; by log-likelihood"))
            for variant in VARIANTS
        }
        for statistic, metric in {"score": ACCURACY, **{m.name: m for m in (YES_OR_NO, AUTHORS, UNPARSED)}}.items():
            yield self.table(
                f"normad_{statistic}",
                f"NormAd: {metric.in_words}, by amount of context",
                [
                    ColumnSpec(
                        unit.key,
                        titles.get(unit.key, unit.key),
                        At(unit.key, statistic),
                        printed={"condition": unit.key.removeprefix("normad_")},
                    )
                    for unit in units
                ],
                papers=("normad_notebook",) if metric is AUTHORS else (),
            )
        for unit in units:
            yield self.table(
                f"{unit.key}_said",
                f"{unit.key}: replies in percent, by option",
                columns_of(unit.key, {metric.name: LABELS[label] for label, metric in SAID.items()}),
                notes=(
                    "The remaining replies choose nothing. Of the release's stories 36 % are Yes, 33 % No, 31 % "
                    "Neither.",
                ),
                question="biases",
            )
        yield from super().tables(units)


def ask(prompt: str, doc: Doc) -> Prompt:
    """Returns the prompt of a story; the country is as in the data, in lower case with underscores."""
    slots = {name: doc[name] for name in ("country", "rule", "story")}
    return Prompt((prompt_file(__package__, prompt).fill(slots),))


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
    numbers = [read_choice(response, _OPTIONS) for response in responses]
    labels = [None if number is None else tuple(LABELS)[int(number) - 1] for number in numbers]
    authors_labels = [authors_label(answer_in(response)) for response in responses]
    return score_choices(
        doc,
        responses,
        labels,
        doc["label"],
        values={
            YES_OR_NO.name: None if doc["label"] == "neutral" else share(labels, doc["label"]),
            AUTHORS.name: share(authors_labels, doc["label"]),
            **{metric.name: share(labels, label) for label, metric in SAID.items()},
        },
        question=doc["story"],
        references=(LABELS[doc["label"]],),
        groups=groups_of(doc, GROUPS),
        cluster=doc["id"],
        prompt=prompt_file(__package__, prompt),
    )


BENCHMARK = NormAd()
