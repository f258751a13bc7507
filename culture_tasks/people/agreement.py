"""How well a judge agrees with people on the same responses, as text, JSON and CSV."""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import to_jsonable_python

from culture_tasks import __version__
from culture_tasks.benchmarks.human_ratings import Dimension
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.judges.judge import Judge, Ticket
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, Outcome, Verdict
from culture_tasks.metrics.rater_agreement import STATISTICS, Agreement, Statistic, agreement
from culture_tasks.people.rated_responses import RatedResponse, RatedResponses, rated_categories
from culture_tasks.plain_files import write_whole
from culture_tasks.text_tables import as_text, plain, write_csv

Track = Callable[[Sequence[Ticket]], Iterable[Ticket]]

_log = logging.getLogger(__name__)

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
class Verdicts:
    """A judge, as the user names it, with its verdict of each response."""

    name: str
    verdicts: tuple[Verdict, ...]
    identities: tuple[JudgeIdentity, ...]  # with each rubric that was used

    @property
    def ratings(self) -> list[float]:
        """The ratings, NaN where there is none."""
        return [math.nan if verdict.score is None else verdict.score for verdict in self.verdicts]

    @property
    def endpoints(self) -> list[str]:
        """The endpoints that answered, without secrets."""
        return sorted({verdict.endpoint for verdict in self.verdicts if verdict.endpoint})

    @property
    def outcomes(self) -> Counter[Outcome]:
        """The number of verdicts by outcome."""
        return Counter(verdict.outcome for verdict in self.verdicts)

    @property
    def description(self) -> str:
        """The judge in one line: model, endpoint, and prompts with the first digits of their hashes."""
        judge = self.identities[0]
        endpoint = f", endpoint {', '.join(self.endpoints)}" if self.endpoints else ""
        hashes = {each.prompt: each.prompt_sha256[:12] for each in self.identities}
        prompts = "; ".join(f"{name} sha256 {digits}" if digits else name for name, digits in sorted(hashes.items()))
        return f"{self.name} ({judge.backend} {judge.model}{endpoint}, prompts: {prompts})"


def grade(name: str, judge: Judge, responses: Sequence[RatedResponse], track: Track = iter) -> Verdicts:
    """Has a judge grade every response; all verdicts are requested before the first is awaited, in ``track``.

    Raises:
        JudgeError: If the judge can't be used at all; a verdict that fails is an outcome.
    """
    rubrics = {name: rubric_named(name) for name in sorted({response.rubric for response in responses})}
    requests = [(rubrics[response.rubric], response.item) for response in responses]
    distinct = {(rubric.name, item): (rubric, item) for rubric, item in requests}
    judge.check([*distinct.values()], responses_known=True)
    tickets = [judge.submit(rubric, item) for rubric, item in requests]
    _log.info("agreement: %d verdicts requested", len(tickets))
    all_verdicts = tuple(ticket.verdict() for ticket in track(tickets))
    graded = Verdicts(name, all_verdicts, tuple(map(judge.identity, rubrics.values())))
    if graded.outcomes["scored"] < len(responses):
        _log.warning("agreement: %s scored %d of %d responses", name, graded.outcomes["scored"], len(responses))
    return graded


class _Group(NamedTuple):
    """The agreement on a group of responses: all, or those of a language or a category."""

    by: Dimension
    group: str
    responses: int
    agreement: Agreement

    @property
    def coverage(self) -> float:
        """Share of the responses, from 0 to 1, that both rated: the others are left out of the statistics."""
        return self.agreement.pairs / self.responses

    @property
    def json(self) -> dict[str, Any]:
        """The group as JSON data."""
        counts = {"responses": self.responses, "n": self.agreement.pairs, "questions": self.agreement.clusters}
        statistics = {
            name: {"value": estimate.value, "low": estimate.low, "high": estimate.high, "reason": estimate.reason}
            for name, estimate in self.agreement.estimates.items()
        }
        return {"by": self.by, "group": self.group, **counts, "coverage": self.coverage, "statistics": statistics}

    def reasons(self) -> Iterator[str]:
        """Yields why statistics are missing, once per reason."""
        missing: dict[str, list[str]] = {}
        for name, estimate in self.agreement.estimates.items():
            if estimate.reason is not None:
                missing.setdefault(estimate.reason, []).append(_SHORT[name])
        yield from (f"{self.by} {self.group}, {', '.join(names)}: {reason}" for reason, names in missing.items())


class AgreementReport:
    """The agreement of a judge with people; errors are the judge's rating less theirs.

    The user's options are ``resamples`` and ``seed`` of the intervals, and ``least_coverage``, below which a group is
    marked.
    """

    def __init__(self, data: RatedResponses, judge: Verdicts, options: Mapping[str, Any]) -> None:
        self.data, self.judge, self.options = data, judge, options
        self.groups = [self._group(*group, places) for group, places in _groups(data.responses).items()]

    def _group(self, by: Dimension, label: str, places: Sequence[int]) -> _Group:
        """Returns the agreement on some responses, from the seed, so that no group's interval depends on the others."""
        responses, ratings = [self.data.responses[place] for place in places], self.judge.ratings
        statistics = agreement(
            [math.nan if response.human is None else response.human for response in responses],
            [ratings[place] for place in places],
            clusters=[response.item.question for response in responses],
            resamples=self.options["resamples"],
            rng=np.random.default_rng(self.options["seed"]),
        )
        return _Group(by, label, len(places), statistics)

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the single ratings as JSON data; NaN becomes null, with the reason beside it."""
        data, judge = self.data, self.judge
        content: dict[str, Any] = {
            "culture_tasks": __version__,
            "data": {
                "origin": data.origin,
                "fingerprint": data.fingerprint,
                "responses": len(data.responses),
                "questions": len({response.item.question for response in data.responses}),
                "responses_equal_to_a_reference": data.verbatim,
            },
            "options": dict(self.options),
            "judges": [
                {
                    "name": judge.name,
                    "identities": [identity.json for identity in judge.identities],
                    "endpoints": judge.endpoints,
                    "outcomes": dict(judge.outcomes),
                }
            ],
            "comparisons": [
                {"first": "human", "second": judge.name, "groups": [group.json for group in self.groups]},
            ],
        }
        return {**to_jsonable_python(content, inf_nan_mode="null")}

    def as_text(self) -> str:
        """Returns the text that the command prints."""
        judge = self.judge.name
        title = f"{judge} against human (errors: {judge} minus human)"
        reasons = [reason for group in self.groups for reason in group.reasons()]
        table = as_text(_HEADER, list(self._rows()))
        return "\n".join([plain(title), table, *map(plain, (*reasons, *self._facts()))])

    def _rows(self) -> Iterator[list[str]]:
        """Yields a row per group, and below it those of the paper."""
        like = self.data.like
        for group in self.groups:
            mark = " (low)" if group.coverage < self.options["least_coverage"] else ""
            counts = [str(group.agreement.pairs), str(group.agreement.clusters), f"{group.coverage:.1%}{mark}"]
            cells = [group.agreement.estimates[name].text for name in STATISTICS]
            yield [group.by, group.group, *counts, *cells]
            for published in like.published if like else ():
                if published.dimension == group.by and group.group in published.figures:
                    figures = published.figures[group.group]
                    yield ["", published.raters, "", "", "", *(figures.get(name, "") for name in STATISTICS)]

    def _facts(self) -> Iterator[str]:
        data = self.data
        yield f"data: {data.origin}, fingerprint {data.fingerprint}, {len(data.responses)} responses"
        if data.verbatim:
            yield f"responses identical to a reference, which any judge rates high: {data.verbatim}"
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.judge.outcomes.items()))
        yield f"judge: {self.judge.description}; verdicts: {outcomes}"
        how = f"{self.options['resamples']} resamples of questions, seed {self.options['seed']}"
        yield f"in parentheses: 95% bootstrap percentile intervals, {how}"
        yield "coverage: share of the responses that both rated; the others are left out of all statistics"
        if data.like is not None and data.like.published:
            yield f"rows that begin with 'paper': {data.like.published_in}"

    def write(self, folder: Path) -> list[Path]:
        """Writes ``agreement.json``, ``agreement.txt`` and ``ratings.csv``, and returns their paths."""
        paths = [folder / name for name in ("agreement.json", "agreement.txt", "ratings.csv")]
        write_whole(paths[0], json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n")
        write_whole(paths[1], self.as_text() + "\n")
        name = self.judge.name
        header = ["row", "language", "category", "rubric", "question", "human"]
        write_csv(paths[2], [*header, self.judge.description, f"{name} outcome", f"{name} error"], self._ratings())
        return paths

    def _ratings(self) -> Iterator[list[str | float | None]]:
        for response, verdict in zip(self.data.responses, self.judge.verdicts, strict=True):
            about = (response.language, response.category, response.rubric, response.item.question)
            yield [response.row, *about, response.human, verdict.score, verdict.outcome, verdict.error]


def _groups(responses: Sequence[RatedResponse]) -> dict[tuple[Dimension, str], list[int]]:
    """Returns the places of the responses of each group: all, languages, and categories in their papers' order."""
    order = {category: place for place, category in enumerate(rated_categories())}
    languages: dict[str, list[int]] = {}
    categories: dict[str, list[int]] = {}
    for place, response in enumerate(responses):
        languages.setdefault(response.language, []).append(place)
        categories.setdefault(response.category, []).append(place)
    groups: dict[tuple[Dimension, str], list[int]] = {("overall", "all"): list(range(len(responses)))}
    groups |= {("language", name): languages[name] for name in sorted(languages)}
    in_order = sorted(categories, key=lambda name: (order.get(name, len(order)), name))
    return groups | {("category", name): categories[name] for name in in_order}
