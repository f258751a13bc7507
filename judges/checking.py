"""Finding out before any inference whether an endpoint can grade."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges.addresses import Address
from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.connections import Connection
from culture_tasks.judges.jobs import JudgedBy
from culture_tasks.judges.replies import EMPTY_REPLY, Problem
from culture_tasks.judges.retries import RetryRule
from culture_tasks.judges.rubrics import Message, Rubric
from culture_tasks.judges.selection import WAYS_OUT
from culture_tasks.judges.verdicts import JudgeItem

logger = logging.getLogger(__name__)

_RULE = RetryRule(attempts=3, longest=60.0)
_MESSAGES: list[Message] = [{"role": "user", "content": "Reply with the word OK."}]
_SAMPLING = {"temperature": 0.0, "max_tokens": 512}

Expected = Sequence[tuple[Rubric, JudgeItem]]


def check_endpoint(connection: Connection, address: Address, by: JudgedBy, expected: Expected) -> None:
    """Makes one small request, with the sampling parameters of the first rubric; once per process and model.

    Raises:
        JudgeUnreachableError: If key, model or address are wrong, or nobody answers.
    """
    with connection.check_lock:
        if by.model in connection.checked_models or _is_all_cached(connection, by, expected):
            return
        if address.is_keyless_openai:
            raise JudgeUnreachableError(f"judge {by.model}: {address.shown} needs a key. {WAYS_OUT}")
        sampling = expected[0][0].sampling if expected else _SAMPLING
        request = ChatRequest(by.endpoint, by.model, _MESSAGES, sampling)
        result, attempts = connection.run(connection.asker.ask(request, _RULE))
        if isinstance(result, Problem) and not _answers_at_times(result):
            raise JudgeUnreachableError(_explanation(address, by, result, attempts))
        connection.checked_models.add(by.model)


def _is_all_cached(connection: Connection, by: JudgedBy, expected: Expected) -> bool:
    """Whether the cache knows every question; takes over what it tells of the endpoint's parameters."""
    subjects = [by.subject(rubric, item) for rubric, item in expected]
    if not subjects or not connection.cache.call(lambda cache: cache.holds_all(subjects)).result():
        return False
    known = connection.cache.call(lambda cache: cache.first_of(subjects[0])).result()
    if isinstance(known, Completion) and known.sampling is not None:
        connection.asker.adaptations(by.model).adopt(expected[0][0].sampling, known.sampling)
    logger.info("judge %s: every question was graded before, so the endpoint is not asked", by.model)
    return True


def _answers_at_times(problem: Problem) -> bool:
    """Whether key and model are right, though this one request brought nothing."""
    return problem.code == EMPTY_REPLY or problem.refused or (problem.status == 429 and problem.retry)


def _explanation(address: Address, by: JudgedBy, problem: Problem, attempts: int) -> str:
    times = "once" if attempts == 1 else f"{attempts} times"
    if problem.status in (401, 403):
        advice = "Correct the key (OPENAI_API_KEY, or AZURE_OPENAI_API_KEY for Azure), or ask for access to the model."
    elif problem.says_unknown_model:
        advice = "Correct the model's name in CULTURE_JUDGE=openai:<model>, or the URL, which usually ends in /v1."
    elif problem.status is None:
        advice = "Correct OPENAI_BASE_URL, or start the server there."
    else:
        advice = "See what the endpoint says."
    return f"judge {by.model}: {address.shown}, asked {times}: {problem.message}. {advice} {WAYS_OUT}"
