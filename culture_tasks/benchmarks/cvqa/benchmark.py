"""CVQA: four options about an image, asked in the local language and in English, by the prompts of two suites."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval, Len
from numpy.typing import NDArray
from pydantic import BeforeValidator

from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, UNPARSED, filled, lettered, score_options, share
from culture_tasks.benchmarks.fields import listed
from culture_tasks.benchmarks.interface import (
    Benchmark,
    ComputedScore,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    Picture,
    Score,
    Variant,
)
from culture_tasks.benchmarks.reporting import BenchmarkReport, Derived, Floats, Groups, names_in
from culture_tasks.benchmarks.tables import BenchmarkNumbers, metric_columns
from culture_tasks.benchmarks.tables import Table as ReportTable
from culture_tasks.data.checking import count
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.vocabulary import places

QUESTIONS, PAIRS = 10_374, 39


Options = Annotated[list[Text], BeforeValidator(listed), Len(4, 4)]


class CvqaRow(TableRow):
    """A question in both languages."""

    id: Identifier
    subset: Annotated[tuple[Label, Label], BeforeValidator(listed)]
    question: Text
    question_en: Text
    options: Options
    options_en: Options
    label: Annotated[int, Interval(ge=0, le=3)]
    category: Label
    image: OptionalLabel = None
    image_type: OptionalLabel = None
    image_source: OptionalLabel = None
    license: OptionalLabel = None


QUESTION_TABLE = Table(
    model=CvqaRow,
    folder="cvqa",
    stems=("test", "cvqa"),
    hub="afaji/cvqa",
    aliases={"Translated Question": "question_en", "Translated Options": "options_en"},
    id="ID",
    image_column="image",
    release=Release(rows=QUESTIONS),
    counts=lambda rows: (
        count("questions", len(rows), QUESTIONS),
        count("pairs of language and country", len({row.subset for row in rows}), PAIRS),
    ),
)


def load(settings: Settings, *, english: bool) -> Documents:
    """Loads the questions in one of their two languages; raises DataError if they can't be used."""
    table = QUESTION_TABLE.rows(settings, images=set())
    data = table.fingerprint(include={"id", "question", "question_en", "options", "label"})
    documents = [
        {
            "id": identifier,
            "image_id": identifier.rpartition("_")[0] or identifier,
            "language": row.subset[0],
            "country": row.subset[1],
            "category": row.category,
            "question": row.question_en if english else row.question,
            "options": list(row.options_en if english else row.options),
            "answer": "ABCD"[row.label],
            "license": row.license or "",
            "data": data,
        }
        for identifier, row in table
    ]
    return Documents(documents, table.images, table.reading)


def pair_of(doc: Doc) -> str:
    """Returns the pair of language and country of a question."""
    return f"{doc['language']} ({doc['country']})"


GROUPS = {
    "pair": Groups(of=pair_of, axis="language and country"),
    "language": Groups(shown=False),
    "country": Groups(names_in(__package__, "countries.txt"), places=places, shown=False),
    "category": Groups(),
}


def by_pairs(scores: Floats, pairs: NDArray[Any]) -> Floats:
    """Weights scores so that all pairs weigh the same in their mean."""
    _, numbers, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    weighted: Floats = scores * (scores.size / counts.size / counts[numbers])
    return weighted


def macro(values: Sequence[tuple[str, float]]) -> float:
    """Returns the mean over pairs of their mean scores, from pairs and scores; NaN without any."""
    pairs, scores = zip(*values, strict=True) if values else ((), ())
    return float(by_pairs(np.array(scores), np.array(pairs)).mean()) if values else math.nan


MACRO = ComputedScore(name="acc_macro", title="accuracy, mean over pairs", scale=PERCENT, value=macro)
"""Mean of the accuracies of the pairs of language and country: the published values are of this kind."""


def score(prompt: str, doc: Doc, responses: Sequence[str]) -> Score:
    """Reads which option the responses choose."""
    return score_options(
        doc,
        responses,
        lettered(doc["options"]),
        GROUPS,
        values=lambda labels: {MACRO.name: [pair_of(doc), share(labels, doc["answer"])]},
        question=doc["question"],
        cluster=doc["image_id"],
        image=doc["image_id"],
        prompt=prompt_file(__package__, prompt),
        facts={"license": doc["license"]} if doc["license"] else {},
    )


_DECODING = Decoding(max_tokens=16)  # Pangea's suite
VARIANTS = (
    Variant("", "asked in the local language", "pangea.v1", _DECODING, english=False),
    Variant("_en", "asked in English", "pangea.v1", _DECODING, english=True),
    Variant(
        "_vlmevalkit", "asked in the local language, VLMEvalKit's prompt", "vlmevalkit.v1", _DECODING, english=False
    ),
    Variant("_en_vlmevalkit", "asked in English, VLMEvalKit's prompt", "vlmevalkit.v1", _DECODING, english=True),
)
TASKS = tuple(
    variant.task(
        "cvqa",
        "CVQA",
        about=f"four options about an image, {variant.title}",
        languages=("en",) if variant.facts["english"] else tuple(names_in(__package__, "languages.txt")),
        metrics=lambda: (ACCURACY, MACRO, UNPARSED),
        data=DataSet((QUESTION_TABLE,), partial(load, **variant.facts)),
        prompt=filled(__package__, variant.prompt, Picture()),
        score=partial(score, variant.prompt),
        shows_images=True,
        target=lambda doc: doc["answer"],
    )
    for variant in VARIANTS
)


class Cvqa(Benchmark):
    """CVQA (Romero et al., 2024)."""

    name, title, paper, data = "cvqa", "CVQA", "Romero et al., 2024", "Hub afaji/cvqa"
    groups, culture_field = GROUPS, "country"

    def entries(self) -> Sequence[Entry]:
        """Returns a task for each variant."""
        return TASKS

    def report(self) -> BenchmarkReport:
        """Returns the numbers over questions, over pairs of language and country, and by each of its groups."""
        pairs = Derived(
            MACRO.name, PERCENT, lambda answers: {"": by_pairs(answers.scores, answers.groups_of("pair").codes)}
        )
        return replace(super().report(), derived=(pairs,))

    def tables(self, numbers: BenchmarkNumbers) -> Iterator[ReportTable]:
        """Yields Pangea's table, of all units."""
        prompts = {"cvqa": "local", "cvqa_en": "english"}
        yield numbers.table(
            "cvqa",
            "CVQA: accuracy in percent",
            metric_columns(
                self,
                numbers,
                {"score": "Questions", MACRO.name: "Pairs", UNPARSED.name: "Unparsed"},
                printed={f"{task}_{MACRO.name}": {"prompt_language": language} for task, language in prompts.items()},
            ),
            notes=("Questions: the mean over all questions. Pairs: the mean over pairs of language and country.",),
            papers=("pangea_table_2",),
        )


BENCHMARK = Cvqa()
