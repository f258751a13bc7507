"""Secrets and how they are kept out of whatever is shown: errors, results, logs, the cache."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

HIDDEN = "***"
# Values that documentation tells users to give where no key is needed: error messages hold such words by themselves.
_PLACEHOLDERS = frozenset(
    [
        "empty",
        "none",
        "null",
        "dummy",
        "local",
        "ollama",
        "lm-studio",
        "not-needed",
        "no-key-required",
        "sk-no-key-required",
        "token-abc123",
    ]
)
_SHORTEST = 4
# In a judge's rationale, shorter ones are more likely words of its own.
_SHORTEST_IN_A_REPLY = 12
_SHORTEST_QUERY_VALUE = 8
_SHORTEST_BASE64 = 6
# What encodings of a secret have: without any of these, a reply can only hold it as it is, or in Base64.
_MARKS_OF_ENCODINGS = ("\\", "%", "&#")
_SECRET_NAMES = ("key", "token", "secret", "password", "auth", "header")


class Secrets:
    """Texts that must never be shown, in whatever spelling they come back.

    Found are a secret itself, with any of its characters escaped as JSON, URLs or HTML do it, and its Base64, also as a
    part of something longer. Placeholders such as ``EMPTY`` and texts under four characters are no secrets.

    Args:
        values: The secrets.
    """

    def __init__(self, values: Iterable[str | None] = ()) -> None:
        known = {value for value in values if value and len(value) >= _SHORTEST}
        self._values = frozenset(value for value in known if value.casefold() not in _PLACEHOLDERS)
        long = {value for value in self._values if len(value) >= _SHORTEST_IN_A_REPLY}
        self._plain_in_replies = tuple(long | {part for value in long for part in _base64_parts(value)})
        self._anywhere = _pattern(self._values)
        self._in_replies = _pattern(long)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secrets) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)})"

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets(self._values | other._values)

    def hidden(self, text: str) -> str:
        """Returns a message, such as an error's, without any secret."""
        return text if self._anywhere is None else self._anywhere.sub(HIDDEN, text)

    def hidden_in_reply(self, text: str) -> str:
        """Returns what a judge wrote without the longer secrets: short ones may be words that it used."""
        if self._in_replies is None:
            return text
        suspicious = any(mark in text for mark in _MARKS_OF_ENCODINGS)
        suspicious = suspicious or any(part in text for part in self._plain_in_replies)
        return self._in_replies.sub(HIDDEN, text) if suspicious else text


def _pattern(values: Iterable[str]) -> re.Pattern[str] | None:
    """Matches each value in every spelling, the longest first, so that no rest of a longer one is left over."""
    alternatives = []
    for value in sorted(values, key=lambda value: (-len(value), value)):
        alternatives.append("".join(map(_spellings, value)))
        alternatives += [re.escape(part) for part in _base64_parts(value)]
    return re.compile("|".join(alternatives)) if alternatives else None


def _spellings(char: str) -> str:
    r"""Matches one character as it is, as ``\/`` or ``\u002f``, as ``%2F``, as ``&#47;`` or ``&#x2f;``.

    JSON within JSON doubles backslashes; their number is bounded, so that matching takes linear time.
    """
    code = ord(char)
    units = char.encode("utf-16-be", "surrogatepass")
    escaped = "".join(rf"\\{{1,4}}u{_hex(units[at : at + 2].hex())}" for at in range(0, len(units), 2))
    percent = "".join(f"%{_hex(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogatepass"))
    html = f"&#(?:{code}|[xX]0*{_hex(f'{code:x}')});"
    return rf"(?:\\{{0,4}}{re.escape(char)}|{escaped}|{percent}|{html})"


def _hex(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _base64_parts(value: str) -> set[str]:
    """Returns what a text's Base64 looks like inside of a longer one's, by the three places it may begin at."""
    parts = set()
    for before in range(3):
        raw = b"\0" * before + value.encode("utf-8", "surrogatepass")
        encoded = base64.b64encode(raw).decode()[-(-before * 8 // 6) : len(raw) * 8 // 6]
        if len(encoded) >= _SHORTEST_BASE64:
            parts |= {encoded, encoded.translate(str.maketrans("+/", "-_"))}
    return parts


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
    return [each for each in (user, password, unquote(user), unquote(password), encoded, parts.query, *values) if each]


def shown_url(url: str) -> str:
    """Returns a URL without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return HIDDEN


def shown_arguments(arguments: str) -> str:
    """Returns model arguments without the values of those whose names sound secret, and without secrets in URLs."""
    return ",".join(_shown_argument(argument) for argument in arguments.split(","))


def _shown_argument(argument: str) -> str:
    name, equals, value = argument.partition("=")
    if equals and is_secret_name(name):
        return f"{name}={HIDDEN}"
    return f"{name}{equals}{shown_url(value)}" if "://" in value else shown_url(name) if "://" in name else argument


def is_secret_name(name: str) -> bool:
    """Whether an argument of this name holds a secret."""
    return any(part in name.lower() for part in _SECRET_NAMES) and "tokenizer" not in name.lower()


def secrets_of_arguments(arguments: str) -> Secrets:
    """Returns the secrets among model arguments: values whose names sound secret, and parts of URLs."""
    found: list[str] = []
    for argument in arguments.split(","):
        name, _, value = argument.partition("=")
        found += [value] if is_secret_name(name) else secrets_of_url(value) if "://" in value else []
    return Secrets(found)
