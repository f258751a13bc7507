"""CVQA as a benchmark: in the local language and in English, by the prompts of two suites."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import fmean
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval, Len
from pydantic import BeforeValidator

from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, UNPARSED, read_choice, score_choices, share
from culture_tasks.benchmarks.interface import (
    Answered,
    Benchmark,
    ComputedScore,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    Picture,
    Prompt,
    Task,
)
from culture_tasks.benchmarks.reporting import (
    MODEL,
    Answers,
    BenchmarkReport,
    Derived,
    Field,
    Floats,
    FurtherScore,
    TableOf,
    UnitOf,
    bars_by,
    columns_of,
)
from culture_tasks.data.checking import Count, count, tally
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.vocabulary import places

QUESTIONS = 10_374
PAIRS = 39

COUNTRIES = (
    *("Argentina", "Brazil", "Bulgaria", "Chile", "China", "Colombia", "Ecuador", "Egypt", "Ethiopia", "France"),
    *("India", "Indonesia", "Ireland", "Japan", "Kenya", "Malaysia", "Mexico", "Mongolia", "Nigeria", "Norway"),
    *("Pakistan", "Philippines", "Romania", "Russia", "Rwanda", "Singapore", "South Korea", "South_Korea", "Spain"),
    *("Sri Lanka", "Sri_Lanka", "Uruguay"),
)
"""Its 30 countries; those of two words are spelled in either way."""

LANGUAGES = (
    *("am", "ar", "bg", "bn", "br", "es", "fil", "ga", "hi", "id", "ig", "ja", "jv", "ko", "min", "mn", "mr", "ms"),
    *("no", "om", "pt", "ro", "ru", "rw", "si", "su", "sw", "ta", "te", "ur", "zh"),
)
"""ISO codes of its 31 languages. Arabic is Egypt's."""

OPTIONS = ("A", "B", "C", "D")


def macro(values: Sequence[tuple[str, float]]) -> float:
    """Returns the mean over pairs of their mean scores, from pairs and scores."""
    by_pair: dict[str, list[float]] = defaultdict(list)
    for pair, value in values:
        by_pair[pair].append(value)
    return fmean(map(fmean, by_pair.values())) if by_pair else float("nan")


MACRO = ComputedScore(name="acc_macro", title="accuracy, mean over pairs", scale=PERCENT, value=macro)
"""Mean of the accuracies of the pairs of language and country: the published values are of this kind."""

_PAPER = "CVQA (Romero et al., 2024)"
_PRINTED = {f"cvqa_{MACRO.name}": {"prompt_language": "local"}, f"cvqa_en_{MACRO.name}": {"prompt_language": "english"}}
"""Columns of the tasks with Pangea's prompt, and its paper's columns for them."""


Suite = Literal["pangea", "vlmevalkit"]

_TASKS: tuple[tuple[str, Suite, bool, str], ...] = (
    ("cvqa", "pangea", False, "asked in the local language"),
    ("cvqa_en", "pangea", True, "asked in English"),
    ("cvqa_vlmevalkit", "vlmevalkit", False, "asked in the local language, VLMEvalKit's prompt"),
    ("cvqa_en_vlmevalkit", "vlmevalkit", True, "asked in English, VLMEvalKit's prompt"),
)
"""Name, suite of the prompt, whether it asks in English, and the description of each task."""


def _literal(value: Any) -> Any:
    """Reads a list or pair that is printed as in Python, as the pairs are, and the options of an older revision."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("Expected texts in brackets, such as ('Tamil', 'India')") from None


Texts = Annotated[list[Text], BeforeValidator(_literal), Len(4, 4)]


class CvqaRow(TableRow):
    """A question in both languages."""

    id: Identifier
    subset: Annotated[tuple[Label, Label], BeforeValidator(_literal)]
    question: Text
    question_en: Text
    options: Texts
    options_en: Texts
    label: Annotated[int, Interval(ge=0, le=3)]
    category: Label
    image: OptionalLabel = None
    image_type: OptionalLabel = None
    image_source: OptionalLabel = None
    license: OptionalLabel = None


def _counts(rows: Sequence[CvqaRow]) -> Iterator[Count]:
    yield count("questions", len(rows), QUESTIONS)
    yield count("pairs of language and country", len({row.subset for row in rows}), PAIRS)
    yield from tally("right answer {}", (OPTIONS[row.label] for row in rows), OPTIONS)
    licences = [row.license or "none" for row in rows]
    yield from tally("licence {}", licences, dict(Counter(licences).most_common()))


QUESTION_TABLE = Table(
    model=CvqaRow,
    folder="cvqa",
    stems=("test", "cvqa"),
    hub="afaji/cvqa",
    aliases={"Translated Question": "question_en", "Translated Options": "options_en"},
    id="ID",
    image_column="image",
    release=Release(rows=QUESTIONS),
    counts=_counts,
)


def load(settings: Settings, *, english: bool) -> Documents:
    """Loads the questions in one of their two languages; raises DataError if they can't be used."""
    table = QUESTION_TABLE.rows(settings, images=set())
    data = table.fingerprint(include={"id", "question", "question_en", "options", "label"})
    documents = [
        {
            "id": identifier,
            # The part before the underscore is the image.
            "image_id": identifier.rpartition("_")[0] or identifier,
            "language": row.subset[0],
            "country": row.subset[1],
            "category": row.category,
            "question": row.question_en if english else row.question,
            "options": list(row.options_en if english else row.options),
            "answer": OPTIONS[row.label],
            "license": row.license or "",
            "data": data,
        }
        for identifier, row in table
    ]
    return Documents(documents, table.images, table.reading)


class Cvqa(Benchmark):
    """CVQA (Romero et al., 2024)."""

    name = "cvqa"
    title = "CVQA"
    paper = "Romero et al., 2024"
    data = "Hub afaji/cvqa"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        return tuple(
            Task(
                name=name,
                about=f"four options about an image, {about}",
                title=f"{self.title}, {about}",
                languages=("en",) if english else LANGUAGES,
                metric=ACCURACY.name,
                metrics=lambda: (ACCURACY, MACRO, UNPARSED),
                data=DataSet((QUESTION_TABLE,), partial(load, english=english)),
                prompt=partial(ask, suite),
                score=partial(score, suite),
                decoding=Decoding(max_tokens=16),
                shows_images=True,
                target=lambda doc: doc["answer"],
                note="Decoding: Pangea's suite.",
            )
            for name, suite, english, about in _TASKS
        )

    @cache  # noqa: B019 - one object a process
    def report(self) -> BenchmarkReport:
        """Returns the numbers over questions, over pairs of language and country, and by each of its groups."""
        kinds = (("pair", "pairs", "language and country"), ("category", "categories", "category"))
        return BenchmarkReport(
            fields=(Field("country", COUNTRIES, places=places(COUNTRIES)),),
            splits=(("pair",), ("language",), ("country",), ("category",)),
            culture="country",
            ability="perception",
            further=(FurtherScore(UNPARSED.name, UNPARSED.scale),),
            derived=(Derived(MACRO.name, PERCENT, _macro),),
            tables=_tables,
            figures=tuple(
                bars_by(
                    field,
                    key=f"cvqa_{plural}",
                    title=f"CVQA by {field}",
                    source=_PAPER,
                    value="Accuracy (percent)",
                    groups=words,
                )
                for field, plural, words in kinds
            ),
        )


def ask(suite: Suite, doc: Doc) -> Prompt:
    """Returns the prompt of a question, behind its image."""
    options = dict(zip("abcd", doc["options"], strict=True))
    return Prompt((Picture(), prompt_file(__package__, f"{suite}.v1").fill({"question": doc["question"], **options})))


def score(suite: Suite, doc: Doc, responses: Sequence[str]) -> Answered:
    """Reads which option the responses choose."""
    options = dict(zip(OPTIONS, doc["options"], strict=True))
    labels = [read_choice(response, options) for response in responses]
    pair = f"{doc['language']} ({doc['country']})"
    return score_choices(
        doc,
        responses,
        labels,
        doc["answer"],
        values={MACRO.name: [pair, share(labels, doc["answer"])]},
        question=doc["question"],
        references=(f"{doc['answer']}. {options[doc['answer']]}",),
        groups={"pair": pair, **{name: doc[name] for name in ("language", "country", "category")}},
        cluster=doc["image_id"],
        image=doc["image_id"],
        prompt=prompt_file(__package__, f"{suite}.v1"),
        facts={"license": doc["license"]} if doc["license"] else {},
    )


def _macro(answers: Answers) -> Mapping[str, Floats]:
    """Weights each answer so that all pairs weigh the same."""
    pairs = answers.groups_of("pair").codes
    _, numbers, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    return {"": answers.scores * (pairs.size / counts.size / counts[numbers])}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    numbers = {"score": "Questions", MACRO.name: "Pairs", UNPARSED.name: "Unparsed"}
    columns = [
        replace(column, printed=_PRINTED.get(column.key, {}))
        for unit in units
        for column in columns_of(unit.key, numbers, over=unit.key, prefix=f"{unit.key}_")
    ]
    yield TableOf(
        key="cvqa",
        title="CVQA: accuracy in percent",
        source=_PAPER,
        columns=tuple(columns),
        headers=MODEL,
        notes=("Questions: the mean over all questions. Pairs: the mean over pairs of language and country.",),
        papers=("pangea_table_2",),
    )


BENCHMARK = Cvqa()
