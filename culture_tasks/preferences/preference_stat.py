"""Statistics of rated responses before training: pairs, ties, gaps, lengths, writers, overlap with tests.

Nothing is held out here: overlap with tests is shown instead.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.plain_files import write_whole
from culture_tasks.preferences.held_out import Overlap
from culture_tasks.preferences.pairs import PreferencePair, pairs_of
from culture_tasks.preferences.rated_questions import LEFT_OUT, RatedQuestion, RatedQuestions
from culture_tasks.results.training_manifest import Rule
from culture_tasks.text_tables import as_markdown, as_text, markdown_cell, write_csv

Dimension = Literal["overall", "language", "category", "culture"]
_DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

NOT_SAID = "not said"
"""The name of the group of questions whose category or culture the data don't say, and of unknown writers."""


@dataclass(frozen=True, slots=True)
class GroupStat:
    """The questions of a group; numbers of pairs are None without one.

    Attributes:
        paired: Number of questions with a pair.
        ties: Questions whose responses are all rated alike.
        single: Questions with one response.
        mean_gap: Mean difference of the ratings of a pair.
        chosen_length: Median length of the chosen responses, in characters.
        longer: Share of pairs, from 0 to 1, whose chosen response is the longer one, equal ones counting half. 0.5
            means no bias; above it, a model learns to write more.
        longer_low: Lower end of its 95 % interval, by question; None where there are too few.
    """

    by: Dimension
    group: str
    questions: int
    responses: int
    paired: int
    ties: int
    single: int
    pairs: int
    mean_gap: float | None
    chosen_length: float | None
    rejected_length: float | None
    longer: float | None
    longer_low: float | None
    longer_high: float | None


@dataclass(frozen=True, slots=True)
class WriterStat:
    """The responses of a writer (may be empty), and how often one is the better or worse of a pair."""

    name: str
    responses: int
    mean_rating: float
    chosen: int
    rejected: int


@dataclass(frozen=True, slots=True)
class OverlapStat:
    """How many questions a test has, and how many to train on are the same as or much like one of them."""

    task: str
    questions: int
    same: int
    near: int


_GROUP_HEADER = (
    *("by", "group", "questions", "responses", "pairs", "ties", "one response", "mean gap"),
    *("chosen length", "rejected length", "chosen longer"),
)
_WRITER_HEADER = ("written by", "responses", "mean rating", "chosen", "rejected")
_TEST_HEADER = ("test", "questions", "same", "near duplicates")


@dataclass(frozen=True, slots=True)
class PreferenceStat:
    """Everything that ``culture-tasks preferences stat`` tells.

    ``not_checked`` says why overlap with tests isn't known, and is empty where it is.
    """

    rated: RatedQuestions
    groups: Sequence[GroupStat]
    writers: Sequence[WriterStat]
    tests: Sequence[OverlapStat]
    not_checked: str = ""

    def as_text(self) -> str:
        """Returns the text that the command prints."""
        tables = [as_text(header, rows) for _, header, _, rows in self._tables()]
        return "\n\n".join([*tables, "\n".join(self._notes())])

    @property
    def content(self) -> dict[str, Any]:
        """Everything that is counted, as JSON data."""
        return {
            "sources": [source.model_dump() for source in self.rated.sources],
            "rated_by": self.rated.rated_by.model_dump(),
            "left_out": dict(self.rated.left_out),
            "groups": [asdict(group) for group in self.groups],
            "writers": [asdict(writer) for writer in self.writers],
            "tests": [asdict(test) for test in self.tests],
            "not_checked": self.not_checked,
        }

    def write(self, folder: Path) -> list[Path]:
        """Writes ``stat.json``, ``stat.md`` and ``stat.csv`` to a folder, and returns their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"stat.{ending}" for ending in ("json", "md", "csv")]
        groups = [asdict(group) for group in self.groups]
        text = json.dumps(self.content, indent=1, ensure_ascii=False) + "\n"
        write_whole(paths[0], text)
        parts = ["# Rated responses"]
        for title, header, labels, rows in self._tables():
            cells = [[markdown_cell(cell) for cell in row] for row in rows]
            parts += [f"## {title}", as_markdown(header, cells, numbers=len(header) - labels)]
        write_whole(paths[1], "\n\n".join([*parts, *map(markdown_cell, self._notes())]) + "\n")
        write_csv(paths[2], list(groups[0]), [list(group.values()) for group in groups])
        return paths

    def _tables(self) -> Iterator[tuple[str, Sequence[str], int, list[list[str]]]]:
        """Yields titles, headers, the numbers of columns with labels, and rows."""
        yield "Questions", _GROUP_HEADER, 2, [_group_row(group) for group in self.groups]
        writers = []
        for writer in self.writers:
            responses, chosen, rejected = (f"{count:,}" for count in (writer.responses, writer.chosen, writer.rejected))
            writers.append([writer.name or NOT_SAID, responses, f"{writer.mean_rating:.3g}", chosen, rejected])
        yield "Who wrote the responses", _WRITER_HEADER, 1, writers
        if self.tests:
            tests = [[test.task, f"{test.questions:,}", f"{test.same:,}", f"{test.near:,}"] for test in self.tests]
            yield "Overlap with tests", _TEST_HEADER, 1, tests

    def _notes(self) -> Iterator[str]:
        rated_by = self.rated.rated_by
        scale = "" if rated_by.scale is None else f", {rated_by.scale[0]:g} to {rated_by.scale[1]:g}"
        yield f"rated by {rated_by.name}{scale}"
        for source in self.rated.sources:
            origin = f" of {source.model} on {source.task}" if source.task else ""
            yield f"{source.name}: {source.responses:,} responses{origin}, fingerprint {source.fingerprint}"
        for name, count in self.rated.left_out.items():
            if count:
                yield f"left out: {count:,} {LEFT_OUT[name]}"
        yield (
            "Lengths are medians, in characters. 'chosen longer': share of pairs whose chosen response is the longer "
            "one, with its 95 % interval; 50 % means no bias."
        )
        if self.not_checked:
            yield f"Overlap with tests isn't known: {self.not_checked}"


def _group_row(group: GroupStat) -> list[str]:
    counts = (group.questions, group.responses, group.pairs, group.ties, group.single)
    longer = "–" if group.longer is None else f"{group.longer:.0%}"
    if group.longer_low is not None and group.longer_high is not None:
        longer += f" ({max(group.longer_low, 0.0):.0%} to {min(group.longer_high, 1.0):.0%})"
    lengths = ("–" if number is None else f"{number:,.0f}" for number in (group.chosen_length, group.rejected_length))
    gap = "–" if group.mean_gap is None else f"{group.mean_gap:.3g}"
    return [group.by, group.group, *(f"{count:,}" for count in counts), gap, *lengths, longer]


def preference_stat(
    rated: RatedQuestions, questions: Sequence[RatedQuestion], rule: Rule, seed: int, overlap: Overlap | str
) -> PreferenceStat:
    """Computes the statistics of some of the rated questions; the overlap with tests may be the reason for none."""
    pairs, _ = pairs_of(questions, rule, seed)
    groups: dict[tuple[Dimension, str], list[RatedQuestion]] = {}
    for dimension in _DIMENSIONS:
        for question in questions:
            name = "all" if dimension == "overall" else getattr(question, dimension) or NOT_SAID
            groups.setdefault((dimension, name), []).append(question)
    order = sorted(groups, key=lambda group: (_DIMENSIONS.index(group[0]), group[1]))
    return PreferenceStat(
        rated=rated,
        groups=[_group(dimension, name, groups[dimension, name], pairs) for dimension, name in order],
        writers=_writers(questions, pairs),
        tests=[] if isinstance(overlap, str) else _tests(overlap),
        not_checked=overlap if isinstance(overlap, str) else "",
    )


def _group(
    dimension: Dimension, name: str, questions: Sequence[RatedQuestion], all_pairs: Sequence[PreferencePair]
) -> GroupStat:
    inside = {question.fingerprint for question in questions}
    pairs = [pair for pair in all_pairs if pair.question.fingerprint in inside]
    chosen_lengths = [len(pair.chosen.text) for pair in pairs]
    rejected_lengths = [len(pair.rejected.text) for pair in pairs]
    longer = [0.5 * ((a > b) + (a >= b)) for a, b in zip(chosen_lengths, rejected_lengths, strict=True)]
    share = mean_interval(longer, [pair.question.fingerprint for pair in pairs])
    longer_share, low, high = (None if math.isnan(end) else end for end in share[:3])
    several = [question for question in questions if len(question.answers) > 1]
    return GroupStat(
        by=dimension,
        group=name,
        questions=len(questions),
        responses=sum(len(question.answers) for question in questions),
        paired=len({pair.question.fingerprint for pair in pairs}),
        ties=sum(len({answer.rating for answer in question.answers}) == 1 for question in several),
        single=sum(len(question.answers) == 1 for question in questions),
        pairs=len(pairs),
        mean_gap=statistics.fmean(pair.gap for pair in pairs) if pairs else None,
        chosen_length=statistics.median(chosen_lengths) if pairs else None,
        rejected_length=statistics.median(rejected_lengths) if pairs else None,
        longer=longer_share,
        longer_low=low,
        longer_high=high,
    )


def _writers(questions: Iterable[RatedQuestion], pairs: Iterable[PreferencePair]) -> list[WriterStat]:
    """Returns the writers of the responses, most responses first."""
    ratings: dict[str, list[float]] = {}
    for question in questions:
        for answer in question.answers:
            ratings.setdefault(answer.writer, []).append(answer.rating)
    chosen, rejected = Counter(pair.chosen.writer for pair in pairs), Counter(pair.rejected.writer for pair in pairs)
    return [
        WriterStat(name, len(values), statistics.fmean(values), chosen=chosen[name], rejected=rejected[name])
        for name, values in sorted(ratings.items(), key=lambda writer: (-len(writer[1]), writer[0]))
    ]


def _tests(overlap: Overlap) -> list[OverlapStat]:
    questions = Counter(task for task, _ in overlap.tests)
    same = Counter(task for items in overlap.same.values() for task in {task for task, _ in items})
    near = Counter(task for task, _ in {(duplicate.task, duplicate.question) for duplicate in overlap.near})
    return [OverlapStat(task, number, same=same[task], near=near[task]) for task, number in questions.items()]
