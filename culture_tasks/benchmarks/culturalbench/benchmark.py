"""CulturalBench as a benchmark: Easy, one question with four options, and Hard, four judgements a question."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

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
    Task,
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
from culture_tasks.data.checking import Count, count
from culture_tasks.data.rows import (
    Identifier,
    Label,
    OptionalIdentifier,
    OptionalText,
    Row,
    TableRow,
    Text,
    one_of,
)
from culture_tasks.data.tables import Release, Rows, Table
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.vocabulary import places

_log = logging.getLogger(__name__)

QUESTIONS = 1_227
"""Questions of the released data; the paper's second version speaks of 1,696."""

OPTIONS = ("A", "B", "C", "D")

COUNTRIES = Groups(names_in(__package__, "countries.txt"), places=places)
"""The countries and regions of the data."""

GROUPS = {"country": COUNTRIES}

_OF_QUESTIONS = replace(ACCURACY, groups=GROUPS)
"""Share of the questions that are answered right: in Hard, with all four options judged right."""

OF_ROWS = MeanScore(name="row_acc", title="accuracy of single options", scale=PERCENT)
"""Share of Hard's options that are judged right: 75 % for a model that always says "False"."""

SAID_TRUE = MeanScore(name="said_true", title="options called true", scale=replace(PERCENT, better=None, neutral=25.0))
"""Share of Hard's options that the model calls true; one in four is."""


def all_right(scores: Sequence[float]) -> float:
    """Returns the lowest score of a question's options; NaN, which is none, where one of them has no score.

    Examples:
        >>> all_right([1.0, 1.0, 0.0, 1.0]), all_right([1.0, 1.0])
        (0.0, nan)
    """
    return min(scores) if len(scores) >= len(OPTIONS) else math.nan


_CUE = "\nAnswer:"


def _is_true(value: Any) -> Any:
    """Reads the truth values of CSV files."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


class EasyRow(TableRow):
    """A question with its options."""

    data_idx: OptionalIdentifier = None
    question_idx: Identifier
    prompt_question: Text
    prompt_option_a: Text
    prompt_option_b: Text
    prompt_option_c: Text
    prompt_option_d: Text
    answer: Annotated[Label, one_of(OPTIONS)]
    country: Label


class HardRow(TableRow):
    """One option of a question, right or wrong. Some rows of the release have no option."""

    data_idx: OptionalIdentifier = None
    question_idx: Identifier
    prompt_question: Text
    prompt_option: OptionalText = None
    answer: Annotated[Literal[True, False], BeforeValidator(_is_true)]
    country: Label


def _contradictory(found: Rows[HardRow]) -> Iterator[str]:
    """Yields contradictions between the rows of a question: two wordings, too many options, or none that is right."""
    first: dict[str, int] = {}
    for index, row in enumerate(found.rows):
        first_row = found.rows[first.setdefault(row.question_idx, index)]
        if (row.prompt_question, row.country) != (first_row.prompt_question, first_row.country):
            yield (
                f"{found.where(index)}, field 'question_idx': {row.question_idx!r} has another question or country in "
                f"{found.where(first[row.question_idx])}. Expected the same in all rows of a question."
            )
    counts = Counter(row.question_idx for row in found.rows)
    right = {row.question_idx for row in found.rows if row.answer}
    for question, index in first.items():
        if counts[question] > len(OPTIONS) or question not in right:
            fault = f"{counts[question]} rows" if question in right else "no row with the answer true"
            yield (
                f"{found.where(index)}, field 'question_idx': found {fault} for {question!r}. Expected at most "
                f"{len(OPTIONS)}, one of them true. Correct the rows."
            )


def _easy_counts(rows: Sequence[EasyRow]) -> Iterator[Count]:
    yield count("Easy: questions", len(rows), QUESTIONS)
    yield count("Easy: countries and regions", len({row.country for row in rows}), len(COUNTRIES))


def _hard_counts(rows: Sequence[HardRow]) -> Iterator[Count]:
    options = Counter(row.question_idx for row in rows if row.prompt_option is not None)
    complete_questions = sum(number == len(OPTIONS) for number in options.values())
    yield count("Hard: rows", len(rows), QUESTIONS * len(OPTIONS))
    yield count("Hard: questions", len({row.question_idx for row in rows}), QUESTIONS)
    yield count("Hard: rows without an option", sum(row.prompt_option is None for row in rows))
    yield count("Hard: questions with four options, which are asked", complete_questions)


def _table(config: str, model: type[Row], rows: int, **more: Any) -> Table[Row]:
    return Table(
        model=model,
        folder="culturalbench",
        stems=(f"CulturalBench-{config}", config.lower()),
        hub="kellycyy/CulturalBench",
        config=f"CulturalBench-{config}",
        release=Release(
            rows=rows,
            culture="country",
            fits=lambda country: country in COUNTRIES,
            expected=f"one of {', '.join(COUNTRIES)}",
        ),
        **more,
    )


EASY = _table("Easy", EasyRow, QUESTIONS, id="question_idx", id_of=attrgetter("question_idx"), counts=_easy_counts)
HARD = _table("Hard", HardRow, QUESTIONS * len(OPTIONS), rules=_contradictory, counts=_hard_counts)


def load_easy(settings: Settings) -> Documents:
    """Loads the questions with four options; raises DataError if they can't be used."""
    easy = EASY.rows(settings)
    data = easy.fingerprint()
    documents = []
    for row in easy.rows:
        texts = [row.prompt_option_a, row.prompt_option_b, row.prompt_option_c, row.prompt_option_d]
        documents.append(_document(row, row.question_idx, {"options": texts, "answer": row.answer}, data))
    return Documents(documents, reading=easy.reading)


def load_hard(settings: Settings) -> Documents:
    """Loads the options of all questions that have four, each to be judged; raises DataError if they can't be used."""
    hard = HARD.rows(settings)
    data = hard.fingerprint()
    counts = Counter(row.question_idx for row in hard.rows if row.prompt_option is not None)
    incomplete = {row.question_idx for row in hard.rows if counts[row.question_idx] != len(OPTIONS)}
    if incomplete:
        _log.warning(
            "%s: %d questions don't have four options and are left out: right judgements of fewer are easier.",
            hard.table.origin,
            len(incomplete),
        )
    numbers: Counter[str] = Counter()
    documents = []
    for row in hard.rows:
        if row.question_idx not in incomplete:
            numbers[row.question_idx] += 1
            fields = {"option": row.prompt_option, "answer": str(row.answer)}
            documents.append(_document(row, f"{row.question_idx}-{numbers[row.question_idx]}", fields, data))
    if not documents:
        raise DataError(f"{hard.table.origin}: found no question with four rows that have an option. Add the rows.")
    return Documents(documents, reading=hard.reading)


def _document(row: EasyRow | HardRow, identifier: str, fields: Mapping[str, Any], data: str) -> dict[str, Any]:
    return {
        "id": identifier,
        "question_id": row.question_idx,
        "country": row.country,
        "question": row.prompt_question,
        **fields,
        "data": data,
    }


class CulturalBench(Benchmark):
    """CulturalBench (Chiu et al., 2024)."""

    name = "culturalbench"
    title = "CulturalBench"
    paper = "Chiu et al., 2024"
    data = "Hub kellycyy/CulturalBench"
    groups = GROUPS
    culture_field = "country"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the two tasks, and both by log-likelihood."""
        easy = Task(
            name="culturalbench_easy",
            title="CulturalBench Easy",
            about="customs and everyday life, four options",
            languages=("en",),
            metrics=lambda: (_OF_QUESTIONS, UNPARSED),
            data=DataSet((EASY,), load_easy),
            prompt=ask_easy,
            score=score_easy,
            decoding=Decoding(max_tokens=256),
            target=lambda doc: doc["answer"],
            note="Prompts as public re-implementations have them; decoding isn't known: greedy.",
        )
        hard = replace(
            easy,
            name="culturalbench_hard",
            title="CulturalBench Hard",
            about="the same questions, each option judged true or false",
            metrics=lambda: (replace(_OF_QUESTIONS, per_cluster=all_right), OF_ROWS, SAID_TRUE, UNPARSED),
            data=DataSet((HARD,), load_hard),
            prompt=ask_hard,
            score=score_hard,
        )
        return (
            easy,
            hard,
            by_likelihood(easy, lambda _: OPTIONS, cue=_CUE),
            by_likelihood(hard, lambda _: ("True", "False"), cue=_CUE),
        )

    def tables(self, units: Sequence[ScoreUnit]) -> Iterator[TableSpec]:
        """Yields a table by country for each unit, and Easy beside Hard."""
        yield from super().tables(units)
        columns: list[ColumnSpec] = []
        for unit in units:
            is_hard = unit.key.removesuffix("_ll").endswith("hard")
            form = f"{'Hard' if is_hard else 'Easy'}{', by log-likelihood' if unit.key.endswith('_ll') else ''}"
            further = {OF_ROWS.name: "Options", SAID_TRUE.name: "Called true"} if is_hard else {}
            columns += [
                ColumnSpec(unit.key, "Questions", At(unit.key), form, {"form": form}),
                *columns_of(unit.key, {**further, UNPARSED.name: "Unparsed"}, over=form, prefix=f"{unit.key}_"),
            ]
        yield self.table(
            "culturalbench",
            "CulturalBench: questions answered right in percent",
            columns,
            papers=("culturalbench_abstract",),
            notes=(
                "Hard: a question counts if all of its four options are judged right. Options: the share of single "
                'options that are, which is 75 for a model that always says "False". One in four options is true.',
            ),
        )


def ask_easy(doc: Doc) -> Prompt:
    """Returns the prompt of a question with four options."""
    options = dict(zip("abcd", doc["options"], strict=True))
    return Prompt((prompt_file(__package__, "easy.v1").fill({"question": doc["question"], **options}),))


def ask_hard(doc: Doc) -> Prompt:
    """Returns the prompt of an option."""
    slots = {"question": doc["question"], "option": doc["option"]}
    return Prompt((prompt_file(__package__, "hard.v1").fill(slots),))


def score_easy(doc: Doc, responses: Sequence[str]) -> Score:
    """Reads which option the responses choose."""
    options = dict(zip(OPTIONS, doc["options"], strict=True))
    return score_choices(
        doc,
        responses,
        [read_choice(response, options) for response in responses],
        doc["answer"],
        question=doc["question"],
        references=(f"{doc['answer']}. {options[doc['answer']]}",),
        groups=groups_of(doc, GROUPS),
        cluster=doc["question_id"],
        prompt=prompt_file(__package__, "easy.v1"),
    )


def score_hard(doc: Doc, responses: Sequence[str]) -> Score:
    """Reads whether the responses call an option true."""
    labels = [read_choice(response, {"True": "", "False": ""}) for response in responses]
    return score_choices(
        doc,
        responses,
        labels,
        doc["answer"],
        values={OF_ROWS.name: share(labels, doc["answer"]), SAID_TRUE.name: share(labels, "True")},
        question=f"{doc['question']}\n{doc['option']}",
        references=(doc["answer"],),
        groups=groups_of(doc, GROUPS),
        cluster=doc["question_id"],
        prompt=prompt_file(__package__, "hard.v1"),
    )


BENCHMARK = CulturalBench()
