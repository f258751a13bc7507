"""Who rated the responses, people and judges, and how well each pair of them agrees."""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.human_ratings import Dimension
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.judges.judge import Judge, Ticket
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, Outcome, Verdict
from culture_tasks.metrics.rater_agreement import Agreement, agreement
from culture_tasks.people.rated_responses import RatedResponse, rated_categories

Track = Callable[[Sequence[Ticket]], Iterable[Ticket]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rater:
    """Who rated the responses: people, or a judge as the user names it; a rating is NaN where there is none.

    A judge has a verdict of each response, and its identity with each rubric that was used.
    """

    name: str
    ratings: tuple[float, ...]
    verdicts: tuple[Verdict, ...] = ()
    identities: tuple[JudgeIdentity, ...] = ()

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
        """The rater in one line: model, endpoint, and prompts with the first digits of their hashes."""
        if not self.identities:
            return self.name
        judge = self.identities[0]
        endpoint = f", endpoint {', '.join(self.endpoints)}" if self.endpoints else ""
        prompts = {
            f"{identity.prompt} sha256 {identity.prompt_sha256[:12]}" if identity.prompt_sha256 else identity.prompt
            for identity in self.identities
        }
        return f"{self.name} ({judge.backend} {judge.model}{endpoint}, prompts: {'; '.join(sorted(prompts))})"


def human_rater(responses: Sequence[RatedResponse]) -> Rater | None:
    """Returns people's ratings as a rater, or None if the data have none."""
    if all(response.human is None for response in responses):
        return None
    return Rater("human", tuple(math.nan if response.human is None else response.human for response in responses))


def grade(judges: Mapping[str, Judge], responses: Sequence[RatedResponse], track: Track = iter) -> list[Rater]:
    """Has every judge grade every response; all verdicts are requested before the first is awaited, in ``track``.

    Raises:
        JudgeError: If a judge can't be used at all; a verdict that fails is an outcome.
    """
    rubrics = {name: rubric_named(name) for name in sorted({response.rubric for response in responses})}
    distinct = dict.fromkeys((response.rubric, response.item) for response in responses)
    for judge in judges.values():
        judge.check([(rubrics[name], item) for name, item in distinct], responses_known=True)
    tickets = [
        judge.submit(rubrics[response.rubric], response.item) for judge in judges.values() for response in responses
    ]
    _log.info("agreement: %d verdicts requested", len(tickets))
    all_verdicts = iter([ticket.verdict() for ticket in track(tickets)])
    raters: list[Rater] = []
    for name, judge in judges.items():
        verdicts = tuple(itertools.islice(all_verdicts, len(responses)))
        ratings = tuple(math.nan if verdict.score is None else verdict.score for verdict in verdicts)
        rater = Rater(name, ratings, verdicts, tuple(map(judge.identity, rubrics.values())))
        if rater.outcomes["scored"] < len(verdicts):
            _log.warning("agreement: %s scored %d of %d responses", name, rater.outcomes["scored"], len(verdicts))
        raters.append(rater)
    return raters


class GroupAgreement(NamedTuple):
    """Two raters on a group of responses: all, or those of a language or a category.

    ``outcomes`` are the numbers of each judge's verdicts; the agreement is over the responses that both rated.
    """

    dimension: Dimension
    label: str
    responses: int
    outcomes: Mapping[str, Mapping[Outcome, int]]
    agreement: Agreement

    @property
    def coverage(self) -> float:
        """Share of the responses, from 0 to 1, that both raters rated: the others are left out of the statistics."""
        return self.agreement.pairs / self.responses


class RaterAgreement(NamedTuple):
    """Two raters; errors are the second's rating minus the first's."""

    first: Rater
    second: Rater
    groups: tuple[GroupAgreement, ...]


def compare(
    raters: Sequence[Rater],
    responses: Sequence[RatedResponse],
    *,
    resamples: int = 1_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[RaterAgreement]:
    """Compares each rater with each later one, by resamples of questions.

    Each group starts from the seed, so its interval doesn't depend on the other groups.
    """
    comparisons: list[RaterAgreement] = []
    for first, second in itertools.combinations(raters, 2):
        judges = {rater.name: rater.verdicts for rater in (first, second) if rater.verdicts}
        groups: list[GroupAgreement] = []
        for (dimension, label), rows in _groups(responses).items():
            outcomes = {name: dict(Counter(verdicts[row].outcome for row in rows)) for name, verdicts in judges.items()}
            statistics = agreement(
                [first.ratings[row] for row in rows],
                [second.ratings[row] for row in rows],
                clusters=[responses[row].item.question for row in rows],
                resamples=resamples,
                confidence=confidence,
                rng=np.random.default_rng(seed),
            )
            groups.append(GroupAgreement(dimension, label, len(rows), outcomes, statistics))
        comparisons.append(RaterAgreement(first, second, tuple(groups)))
    return comparisons


def _groups(responses: Sequence[RatedResponse]) -> dict[tuple[Dimension, str], list[int]]:
    """Returns the places of the responses of each group: all, languages, and categories in their papers' order."""
    order = {category: place for place, category in enumerate(rated_categories())}
    groups: dict[tuple[Dimension, str], list[int]] = {("overall", "all"): list(range(len(responses)))}
    for language in sorted({response.language for response in responses}):
        groups["language", language] = [row for row, response in enumerate(responses) if response.language == language]
    categories = {response.category for response in responses}
    for category in sorted(categories, key=lambda name: (order.get(name, len(order)), name)):
        groups["category", category] = [row for row, response in enumerate(responses) if response.category == category]
    return groups
