"""Finding out before any inference whether a judge can grade: it gets one real question, graded as all others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from culture_tasks.errors import WAYS_OUT, JudgeUnreachableError
from culture_tasks.judges.cache.verdict_cache import CacheThread
from culture_tasks.judges.completions import Problem
from culture_tasks.judges.endpoint.addresses import Address
from culture_tasks.judges.endpoint.asker import Adaptations
from culture_tasks.judges.endpoint.budget import USED_UP
from culture_tasks.judges.endpoint.client import one_line
from culture_tasks.judges.endpoint.engine import Engine
from culture_tasks.judges.endpoint.jobs import JudgedBy, VerdictJob, open_requests
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Verdict

logger = logging.getLogger(__name__)

_PATIENCE = Patience(longest=10.0)
_JOBS_PER_LOOKUP = 1000
OTHERWISE = "Or set CULTURE_JUDGE=none to record the responses now and grade them later with `culture-tasks rejudge`."
"""What a user can do who has no judge that works now."""

Expected = Sequence[tuple[Rubric, JudgeItem]]


def check_endpoint(
    engine: Engine, *, address: Address, by: JudgedBy, expected: Expected, responses_known: bool
) -> Verdict | None:
    """Asks for one verdict; once per process, endpoint and model.

    The question is the first one that will be graded, with a reference in place of the response: a judge that gives no
    readable verdict on it gives none on anything. The reply isn't kept. Nothing is asked where the cache holds every
    verdict, which can be told only where the responses are known.

    Returns:
        The verdict; None where nothing was asked, or where a rate limit or a content filter leaves it open.

    Raises:
        JudgeUnreachableError: If key, model or address are wrong, there is no answer, or the reply can't be read.
    """
    with engine.check_lock:
        adaptations = engine.asker.adaptations
        if not expected or engine.is_checked:
            return None
        if responses_known and is_at_hand(engine.cache, adaptations=adaptations, by=by, expected=expected):
            return None
        who = f"judge {by.model}: {address.shown}"
        if address.is_keyless_openai:
            raise JudgeUnreachableError(f"{who} needs a key. {WAYS_OUT}")
        rubric, item = expected[0]
        job = VerdictJob(by, rubric, replace(item, response=item.references[0]), progress=None, adaptations=adaptations)
        while not job.is_resolved:
            answer = engine.run(engine.asker.ask(job.request, patience=_PATIENCE))
            if isinstance(problem := answer.reply, Problem):
                if not ((problem.status == 429 and problem.retry) or problem.refused):
                    raise JudgeUnreachableError(f"{who}: {problem.message}. {_advice(address, problem)} {OTHERWISE}")
                why = "declines the first question" if problem.refused else "limits the rate"
                logger.warning("%s %s (%s): the run goes on", who, why, problem.message)
                return None
            job.take(answer)
        verdict = job.verdict()
        if verdict.outcome != "scored":
            raise JudgeUnreachableError(unreadable(who, rubric, verdict))
        engine.is_checked = True
        return verdict


def is_at_hand(cache: CacheThread, *, adaptations: Adaptations, by: JudgedBy, expected: Expected) -> bool:
    """Whether the cache holds a score for each response; takes over what it tells of the endpoint's parameters."""
    for start in range(0, len(expected), _JOBS_PER_LOOKUP):
        some = expected[start : start + _JOBS_PER_LOOKUP]
        jobs = [VerdictJob(by, rubric, item, progress=None, adaptations=adaptations) for rubric, item in some]
        if open_requests(jobs, cache) or any(job.verdict().outcome != "scored" for job in jobs):
            return False
    logger.info("judge %s: every verdict is in the cache, so the judge is not asked", by.model)
    return True


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
    if problem.code == USED_UP:
        return "Raise CULTURE_JUDGE_BUDGET."
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
