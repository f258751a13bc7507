"""Secrets and how they are kept out of whatever is shown: errors, results, logs, the cache."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

HIDDEN = "***"
# Values that documentation tells users to give where no key is needed: error messages hold these words by themselves.
_PLACEHOLDERS = {"empty", "none", "null", "dummy", "local", "ollama"}
_PLACEHOLDERS |= {"lm-studio", "not-needed", "no-key-required", "sk-no-key-required", "token-abc123"}
_SHORTEST = 4
# In a judge's rationale, shorter ones are more likely the judge's words.
_SHORTEST_IN_A_REPLY = 12
_SHORTEST_QUERY_VALUE = 8
_SECRET_NAMES = ("key", "token", "secret", "password", "auth", "header")


class Secrets:
    """Texts that must never be shown; placeholders such as ``EMPTY`` and texts under four characters are none."""

    def __init__(self, values: Iterable[str | None] = ()) -> None:
        known = {value for value in values if value and len(value) >= _SHORTEST}
        self._values = frozenset(value for value in known if value.casefold() not in _PLACEHOLDERS)
        self._anywhere = _pattern(self._values)
        self._in_replies = _pattern(value for value in self._values if len(value) >= _SHORTEST_IN_A_REPLY)

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)})"

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets(self._values | other._values)

    def hidden(self, text: str) -> str:
        """Returns a message, such as an error's, without any secret."""
        return text if self._anywhere is None else self._anywhere.sub(HIDDEN, text)

    def hidden_in_reply(self, text: str) -> str:
        """Returns what a judge wrote without the longer secrets: short ones may be words that it used."""
        return text if self._in_replies is None else self._in_replies.sub(HIDDEN, text)


def _pattern(values: Iterable[str]) -> re.Pattern[str] | None:
    """Matches each value, the longest first, so that no rest of a longer one is left over."""
    alternatives = [re.escape(value) for value in sorted(values, key=len, reverse=True)]
    return re.compile("|".join(alternatives)) if alternatives else None


def secrets_of_url(url: str) -> list[str]:
    """Returns user, password and query of a URL, in their spellings, and the query's longer values."""
    try:
        parts = urlsplit(url)
        user, password = parts.username or "", parts.password or ""
    except ValueError:
        return [url]
    credentials = f"{unquote(user)}:{unquote(password)}"
    encoded = base64.b64encode(credentials.encode()).decode() if user or password else ""
    values = [value for _, value in parse_qsl(parts.query) if len(value) >= _SHORTEST_QUERY_VALUE]
    candidates = (user, password, unquote(user), unquote(password), encoded, parts.query, *values)
    return [value for value in candidates if value]


def shown_url(url: str) -> str:
    """Returns a URL without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return HIDDEN


def shown_arguments(arguments: str) -> str:
    """Returns model arguments without the values of those whose names sound secret, and without secrets in URLs."""
    shown = []
    for argument in arguments.split(","):
        name, equals, value = argument.partition("=")
        if equals and is_secret_name(name):
            value = HIDDEN
        elif "://" in value:
            value = shown_url(value)
        elif "://" in name:
            name, equals, value = shown_url(name), "", ""
        shown.append(f"{name}{equals}{value}")
    return ",".join(shown)


def is_secret_name(name: str) -> bool:
    """Whether an argument of this name holds a secret."""
    return any(part in name.lower() for part in _SECRET_NAMES) and "tokenizer" not in name.lower()


def secrets_of_arguments(arguments: str) -> Secrets:
    """Returns the secrets among model arguments: values whose names sound secret, and parts of URLs."""
    values: list[str] = []
    for argument in arguments.split(","):
        name, _, value = argument.partition("=")
        values += [value] if is_secret_name(name) else secrets_of_url(value) if "://" in value else []
    return Secrets(values)
