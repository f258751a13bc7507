"""The report of an agreement run, as text, Markdown, JSON and CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from culture_tasks import __version__
from culture_tasks.benchmarks.human_ratings import HumanRatings
from culture_tasks.metrics.rater_agreement import STATISTICS, Statistic
from culture_tasks.people.rated_responses import RatedResponses
from culture_tasks.people.raters import GroupAgreement, Rater, RaterAgreement
from culture_tasks.plain_files import write_whole
from culture_tasks.text_tables import as_markdown, as_text, markdown_cell, plain, write_csv

_SHORT: Mapping[Statistic, str] = {
    "pearson": "Pearson r",
    "spearman": "Spearman rho",
    "kendall_tau_b": "Kendall tau-b",
    "krippendorff_alpha": "alpha (ordinal)",
    "mean_error": "mean error",
    "mean_absolute_error": "MAE",
}
"""Names of the statistics in tables."""

_HEADER = ("by", "group", "n", "questions", "coverage", *(_SHORT[name] for name in STATISTICS))


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """An agreement run: the raters, people first, and each pair of them.

    Of the user's options ``resamples``, ``confidence`` and ``seed`` are those of the intervals, and groups with less
    coverage than ``least_coverage`` are marked.
    """

    data: RatedResponses
    raters: Sequence[Rater]
    comparisons: Sequence[RaterAgreement]
    options: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the single ratings as JSON data; NaN becomes null, with the reason beside it."""
        data = self.data
        content: dict[str, Any] = {
            "culture_tasks": __version__,
            "data": {
                "origin": data.origin,
                "fingerprint": data.fingerprint,
                "responses": len(data.responses),
                "questions": len({response.item.question for response in data.responses}),
                "skipped_rows": data.skipped,
                "responses_equal_to_a_reference": data.verbatim,
            },
            "options": dict(self.options),
            "judges": [
                {
                    "name": rater.name,
                    "identities": [identity.json for identity in rater.identities],
                    "endpoints": rater.endpoints,
                    "outcomes": dict(rater.outcomes),
                }
                for rater in self.raters
                if rater.verdicts
            ],
            "comparisons": [
                {
                    "first": comparison.first.name,
                    "second": comparison.second.name,
                    "groups": [_group_json(group) for group in comparison.groups],
                }
                for comparison in self.comparisons
            ],
            "paper": _published_json(data.like) if data.like and data.like.published else None,
        }
        return {**to_jsonable_python(content, inf_nan_mode="null")}

    def as_text(self) -> str:
        """Returns the text that the command prints."""
        parts: list[str] = []
        for comparison in self.comparisons:
            table = as_text(_HEADER, self._rows(comparison))
            parts += [plain(_heading(comparison)), table, *map(plain, _notes(comparison))]
        return "\n".join([*parts, *map(plain, self._facts())])

    def as_markdown(self) -> str:
        """Returns the report as Markdown."""
        parts = ["# Agreement of raters"]
        for comparison in self.comparisons:
            table = as_markdown(_HEADER, ([markdown_cell(cell) for cell in row] for row in self._rows(comparison)))
            parts += [f"## {markdown_cell(_heading(comparison))}", table]
            parts.append("\n".join(f"- {markdown_cell(note)}" for note in _notes(comparison)))
        parts += ["## Data and judges", "\n".join(f"- {markdown_cell(fact)}" for fact in self._facts())]
        return "\n\n".join(filter(None, parts)) + "\n"

    def _rows(self, comparison: RaterAgreement) -> list[list[str]]:
        like = None if comparison.first.verdicts else self.data.like
        rows: list[list[str]] = []
        for group in comparison.groups:
            mark = " (low)" if group.coverage < self.options["least_coverage"] else ""
            counts = [str(group.agreement.pairs), str(group.agreement.clusters), f"{group.coverage:.1%}{mark}"]
            cells = [group.agreement.estimates[name].text for name in STATISTICS]
            rows.append([group.dimension, group.label, *counts, *cells])
            for published in like.published if like else ():
                if published.dimension == group.dimension and group.label in published.figures:
                    figures = published.figures[group.label]
                    rows.append(["", published.raters, "", "", "", *(figures.get(name, "") for name in STATISTICS)])
        return rows

    def _facts(self) -> Iterator[str]:
        data = self.data
        yield f"data: {data.origin}, fingerprint {data.fingerprint}, {len(data.responses)} responses"
        if data.skipped:
            yield f"rows skipped because they can't be used: {data.skipped}"
        if data.verbatim:
            yield f"responses identical to a reference, which any judge rates high: {data.verbatim}"
        for rater in self.raters:
            if rater.verdicts:
                yield f"judge: {rater.description}; verdicts: {_counts(rater.outcomes)}"
        how = f"{self.options['resamples']} resamples of questions, seed {self.options['seed']}"
        yield f"in parentheses: {self.options['confidence']:.0%} bootstrap percentile intervals, {how}"
        yield "coverage: share of the responses that both raters rated; the others are left out of all statistics"
        if data.like is not None and data.like.published:
            yield f"rows that begin with 'paper': {data.like.published_in}"


def write_report(report: AgreementReport, folder: Path) -> list[Path]:
    """Writes ``agreement.json``, ``agreement.md``, ``agreement.csv`` and ``ratings.csv``, and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in ("agreement.json", "agreement.md", "agreement.csv", "ratings.csv")]
    content = json.dumps(report.to_json(), indent=2, ensure_ascii=True, allow_nan=False)
    write_whole(paths[0], content + "\n")
    write_whole(paths[1], report.as_markdown())
    write_csv(paths[2], _STATISTICS_HEADER, _statistics_rows(report))
    header = ["row", "language", "category", "rubric", "question"]
    for rater in report.raters:
        judged = [f"{rater.name} outcome", f"{rater.name} error"] if rater.verdicts else []
        header += [rater.description, *judged]
    write_csv(paths[3], header, _ratings_rows(report))
    return paths


_STATISTICS_HEADER = (
    *("first", "second", "by", "group", "statistic", "value", "low", "high", "confidence", "reason"),
    *("n", "questions", "responses", "coverage", "verdicts", "first_rater", "second_rater", "data", "fingerprint"),
)


def _statistics_rows(report: AgreementReport) -> Iterator[list[str | float | None]]:
    data = report.data
    for comparison, as_json in zip(report.comparisons, report.to_json()["comparisons"], strict=True):
        for group in as_json["groups"]:
            counts = [group[name] for name in ("n", "questions", "responses", "coverage")]
            verdicts = "; ".join(f"{name}: {_counts(outcomes)}" for name, outcomes in group["outcomes"].items())
            who = [verdicts, comparison.first.description, comparison.second.description, data.origin, data.fingerprint]
            for name, estimate in group["statistics"].items():
                *numbers, reason = estimate.values()
                place = [comparison.first.name, comparison.second.name, group["by"], group["group"], name]
                yield [*place, *numbers, report.options["confidence"], reason, *counts, *who]


def _ratings_rows(report: AgreementReport) -> Iterator[list[str | float | None]]:
    for index, response in enumerate(report.data.responses):
        row: list[str | float | None] = [response.row, response.language, response.category, response.rubric]
        row.append(response.item.question)
        for rater in report.raters:
            row.append(None if math.isnan(rater.ratings[index]) else rater.ratings[index])
            if rater.verdicts:
                row += [rater.verdicts[index].outcome, rater.verdicts[index].error]
        yield row


def _group_json(group: GroupAgreement) -> dict[str, Any]:
    statistics = {
        name: {"value": estimate.value, "low": estimate.low, "high": estimate.high, "reason": estimate.reason}
        for name, estimate in group.agreement.estimates.items()
    }
    return {
        "by": group.dimension,
        "group": group.label,
        "responses": group.responses,
        "n": group.agreement.pairs,
        "questions": group.agreement.clusters,
        "coverage": group.coverage,
        "outcomes": group.outcomes,
        "statistics": statistics,
    }


def _heading(comparison: RaterAgreement) -> str:
    first, second = comparison.first.name, comparison.second.name
    return f"{second} against {first} (errors: {second} minus {first})"


def _notes(comparison: RaterAgreement) -> list[str]:
    """Explains each missing statistic, once per group and reason."""
    notes = []
    for group in comparison.groups:
        missing: dict[str, list[str]] = {}
        for name, estimate in group.agreement.estimates.items():
            if estimate.reason is not None:
                missing.setdefault(estimate.reason, []).append(_SHORT[name])
        notes += [f"{group.dimension} {group.label}, {', '.join(names)}: {why}" for why, names in missing.items()]
    return notes


def _counts(outcomes: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "none"


def _published_json(ratings: HumanRatings) -> dict[str, Any]:
    content: dict[str, Any] = {"source": ratings.published_in}
    for table in ratings.published:
        by_group = {
            group: {name: float(text) for name, text in texts.items()} for group, texts in table.figures.items()
        }
        content[table.name] = by_group["all"] if table.dimension == "overall" else by_group
    return content
