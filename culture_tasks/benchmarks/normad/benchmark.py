"""NormAd as a benchmark: the same stories with five amounts of context, answered by Yes, No or Neither."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Annotated, Literal, get_args

from culture_tasks.benchmarks.choices import (
    ACCURACY,
    PERCENT,
    UNPARSED,
    read_choice,
    score_choices,
    share,
)
from culture_tasks.benchmarks.interface import (
    Answered,
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    MeanScore,
    Prompt,
    Tag,
    Task,
)
from culture_tasks.benchmarks.likelihood import by_likelihood
from culture_tasks.benchmarks.reporting import (
    MODEL,
    At,
    BenchmarkReport,
    ColumnOf,
    Field,
    FurtherScore,
    TableOf,
    UnitOf,
    bars_by,
    columns_by,
    columns_of,
)
from culture_tasks.data.checking import Count, count, tally
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, OptionalText, TableRow, Text, one_of
from culture_tasks.data.tables import Release, Table
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in
from culture_tasks.vocabulary import places

STORIES = 2_633

Condition = Literal["none", "country", "value", "country_value", "rule"]
"""The context beside the story: nothing, the country, an abstract value, both, or the concrete norm."""

CONDITIONS: tuple[Condition, ...] = get_args(Condition)

LABELS: Mapping[str, str] = {"yes": "Yes", "no": "No", "neutral": "Neither"}
"""Whether the action is acceptable, as in the data, and the option of the prompt."""

BINS: Mapping[str, tuple[str, ...]] = {
    "African-Islamic": (
        *("afghanistan", "bangladesh", "egypt", "ethiopia", "iran", "iraq", "kenya", "lebanon", "mauritius"),
        *("pakistan", "palestinian_territories", "saudi_arabia", "somalia", "south_africa", "south_sudan", "sudan"),
        *("syria", "türkiye", "zimbabwe"),
    ),
    "Orthodox Europe": (
        *("bosnia_and_herzegovina", "greece", "north_macedonia", "romania", "russia", "serbia", "ukraine"),
    ),
    "Confucian": ("china", "hong_kong", "japan", "south_korea", "taiwan"),
    "Catholic Europe": ("austria", "croatia", "hungary", "italy", "poland", "portugal", "spain"),
    "Protestant Europe": ("france", "germany", "netherlands", "sweden", "malta"),
    "English Speaking": (
        *("australia", "canada", "ireland", "new_zealand", "united_kingdom", "united_states_of_america"),
    ),
    "Latin America": ("argentina", "brazil", "chile", "colombia", "mexico", "peru", "venezuela"),
    "West and South Asia": (
        *("cambodia", "cyprus", "fiji", "india", "indonesia", "israel", "laos", "malaysia", "myanmar", "nepal"),
        *("papua_new_guinea", "samoa", "singapore", "sri_lanka", "thailand", "timor-leste", "tonga", "vietnam"),
        "philippines",
    ),
}
"""The countries by the bins of Inglehart and Welzel, as the authors assign them (``src/data_description.py``)."""

BIN_OF = {country: name for name, countries in BINS.items() for country in countries}

_TOPICS: Mapping[str, tuple[str, ...]] = {
    "basic_etiquette": (
        *("manners_in_vietnam", "māori_etiquette", "cleanliness", "direct_manners", "tipping", "pub_etiquette"),
        "‘taarof’_(politeness_and_mutual_respect)",
    ),
    "visiting": ("visiting_and_eating", "visiting_a_village"),
    "eating": ("eating_out", "religious_dietary_laws", "drinking", "drinking_coffee", "toasting"),
    "gifts": ("gift-giving", "gift_giving", "offering_and_complimenting_items"),
}
TOPICS = tuple(_TOPICS)
"""The four topics that the authors merge the sub-axes into."""

_TOPIC_OF = {name: topic for topic, names in _TOPICS.items() for name in (topic, *names)}

ABOUT: dict[Condition, str] = {
    "none": "no context: the control",
    "country": "given the country",
    "value": "given an abstract value",
    "country_value": "given the country and the value",
    "rule": "given the norm (rule of thumb)",
}

_OF_STORIES = replace(
    ACCURACY, groups={"label": tuple(LABELS), "bin": tuple(BINS), "topic": TOPICS, "country": tuple(BIN_OF)}
)
YES_OR_NO = MeanScore(name="acc_yes_no", title="accuracy on stories that are not neutral", scale=PERCENT)
"""Accuracy on the stories whose label is yes or no: a model that is neutral throughout has 0."""

AUTHORS = MeanScore(name="acc_authors", title="accuracy by the authors' reader", scale=PERCENT)
"""Accuracy by the authors' reader, :func:`authors_label`."""

SAID = {
    label: MeanScore(name=f"said_{option.lower()}", title=f"replies {option}", scale=replace(PERCENT, better=None))
    for label, option in LABELS.items()
}
"""Share of the replies that say an option, by label."""

_METRICS = (_OF_STORIES, YES_OR_NO, AUTHORS, *SAID.values(), UNPARSED)
_OPTIONS = {str(number): option for number, option in enumerate(LABELS.values(), start=1)}
_PAPER = "NormAd (Rao et al., 2025)"
_table = partial(TableOf, source=_PAPER, headers=MODEL)


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

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each amount of context, and a name for all of them; and the same by log-likelihood."""
        tasks = [
            Task(
                name=f"normad_{condition}",
                about=f"is an action in a story acceptable, {ABOUT[condition]}",
                title=f"{self.title}, {ABOUT[condition]}",
                languages=("en",),
                metric=ACCURACY.name,
                metrics=lambda: _METRICS,
                data=DataSet((STORY_TABLE,), partial(load, condition)),
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

    @cache  # noqa: B019 - one object a process
    def report(self) -> BenchmarkReport:
        """Returns the numbers by amount of context, label, topic, and the bins of Inglehart and Welzel."""
        return BenchmarkReport(
            fields=(
                Field("label", tuple(LABELS), LABELS),
                Field("topic", TOPICS, _GROUPS["topic"]),
                Field("bin", tuple(BINS), _GROUPS["bin"]),
                Field("country", tuple(BIN_OF), places=places(BIN_OF)),
            ),
            splits=(("label",), ("topic",), ("bin",), ("country",)),
            culture="country",
            ability="norms",
            further=tuple(FurtherScore(metric.name, metric.scale) for metric in _METRICS[1:]),
            tables=_tables,
            figures=tuple(
                bars_by(
                    field, key=f"normad_{field}", title=f"NormAd by {field}", source=_PAPER, value="Accuracy (percent)"
                )
                for field in ("label", "bin")
            ),
        )


def prompt_of(condition: Condition) -> PromptFile:
    """Returns the template of a condition; the value alone takes that of the rule of thumb."""
    return prompt_file(__package__, f"{'rule' if condition == 'value' else condition}.v1")


def ask(condition: Condition, doc: Doc) -> Prompt:
    """Returns the prompt of a story; the country is as in the data, in lower case with underscores."""
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
        groups={
            "label": doc["label"],
            "country": doc["country"],
            "bin": BIN_OF.get(doc["country"], ""),
            "topic": doc["topic"],
        },
        cluster=doc["id"],
        prompt=prompt_of(condition),
    )


_TITLES = {
    f"normad_{condition}{ending}": f"{about.capitalize()}{how}"
    for ending, how in (("", ""), ("_ll", "; by log-likelihood"))
    for condition, about in ABOUT.items()
}
_GROUPS: Mapping[str, Mapping[str, str]] = {
    "label": LABELS,
    "topic": {topic: topic.replace("_", " ").capitalize() for topic in TOPICS},
    "bin": dict(zip(BINS, BINS, strict=True)),
}
_QUANTITIES = {
    "score": "accuracy",
    YES_OR_NO.name: YES_OR_NO.title,
    AUTHORS.name: AUTHORS.title,
    UNPARSED.name: "replies that choose nothing",
}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    units = list(units)
    for statistic, quantity in _QUANTITIES.items():
        yield _table(
            key=f"normad_{statistic}",
            title=f"NormAd: {quantity} in percent, by amount of context",
            columns=tuple(
                ColumnOf(
                    unit.key,
                    _TITLES.get(unit.key, unit.key),
                    At(unit.key, statistic),
                    printed={"condition": unit.key.removeprefix("normad_")},
                )
                for unit in units
            ),
            papers=("normad_notebook",) if statistic == AUTHORS.name else (),
        )
    for unit in units:
        yield _table(
            key=f"{unit.key}_said",
            title=f"{unit.key}: replies in percent, by option",
            columns=columns_of(unit.key, {metric.name: LABELS[label] for label, metric in SAID.items()}),
            notes=(
                "The remaining replies choose nothing. Of the release's stories 36 % are Yes, 33 % No, 31 % Neither.",
            ),
            question="biases",
        )
        for field, groups in _GROUPS.items():
            yield _table(
                key=f"{unit.key}_by_{field}",
                title=f"{unit.key}: accuracy in percent, by {field}",
                columns=columns_by(field, groups, unit.key, total="All"),
            )


BENCHMARK = NormAd()
