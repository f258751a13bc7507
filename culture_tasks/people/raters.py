"""Who rated the responses, people and judges, and how well each pair of them agrees."""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culture_tasks.benchmarks.human_ratings import Dimension
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.metrics.rater_agreement import Agreement, agreement
from culture_tasks.people.rated_responses import known_categories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from culture_tasks.judges.judge import Judge
    from culture_tasks.judges.rubric.verdicts import JudgeIdentity, Outcome
    from culture_tasks.people.rated_responses import RatedResponse

    Progress = Callable[[int, int], None]

HUMAN = "human"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rater:
    """Who rated the responses: people, or a judge as the user names it; a rating is NaN where there is none.

    Attributes:
        outcomes: The outcome of each verdict; None for people.
        errors: Why there is no rating, for each response; empty for people.
        identities: The judge with each rubric that was used; empty for people.
        endpoints: The endpoints that answered, without secrets.
    """

    name: str
    ratings: tuple[float, ...]
    outcomes: tuple[Outcome, ...] | None = None
    errors: tuple[str | None, ...] = ()
    identities: tuple[JudgeIdentity, ...] = ()
    endpoints: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """The rater in one line: model, endpoint, and prompts with the first digits of their hashes."""
        if not self.identities:
            return self.name
        one = self.identities[0]
        endpoint = f", endpoint {', '.join(self.endpoints)}" if self.endpoints else ""
        prompts = {
            f"{each.prompt} sha256 {each.prompt_sha256[:12]}" if each.prompt_sha256 else each.prompt
            for each in self.identities
        }
        return f"{self.name} ({one.backend} {one.model}{endpoint}, prompts: {'; '.join(sorted(prompts))})"


def human_rater(responses: Sequence[RatedResponse]) -> Rater | None:
    """Returns people's ratings as a rater, or None if the data have none."""
    if all(response.human is None for response in responses):
        return None
    return Rater(HUMAN, tuple(math.nan if response.human is None else response.human for response in responses))


def grade(
    judges: Mapping[str, Judge], responses: Sequence[RatedResponse], progress: Progress | None = None
) -> list[Rater]:
    """Has every judge grade every response; all verdicts are asked for before the first is awaited.

    Progress is called with the number of verdicts so far and of all, as they arrive.

    Raises:
        JudgeError: If a judge can't be used at all; a verdict that fails is an outcome.
    """
    rubrics = {name: rubric_named(name) for name in sorted({response.rubric for response in responses})}
    distinct = dict.fromkeys((response.rubric, response.item) for response in responses)
    for judge in judges.values():
        judge.check([(rubrics[name], item) for name, item in distinct], responses_known=True)
    tickets = {
        name: [judge.submit(rubrics[response.rubric], response.item) for response in responses]
        for name, judge in judges.items()
    }
    total = len(judges) * len(responses)
    _log.info("agreement: %d verdicts requested", total)
    raters: list[Rater] = []
    for name, judge in judges.items():
        verdicts = []
        for done, ticket in enumerate(tickets[name], start=len(raters) * len(responses) + 1):
            verdicts.append(ticket.verdict())
            if progress is not None:
                progress(done, total)
        scored = sum(verdict.outcome == "scored" for verdict in verdicts)
        if scored < len(verdicts):
            _log.warning("agreement: %s scored %d of %d responses", name, scored, len(verdicts))
        raters.append(
            Rater(
                name=name,
                ratings=tuple(math.nan if verdict.score is None else verdict.score for verdict in verdicts),
                outcomes=tuple(verdict.outcome for verdict in verdicts),
                errors=tuple(verdict.error for verdict in verdicts),
                identities=tuple(map(judge.identity, rubrics.values())),
                endpoints=tuple(sorted({verdict.endpoint for verdict in verdicts if verdict.endpoint})),
            )
        )
    return raters


class GroupAgreement(NamedTuple):
    """Two raters on some of the responses.

    Attributes:
        label: The group: ``all``, a language code, or a category.
        responses: Number of responses.
        outcomes: For each judge, the number of verdicts by outcome.
        agreement: Statistics over the responses that both rated.
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
        judges = {rater.name: rater.outcomes for rater in (first, second) if rater.outcomes is not None}
        groups: list[GroupAgreement] = []
        for (dimension, label), rows in _groups(responses).items():
            outcomes = {name: dict(Counter(own[row] for row in rows)) for name, own in judges.items()}
            found = agreement(
                [first.ratings[row] for row in rows],
                [second.ratings[row] for row in rows],
                clusters=[responses[row].item.question for row in rows],
                resamples=resamples,
                confidence=confidence,
                rng=np.random.default_rng(seed),
            )
            groups.append(GroupAgreement(dimension, label, len(rows), outcomes, found))
        comparisons.append(RaterAgreement(first, second, tuple(groups)))
    return comparisons


def _groups(responses: Sequence[RatedResponse]) -> dict[tuple[Dimension, str], list[int]]:
    """Returns the places of the responses of each group: all, languages, and categories in their papers' order."""
    order = {category: place for place, category in enumerate(known_categories())}
    groups: dict[tuple[Dimension, str], list[int]] = {("overall", "all"): list(range(len(responses)))}
    for language in sorted({response.language for response in responses}):
        groups["language", language] = [row for row, one in enumerate(responses) if one.language == language]
    categories = {response.category for response in responses}
    for category in sorted(categories, key=lambda name: (order.get(name, len(order)), name)):
        groups["category", category] = [row for row, one in enumerate(responses) if one.category == category]
    return groups
