"""CVQA as a benchmark: in the local language and in English, by the prompts of two suites."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval, Len
from numpy.typing import NDArray
from pydantic import BeforeValidator

from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, UNPARSED, read_choice, score_choices, share
from culture_tasks.benchmarks.interface import (
    Benchmark,
    ComputedScore,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    Picture,
    Prompt,
    Score,
    Task,
    Variant,
)
from culture_tasks.benchmarks.reporting import (
    At,
    BenchmarkReport,
    ColumnSpec,
    Derived,
    Floats,
    Groups,
    ScoreUnit,
    TableSpec,
    groups_of,
    names_in,
)
from culture_tasks.data.checking import Count, count, tally
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.vocabulary import places

QUESTIONS = 10_374
PAIRS = 39

OPTIONS = ("A", "B", "C", "D")


def _pair_of(doc: Mapping[str, Any]) -> str:
    return f"{doc['language']} ({doc['country']})"


GROUPS = {
    "pair": Groups(of=_pair_of, axis="language and country"),
    "language": Groups(shown=False),
    "country": Groups(names_in(__package__, "countries.txt"), places=places, shown=False),
    "category": Groups(),
}
"""The groups of questions. Countries of two words are spelled in either way."""


def macro(values: Sequence[tuple[str, float]]) -> float:
    """Returns the mean over pairs of their mean scores, from pairs and scores."""
    pairs, scores = zip(*values, strict=True) if values else ((), ())
    return float(_by_pairs(np.array(scores), np.array(pairs)).mean()) if values else math.nan


def _by_pairs(scores: Floats, pairs: NDArray[Any]) -> Floats:
    """Weights scores so that all pairs weigh the same in their mean."""
    _, numbers, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    weighted: Floats = scores * (scores.size / counts.size / counts[numbers])
    return weighted


MACRO = ComputedScore(name="acc_macro", title="accuracy, mean over pairs", scale=PERCENT, value=macro)
"""Mean of the accuracies of the pairs of language and country: the published values are of this kind."""

_DECODING = Decoding(max_tokens=16)
VARIANTS = (
    Variant("", "asked in the local language", "pangea.v1", _DECODING, english=False),
    Variant("_en", "asked in English", "pangea.v1", _DECODING, english=True),
    Variant(
        "_vlmevalkit", "asked in the local language, VLMEvalKit's prompt", "vlmevalkit.v1", _DECODING, english=False
    ),
    Variant("_en_vlmevalkit", "asked in English, VLMEvalKit's prompt", "vlmevalkit.v1", _DECODING, english=True),
)


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
    groups = GROUPS
    culture_field = "country"
    ability = "perception"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each variant."""
        return tuple(
            Task(
                name=f"{self.name}{variant.suffix}",
                about=f"four options about an image, {variant.title}",
                title=variant.titled(self.title),
                languages=("en",) if variant.facts["english"] else tuple(names_in(__package__, "languages.txt")),
                metrics=lambda: (ACCURACY, MACRO, UNPARSED),
                data=DataSet((QUESTION_TABLE,), partial(load, **variant.facts)),
                prompt=partial(ask, variant.prompt),
                score=partial(score, variant.prompt),
                decoding=variant.decoding,
                shows_images=True,
                target=lambda doc: doc["answer"],
                note="Decoding: Pangea's suite.",
            )
            for variant in VARIANTS
        )

    @cache  # noqa: B019 - one object a process
    def report(self) -> BenchmarkReport:
        """Returns the numbers over questions, over pairs of language and country, and by each of its groups."""
        pairs = Derived(
            MACRO.name, PERCENT, lambda answers: {"": _by_pairs(answers.scores, answers.groups_of("pair").codes)}
        )
        return replace(super().report(), derived=(pairs,))

    def tables(self, units: Sequence[ScoreUnit]) -> Iterator[TableSpec]:
        """Yields Pangea's table, of all units."""
        columns = {
            f"{unit.key}_{name}": ColumnSpec(f"{unit.key}_{name}", label, At(unit.key, name), over=unit.key)
            for unit in units
            for name, label in (("score", "Questions"), (MACRO.name, "Pairs"), (UNPARSED.name, "Unparsed"))
        }
        for task, language in (("cvqa", "local"), ("cvqa_en", "english")):
            if column := columns.get(key := f"{task}_{MACRO.name}"):
                columns[key] = replace(column, printed={"prompt_language": language})
        yield self.table(
            "cvqa",
            "CVQA: accuracy in percent",
            columns.values(),
            notes=("Questions: the mean over all questions. Pairs: the mean over pairs of language and country.",),
            papers=("pangea_table_2",),
        )


def ask(prompt: str, doc: Doc) -> Prompt:
    """Returns the prompt of a question, behind its image."""
    options = dict(zip("abcd", doc["options"], strict=True))
    return Prompt((Picture(), prompt_file(__package__, prompt).fill({"question": doc["question"], **options})))


def score(prompt: str, doc: Doc, responses: Sequence[str]) -> Score:
    """Reads which option the responses choose."""
    options = dict(zip(OPTIONS, doc["options"], strict=True))
    labels = [read_choice(response, options) for response in responses]
    return score_choices(
        doc,
        responses,
        labels,
        doc["answer"],
        values={MACRO.name: [_pair_of(doc), share(labels, doc["answer"])]},
        question=doc["question"],
        references=(f"{doc['answer']}. {options[doc['answer']]}",),
        groups=groups_of(doc, GROUPS),
        cluster=doc["image_id"],
        image=doc["image_id"],
        prompt=prompt_file(__package__, prompt),
        facts={"license": doc["license"]} if doc["license"] else {},
    )


BENCHMARK = Cvqa()
