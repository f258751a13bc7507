"""CrossCult-KIBench with nothing inserted: what a model knows of each culture, as in Figure 1b, and on each topic."""

from __future__ import annotations

from collections.abc import Iterator

from culture_tasks.benchmarks.crosscult.vocabulary import LANGUAGE_NAMES, PARTITIONS, TOPICS
from culture_tasks.report.benchmarks import PERCENT
from culture_tasks.report.layouts.crosscult import overlap_in
from culture_tasks.report.layouts.grid import Context, Place, cell_in, grid, with_judge
from culture_tasks.report.model import Column, Table
from culture_tasks.report.numbers import Where
from culture_tasks.report.units import Measured

_NOTE = "Each language asks of its own culture: English of the U.S., Chinese of China, Arabic of the Arab region."


def tables(context: Context, measured: Measured) -> Iterator[Table]:
    """Yields the table by language and topic."""
    places = [
        *(place for each in PARTITIONS for place in _pair(measured, each, LANGUAGE_NAMES[each], "partition")),
        *(place for topic in TOPICS for place in _pair(measured, topic, topic.title(), "topic")),
        Place(Column("all_rouge_l", "ROUGE-L", PERCENT, "All"), overlap_in(measured, ())),
        Place(Column("all_judge_score", "LLM Judge", measured.unit.scale, "All"), measured.unit.cells.get),
    ]
    key = measured.unit.key
    title = f"{key}: ROUGE-L in percent and the judge's score from 0 to 10, by language and by topic"
    source = "CrossCult-KIBench, Figure 1b"
    table = Table(f"{key}_by_language", title, ("Model", "Judge"), (), (), source, "crosscult", (_NOTE,))
    yield grid(context, table, places, measured.unit.cells, with_judge(context, measured))


def _pair(measured: Measured, group: str, over: str, field: str) -> Iterator[Place]:
    where: Where = ((field, group),)
    yield Place(Column(f"{group}_rouge_l", "ROUGE-L", PERCENT, over), overlap_in(measured, where))
    yield Place(Column(f"{group}_judge_score", "LLM Judge", measured.unit.scale, over), cell_in(measured, where))
