"""Finding out before any inference whether an endpoint can grade: by one real question, graded as all others are."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from culture_tasks.errors import WAYS_OUT, JudgeUnreachableError
from culture_tasks.judges.adaptations import Adaptations
from culture_tasks.judges.addresses import Address
from culture_tasks.judges.cache_thread import CacheThread
from culture_tasks.judges.completions import Completion
from culture_tasks.judges.connections import Connection
from culture_tasks.judges.grading import Grading
from culture_tasks.judges.jobs import JudgedBy
from culture_tasks.judges.pacing import Patience
from culture_tasks.judges.replies import Problem, one_line
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem, Verdict

logger = logging.getLogger(__name__)

_PATIENCE = Patience(longest=10.0)
_GRADINGS_A_LOOK_UP = 1000
OTHERWISE = "Or set CULTURE_JUDGE=none to record the responses now and grade them later with `culture-tasks rejudge`."
"""What a user can do who has no judge that works now."""

Expected = Sequence[tuple[Rubric, JudgeItem]]


def check_endpoint(
    connection: Connection, address: Address, by: JudgedBy, expected: Expected, *, responses_known: bool
) -> None:
    """Asks for one verdict by each format and sampling that will be needed; once per process, endpoint and model.

    The question is the first one that will be graded, with a reference in place of the response: a judge that gives no
    readable verdict on it gives none on anything. What the judge answers isn't kept. Nothing is asked where the cache
    holds every verdict, which can be told only where the responses are known.

    Raises:
        JudgeUnreachableError: If key, model or address are wrong, nobody answers, or the reply can't be read.
    """
    with connection.check_lock:
        unchecked = {
            family: items for family, items in _families(by, expected).items() if family not in connection.checked
        }
        adaptations = connection.asker.adaptations(by.model)
        if not unchecked or (responses_known and is_at_hand(connection.cache, adaptations, by, expected)):
            return
        if address.is_keyless_openai:
            raise JudgeUnreachableError(f"judge {by.model}: {address.shown} needs a key. {WAYS_OUT}")
        for family, items in unchecked.items():
            if _grades(connection, address, by, items):
                connection.checked.add(family)


def _families(by: JudgedBy, expected: Expected) -> dict[tuple[str, ...], Expected]:
    """Groups what will be graded by what has to work for it: a model, a format, sampling parameters."""
    families: dict[tuple[str, ...], list[tuple[Rubric, JudgeItem]]] = {}
    for rubric, item in expected:
        families.setdefault((by.model, rubric.reminder, repr(sorted(by.sampling(rubric).items()))), []).append(
            (rubric, item)
        )
    return dict(families)


def is_at_hand(cache: CacheThread, adaptations: Adaptations, by: JudgedBy, expected: Expected) -> bool:
    """Whether the cache holds a score for each response; takes over what it tells of the endpoint's parameters."""
    for start in range(0, len(expected), _GRADINGS_A_LOOK_UP):
        gradings = [by.grading(rubric, item) for rubric, item in expected[start : start + _GRADINGS_A_LOOK_UP]]
        while gradings:
            requests = [by.request(grading) for grading in gradings]
            found = cache.get_many([request.key for request in requests]).result()
            unread: list[Grading] = []
            for grading, request in zip(gradings, requests, strict=True):
                kept = found.get(request.key)
                if kept is None:
                    return False
                if kept.completion.sampling is not None and kept.completion.sampling != request.sampling:
                    adaptations.adopt(request.sampling, kept.completion.sampling)
                verdict = grading.take(kept.completion, by.model, 0, cached=True)
                if verdict is None:
                    unread.append(grading)
                elif verdict.outcome != "scored":
                    return False
            gradings = unread
    logger.info("judge %s: every verdict is in the cache, so nobody is asked", by.model)
    return True


def _grades(connection: Connection, address: Address, by: JudgedBy, items: Expected) -> bool:
    """Asks for one verdict; False where a rate limit leaves open whether there will be any.

    A question may offend a content filter that lets all others pass: then another one is asked.

    Raises:
        JudgeUnreachableError: If there is no readable verdict.
    """
    problem = ""
    for rubric, item in _some(items):
        result = _asked(connection, by, by.grading(rubric, replace(item, response=item.references[0])))
        if isinstance(result, Verdict):
            if result.outcome == "scored":
                return True
            problem = unreadable(f"judge {by.model}: {address.shown}", rubric, result)
        elif result.status == 429 and result.retry:
            logger.warning("judge %s: %s limits the rate (%s): going on", by.model, address.shown, result.message)
            return False
        else:
            problem = f"judge {by.model}: {address.shown}: {result.message}. {_advice(address, result)} {OTHERWISE}"
        if not (isinstance(result, Problem) and result.refused):
            break
    raise JudgeUnreachableError(problem)


def _some(items: Expected) -> Iterator[tuple[Rubric, JudgeItem]]:
    """Yields the first item, one of the middle, and the last."""
    for place in dict.fromkeys((0, len(items) // 2, len(items) - 1)):
        yield items[place]


def _asked(connection: Connection, by: JudgedBy, grading: Grading) -> Verdict | Problem:
    while True:
        result, attempts = connection.run(connection.asker.ask(by.request(grading), patience=_PATIENCE))
        if not isinstance(result, Completion):
            return result
        verdict = grading.take(result, by.model, attempts)
        if verdict is not None:
            return verdict


def unreadable(who: str, rubric: Rubric, verdict: Verdict) -> str:
    """Says that a judge gave no verdict on a reference answer, why that may be, and what to do."""
    return (
        f"{who} was asked to grade a reference answer ({rubric.name}), and "
        f"{verdict.error}: {one_line(verdict.completion or '') or 'an empty reply'!r}. A judge that thinks for long "
        "needs a larger CULTURE_JUDGE_MAX_TOKENS; one that doesn't keep to the format can't grade: name another with "
        f"CULTURE_JUDGE. {OTHERWISE}"
    )


def _advice(address: Address, problem: Problem) -> str:
    where = address.url_variable
    if problem.status in (401, 403):
        return f"Correct the key ({address.key_variable}), or ask for access to the model."
    if problem.says_unknown_model:
        model = "Name a model that it has by CULTURE_JUDGE=openai:<model>"
        if where == "AZURE_OPENAI_ENDPOINT":
            return "Name one of your deployments by CULTURE_JUDGE=openai:<deployment>, or correct OPENAI_API_VERSION."
        return f"{model}, or correct {where}, which usually ends in /v1." if where else f"{model}."
    if problem.code == "insufficient_quota":
        return f"Its account has no credit left: add some, or use another key ({address.key_variable})."
    if problem.status is None:
        reach = "See whether this machine can reach it; HTTPS_PROXY names a proxy."
        return f"Correct {where}, or start the server there." if where else reach
    if 300 <= problem.status < 400 and where:
        return f"Correct {where}."
    return "See what the endpoint says."
