"""What a reply's status and headers say of asking again: pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
# Larger numbers in a reset header are points in time, in seconds or milliseconds since 1970.
_EPOCH_SECONDS, _EPOCH_MILLISECONDS = 1e9, 1e12


def retriable(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a reply of this status may become a better one: 408, 409, 429 and 5xx.

    An ``x-should-retry`` header of the endpoint decides where there is one.
    """
    said = headers.get("x-should-retry")
    if said in ("true", "false"):
        return said == "true"
    return status in (408, 409, 429) or status >= 500


def overloaded(status: int) -> bool:
    """Whether a reply of this status asks for fewer requests at a time."""
    return status in (429, 503, 504, 529)


def asked_to_wait(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Reads how many seconds an endpoint wants to be left alone.

    ``Retry-After-Ms`` and ``Retry-After`` (seconds or a date) count with any error status. The reset times of
    ``X-RateLimit-*`` count where the header beside them says that nothing remains.

    Args:
        status: HTTP status.
        headers: Reply headers, looked up by names in lower case.
        now: Seconds since 1970.

    Returns:
        Seconds from now, or None where nothing was asked.
    """
    asked = _retry_after(headers, now) if status >= 400 else None
    if asked is not None:
        return asked
    resets = [
        _seconds(headers.get(f"x-ratelimit-reset{kind}"), now)
        for kind in ("-requests", "-tokens", "")
        if headers.get(f"x-ratelimit-remaining{kind}") == "0"
    ]
    return max((reset for reset in resets if reset is not None), default=None)


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    milliseconds = headers.get("retry-after-ms", "")
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    return _seconds(headers.get("retry-after"), now)


def _seconds(text: str | None, now: float) -> float | None:
    """Reads seconds, a duration such as ``1m30s``, a point in time or an HTTP date."""
    text = (text or "").strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number > _EPOCH_MILLISECONDS:
            number /= 1000
        return max(0.0, number - now) if number > _EPOCH_SECONDS else number
    if re.fullmatch(rf"(?:{_DURATION.pattern})+", text):
        return sum(float(amount) * _UNITS[unit] for amount, unit in _DURATION.findall(text))
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
