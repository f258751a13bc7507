"""Reading what a chat-completions endpoint sends back: a completion, or a problem with its meaning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from culture_tasks.judges.completions import Completion, Failure
from culture_tasks.judges.retries import overloaded, retriable
from culture_tasks.judges.verdicts import Usage
from culture_tasks.text import storable

EMPTY_REPLY = "empty_reply"
"""Our own code for a completion without text."""

_LONGEST_MESSAGE = 300
_TOO_MANY_TOKENS = 2**53  # no integer for every JSON reader or database
_FILTER_CODES = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_MODEL_CODES = ("model_not_found", "DeploymentNotFound", "model_not_available")


@dataclass(frozen=True, slots=True)
class Problem:
    """A request that brought no completion.

    Attributes:
        message: What went wrong, in one line.
        retry: Whether the same request may work later.
        overload: Whether fewer requests at a time are asked for.
        refused: Whether the judge or its provider declined.
        status: HTTP status, or None where there was no reply.
        code: The endpoint's own name for the error.
        param: The parameter that it complains about.
    """

    message: str
    retry: bool
    overload: bool = False
    refused: bool = False
    status: int | None = None
    code: str | None = None
    param: str | None = None

    @property
    def says_unknown_model(self) -> bool:
        """Whether the endpoint doesn't know the model, or there is no such endpoint."""
        return self.status == 404 or self.code in _MODEL_CODES

    def as_failure(self) -> Failure:
        """Returns the problem as it ends a verdict."""
        return Failure("refused" if self.refused else "failed", self.message)


def read_reply(status: int, headers: Mapping[str, str], text: str) -> Completion | Problem:
    """Reads a reply.

    Args:
        status: HTTP status.
        headers: Reply headers.
        text: The body, free of secrets.
    """
    try:
        return _read(status, headers, text)
    except RecursionError:
        return Problem(
            f"HTTP {status}: the JSON is nested too deeply: {one_line(text)}",
            retry=retriable(status, headers),
            overload=overloaded(status),
            status=status,
        )


def _read(status: int, headers: Mapping[str, str], text: str) -> Completion | Problem:
    if 300 <= status < 400:
        return Problem(
            "the endpoint redirects elsewhere, and credentials don't follow: correct its URL", False, status=status
        )
    if status >= 400:
        return _read_error(status, headers, text)
    try:
        content = json.loads(text)
    except ValueError:
        return Problem(f"the reply is not JSON: {one_line(text) or 'an empty body'}", True, status=status)
    return _read_content(status, content)


def _read_content(status: int, content: Any) -> Completion | Problem:
    try:
        choice = content["choices"][0]
        message = choice["message"]
        finish_reason, refusal, written = choice.get("finish_reason"), message.get("refusal"), message.get("content")
    except (KeyError, IndexError, TypeError, AttributeError):
        return Problem(f"the reply has no choices with a message: {one_line(str(content))}", True, status=status)
    if refusal or finish_reason == "content_filter":
        declined = refusal if isinstance(refusal, str) else "stopped by the content filter"
        return Problem(f"the judge declined: {one_line(declined)}", False, refused=True, status=status)
    text = _written_text(written)
    if not text.strip() and finish_reason != "length":
        return Problem("the reply is empty", True, status=status, code=EMPTY_REPLY)
    reason = finish_reason if isinstance(finish_reason, str) else None
    model = content.get("model")
    usage = content.get("usage")
    return Completion(
        storable(text),
        reason,
        model if isinstance(model, str) else None,
        _usage(usage),
        thought=_thought(message, usage),
    )


def _thought(message: Mapping[str, Any], usage: Any) -> bool:
    """Whether a reply says that the model thought: by its text, apart from the answer, or by a count of tokens."""
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    count = details.get("reasoning_tokens") if isinstance(details, dict) else None
    apart = any(bool(message.get(name)) for name in ("reasoning_content", "reasoning"))
    return apart or (isinstance(count, int) and count > 0)


def _written_text(content: Any) -> str:
    """Returns the text of a message, which some endpoints send in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    return Usage(*(count if isinstance(count, int) and 0 <= count < _TOO_MANY_TOKENS else 0 for count in counts))


def _read_error(status: int, headers: Mapping[str, str], text: str) -> Problem:
    error = _error_of(text)
    code, param = (_text_or_none(error.get(name)) for name in ("code", "param"))
    inner = error.get("innererror")
    codes = {
        code,
        _text_or_none(error.get("type")),
        _text_or_none(inner.get("code")) if isinstance(inner, dict) else None,
    }
    refused = status in (400, 403) and not codes.isdisjoint(_FILTER_CODES)
    hopeless = refused or "insufficient_quota" in codes
    explanation = one_line(str(error.get("message") or text))
    return Problem(
        f"HTTP {status} {_MEANINGS.get(status, '')}".rstrip() + (f": {explanation}" if explanation else ""),
        retry=retriable(status, headers) and not hopeless,
        overload=overloaded(status) and not hopeless,
        refused=refused,
        status=status,
        code=code,
        param=param,
    )


_MEANINGS: Mapping[
    int, Literal["bad request", "wrong or missing key", "not allowed", "unknown model or URL", "rate limit"]
] = {
    400: "bad request",
    401: "wrong or missing key",
    403: "not allowed",
    404: "unknown model or URL",
    429: "rate limit",
}


def _error_of(text: str) -> dict[str, Any]:
    """Finds the error object of a body: under ``error``, or the body itself; servers differ."""
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    error = content.get("error", content) if isinstance(content, dict) else content
    return error if isinstance(error, dict) else {"message": str(error)}


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def one_line(text: str) -> str:
    """Returns a text as an error shows it: one line, and not a long one."""
    line = " ".join(storable(text).split())
    return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "…"
