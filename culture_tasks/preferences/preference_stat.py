"""What rated responses hold before anything is trained on them: pairs, ties, gaps, lengths, who wrote them, overlap.

Nothing is held out here: overlap with tests is shown instead.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.preferences.held_out import Overlap
from culture_tasks.preferences.manifest import Rule
from culture_tasks.preferences.pair_rule import PreferencePair, pairs_of
from culture_tasks.preferences.rated_questions import LEFT_OUT, RatedQuestion, RatedQuestions
from culture_tasks.text_tables import as_markdown, as_text, markdown_cell, write_csv

Dimension = Literal["overall", "language", "category", "culture"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

NOT_SAID = "not said"
"""The name of the group of questions whose category or culture the data don't say, and of unknown writers."""


@dataclass(frozen=True, slots=True)
class GroupStat:
    """The questions of a group.

    Attributes:
        by: What the questions are grouped by.
        group: The group.
        questions: Number of questions.
        responses: Number of rated responses.
        paired: Questions with a pair.
        ties: Questions whose responses are all rated alike.
        single: Questions with one response.
        pairs: Number of pairs.
        mean_gap: Mean difference of the ratings of a pair; None without a pair.
        chosen_length: Median length of the chosen responses, in characters.
        rejected_length: Median length of the rejected ones.
        longer: Share of pairs, from 0 to 1, whose chosen response is the longer one, equal ones counting half. 0.5
            means no bias; above it, a model learns to write more.
        longer_low: Lower end of its 95 % interval, by question; None where there are too few.
        longer_high: Upper end.
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
    """The responses of a model, of people, or of what the data say.

    Attributes:
        name: Who wrote them; empty where nothing is known.
        responses: Number of rated responses.
        mean_rating: Their mean rating.
        chosen: How often one is the better of a pair.
        rejected: How often one is the worse.
    """

    name: str
    responses: int
    mean_rating: float
    chosen: int
    rejected: int


@dataclass(frozen=True, slots=True)
class OverlapStat:
    """What the questions share with a test.

    Attributes:
        task: The test.
        questions: Number of its questions.
        same: Questions to train on that it asks too.
        near: Questions to train on that are much like one of its.
    """

    task: str
    questions: int
    same: int
    near: int


@dataclass(frozen=True, slots=True)
class PreferenceStat:
    """Everything that ``culture-tasks preferences stat`` tells.

    Attributes:
        rated: The rated responses.
        pairs: The pairs that the rule makes of them.
        groups: Questions by language, category and culture.
        writers: Who wrote the responses, those with most first.
        tests: Overlap with tests.
        not_checked: Why overlap with tests isn't known; empty where it is.
    """

    rated: RatedQuestions
    pairs: Sequence[PreferencePair]
    groups: Sequence[GroupStat]
    writers: Sequence[WriterStat]
    tests: Sequence[OverlapStat]
    not_checked: str = ""

    def as_text(self) -> str:
        """Returns what the command prints."""
        return "\n\n".join([as_text(header, rows) for _, header, rows in self._tables()] + ["\n".join(self._notes())])

    def as_markdown(self) -> str:
        """Returns the tables as Markdown."""
        parts = ["# Rated responses"]
        for title, header, rows in self._tables():
            cells = [[markdown_cell(cell) for cell in row] for row in rows]
            parts += [f"## {title}", as_markdown(header, cells, numbers=len(header) - _WORDS[title])]
        return "\n\n".join([*parts, *map(markdown_cell, self._notes())]) + "\n"

    def as_json(self) -> str:
        """Returns the numbers as JSON."""
        content = {
            "sources": [source.model_dump() for source in self.rated.sources],
            "rated_by": self.rated.rated_by.model_dump(),
            "left_out": dict(self.rated.left_out),
            "groups": [asdict(each) for each in self.groups],
            "writers": [asdict(each) for each in self.writers],
            "tests": [asdict(each) for each in self.tests],
            "not_checked": self.not_checked,
        }
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Writes ``stat.json``, ``stat.md`` and ``stat.csv`` to a folder, and returns their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"stat.{ending}" for ending in ("json", "md", "csv")]
        paths[0].write_text(self.as_json(), encoding="utf-8", errors="backslashreplace")
        paths[1].write_text(self.as_markdown(), encoding="utf-8")
        numbers = [asdict(each) for each in self.groups]
        write_csv(paths[2], list(numbers[0]), [list(each.values()) for each in numbers])
        return paths

    def _tables(self) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
        yield "Questions", _GROUP_HEADER, [_group_row(each) for each in self.groups]
        yield "Who wrote the responses", _WRITER_HEADER, [_writer_row(each) for each in self.writers]
        if self.tests:
            rows = [[each.task, f"{each.questions:,}", f"{each.same:,}", f"{each.near:,}"] for each in self.tests]
            yield "Overlap with tests", ("test", "questions", "same", "near duplicates"), rows

    def _notes(self) -> Iterator[str]:
        rated_by = self.rated.rated_by
        scale = "" if rated_by.scale is None else f", {rated_by.scale[0]:g} to {rated_by.scale[1]:g}"
        yield f"rated by {rated_by.name}{scale}"
        for source in self.rated.sources:
            of = f" of {source.model} on {source.task}" if source.task else ""
            yield f"{source.name}: {source.responses:,} responses{of}, fingerprint {source.fingerprint}"
        for name, count in self.rated.left_out.items():
            if count:
                yield f"left out: {count:,} {LEFT_OUT[name]}"
        yield (
            "Lengths are medians, in characters. 'chosen longer': share of pairs whose chosen response is the longer "
            "one, with its 95 % interval; 50 % means no bias."
        )
        if self.not_checked:
            yield f"Overlap with tests isn't known: {self.not_checked}"


_GROUP_HEADER = (
    *("by", "group", "questions", "responses", "pairs", "ties", "one response", "mean gap"),
    *("chosen length", "rejected length", "chosen longer"),
)
_WRITER_HEADER = ("written by", "responses", "mean rating", "chosen", "rejected")
_WORDS: Mapping[str, int] = {"Questions": 2, "Who wrote the responses": 1, "Overlap with tests": 1}
"""How many of a table's first columns hold words."""


def _group_row(each: GroupStat) -> list[str]:
    counts = (each.questions, each.responses, each.pairs, each.ties, each.single)
    longer = "–" if each.longer is None else f"{each.longer:.0%}"
    if each.longer_low is not None and each.longer_high is not None:
        longer += f" ({max(each.longer_low, 0.0):.0%} to {min(each.longer_high, 1.0):.0%})"
    lengths = ("–" if number is None else f"{number:,.0f}" for number in (each.chosen_length, each.rejected_length))
    gap = "–" if each.mean_gap is None else f"{each.mean_gap:.3g}"
    return [each.by, each.group, *(f"{count:,}" for count in counts), gap, *lengths, longer]


def _writer_row(each: WriterStat) -> list[str]:
    counts = (f"{each.chosen:,}", f"{each.rejected:,}")
    return [each.name or NOT_SAID, f"{each.responses:,}", f"{each.mean_rating:.3g}", *counts]


def preference_stat(
    rated: RatedQuestions,
    questions: Sequence[RatedQuestion],
    rule: Rule,
    seed: int,
    overlap: Overlap | None = None,
    *,
    not_checked: str = "",
) -> PreferenceStat:
    """Computes the statistics of rated responses.

    Args:
        rated: The rated responses.
        questions: Those of its questions that are looked at.
        rule: How pairs are made.
        seed: Seed of every draw.
        overlap: What the questions share with tests; None where that isn't known.
        not_checked: Why it isn't.
    """
    pairs, _ = pairs_of(questions, rule, seed)
    of_question: dict[str, list[PreferencePair]] = {}
    for pair in pairs:
        of_question.setdefault(pair.question.fingerprint, []).append(pair)
    return PreferenceStat(
        rated=rated,
        pairs=pairs,
        groups=[
            _group(by, name, some, of_question)
            for by in DIMENSIONS
            for name, some in sorted(_grouped(questions, by).items())
        ],
        writers=list(_writers(questions, pairs)),
        tests=[] if overlap is None else list(_tests(overlap)),
        not_checked=not_checked,
    )


def _grouped(questions: Iterable[RatedQuestion], by: Dimension) -> dict[str, list[RatedQuestion]]:
    found: dict[str, list[RatedQuestion]] = {}
    for question in questions:
        name = "all" if by == "overall" else getattr(question, by) or NOT_SAID
        found.setdefault(name, []).append(question)
    return found


def _group(
    by: Dimension, name: str, questions: Sequence[RatedQuestion], of_question: Mapping[str, Sequence[PreferencePair]]
) -> GroupStat:
    pairs = [pair for question in questions for pair in of_question.get(question.fingerprint, ())]
    chosen = [len(pair.chosen.text) for pair in pairs]
    rejected = [len(pair.rejected.text) for pair in pairs]
    longer = [0.5 * ((a > b) + (a >= b)) for a, b in zip(chosen, rejected, strict=True)]
    share = mean_interval(longer, [pair.question.fingerprint for pair in pairs])
    longer_share, low, high = (None if math.isnan(end) else end for end in share[:3])
    return GroupStat(
        by=by,
        group=name,
        questions=len(questions),
        responses=sum(len(question.answers) for question in questions),
        paired=sum(question.fingerprint in of_question for question in questions),
        ties=sum(
            len(question.answers) > 1 and len({answer.rating for answer in question.answers}) == 1
            for question in questions
        ),
        single=sum(len(question.answers) == 1 for question in questions),
        pairs=len(pairs),
        mean_gap=statistics.fmean(pair.gap for pair in pairs) if pairs else None,
        chosen_length=statistics.median(chosen) if pairs else None,
        rejected_length=statistics.median(rejected) if pairs else None,
        longer=longer_share,
        longer_low=low,
        longer_high=high,
    )


def _writers(questions: Iterable[RatedQuestion], pairs: Iterable[PreferencePair]) -> Iterator[WriterStat]:
    ratings: dict[str, list[float]] = {}
    for question in questions:
        for answer in question.answers:
            ratings.setdefault(answer.by, []).append(answer.rating)
    chosen, rejected = Counter[str](), Counter[str]()
    for pair in pairs:
        chosen[pair.chosen.by] += 1
        rejected[pair.rejected.by] += 1
    for name in sorted(ratings, key=lambda name: (-len(ratings[name]), name)):
        mean = statistics.fmean(ratings[name])
        yield WriterStat(name, len(ratings[name]), mean, chosen=chosen[name], rejected=rejected[name])


def _tests(overlap: Overlap) -> Iterator[OverlapStat]:
    questions = Counter(task for task, _ in overlap.tests)
    same = Counter(task for items in overlap.same.values() for task in {task for task, _ in items})
    near = Counter(task for task, _ in {(each.task, each.question) for each in overlap.near})
    for task, number in questions.items():
        yield OverlapStat(task, number, same=same[task], near=near[task])
