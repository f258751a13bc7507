"""Where a judge's endpoint is, how it is authorised, and the secrets that no error, result, log or cache shows."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

from pydantic import SecretStr

from culture_tasks.errors import SettingsError
from culture_tasks.secret_texts import HIDDEN, arguments_of, shown_value
from culture_tasks.settings import Settings

OPENAI_BASE_URL = "https://api.openai.com/v1"
# Values that documentation tells users to give where no key is needed: error messages hold these words by themselves.
_PLACEHOLDERS = {"empty", "none", "null", "dummy", "local", "ollama"}
_PLACEHOLDERS |= {"lm-studio", "not-needed", "no-key-required", "sk-no-key-required", "token-abc123"}
_SHORTEST = 4
_SHORTEST_PART = 8  # of a secret that an error quotes in part
# In a judge's rationale, shorter ones are more likely the judge's words.
_SHORTEST_IN_A_REPLY = 12
_SHORTEST_QUERY_VALUE = 8


class Secrets:
    """Texts that must never be shown; placeholders such as ``EMPTY`` and texts under four characters are none."""

    def __init__(self, values: Iterable[str | None] = ()) -> None:
        candidates = {value for value in values if value and len(value) >= _SHORTEST}
        self._values = frozenset(value for value in candidates if value.casefold() not in _PLACEHOLDERS)
        self._anywhere = _pattern(self._values)
        self._in_replies = _pattern(value for value in self._values if len(value) >= _SHORTEST_IN_A_REPLY)

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)})"

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets(self._values | other._values)

    def hidden(self, text: str) -> str:
        """Returns a message, such as an error's, without any secret, or a longer part of one."""
        if self._anywhere is None:
            return text
        text, size = self._anywhere.sub(HIDDEN, text), _SHORTEST_PART
        parts = {value[start : start + size] for value in self._values for start in range(len(value) - size + 1)}
        places = [start for start in range(len(text) - size + 1) if text[start : start + size] in parts]
        secret = {place for start in places for place in range(start, start + size)}
        runs = groupby(range(len(text)), secret.__contains__)
        return "".join(HIDDEN if is_secret else "".join(text[place] for place in run) for is_secret, run in runs)

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


def secrets_of_arguments(arguments: str) -> Secrets:
    """Returns the secrets among model arguments: what :func:`shown_value` hides, and parts of URLs."""
    values: list[str] = []
    for name, _, value in arguments_of(arguments):
        shown = str(shown_value(name, value))  # the words of a mapping are hidden one by one: an error may hold any
        values += [part for part in (value, *re.findall(r"[^\s'\"{}\[\],]+", value)) if part not in shown]
        values += secrets_of_url(value) if "://" in value else []
    return Secrets(values)


@dataclass(frozen=True, slots=True)
class Address:
    """A chat-completions endpoint."""

    url: str = field(repr=False)  # where to post; may hold secrets in its query
    headers: Mapping[str, str] = field(repr=False, hash=False)  # headers that authorise
    name: str  # base URL without user, password and query, for identities, errors and the cache
    secrets: Secrets  # what must never be shown
    url_variable: str | None = None  # the environment variable that names the address; None for OpenAI's own
    key_variable: str = "OPENAI_API_KEY"  # the environment variable that holds the key, or would

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the whole URL: another query may lead to another model of the same name."""
        return hashlib.sha256(self.url.encode()).hexdigest()

    @property
    def is_keyless_openai(self) -> bool:
        """Whether this is OpenAI's own endpoint without a key, which can't work."""
        return self.name == OPENAI_BASE_URL and "Authorization" not in self.headers


def address_of(settings: Settings, model: str) -> Address:
    """Finds the endpoint that the settings name, by the rules of the ``openai`` package."""
    is_azure = bool(settings.azure_endpoint) and not settings.openai_base_url
    key, azure_key = _plain(settings.openai_api_key), _plain(settings.azure_api_key)
    if is_azure:
        if not settings.openai_api_version:
            raise SettingsError(
                "AZURE_OPENAI_ENDPOINT is set without OPENAI_API_VERSION: set it, for example to 2024-10-21."
            )
        base = _split("AZURE_OPENAI_ENDPOINT", settings.azure_endpoint or "")
        path = f"/openai/deployments/{quote(model, safe='')}/chat/completions"
        query = f"api-version={quote(settings.openai_api_version)}"
        headers = {"api-key": azure_key or key}
    else:
        base = _split("OPENAI_BASE_URL", settings.openai_base_url or OPENAI_BASE_URL)
        path, query = "/chat/completions", base.query
        headers = {"Authorization": f"Bearer {key}" if key else None}
    fields = {name: value for name, value in headers.items() if value}
    for name, value in fields.items():
        if not value.isprintable():
            raise SettingsError(
                f"The judge's key (the header {name}) holds a line break or another character "
                "that no header can have. Set it without that character."
            )
    if base.username is not None:
        pair = f"{unquote(base.username)}:{unquote(base.password or '')}"
        fields["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    authorisations = [value.rpartition(" ")[2] for value in fields.values()]
    host, root = base.netloc.rpartition("@")[2], base.path.rstrip("/")
    return Address(
        url=urlunsplit((base.scheme, host, root + path, query, "")),
        headers=fields,
        name=urlunsplit((base.scheme, host, root, "", "")),
        secrets=Secrets([*secrets_of_url(urlunsplit(base)), *authorisations]) | secrets_of(settings),
        url_variable="AZURE_OPENAI_ENDPOINT" if is_azure else "OPENAI_BASE_URL" if settings.openai_base_url else None,
        key_variable="AZURE_OPENAI_API_KEY" if is_azure and (azure_key or not key) else "OPENAI_API_KEY",
    )


def _split(variable: str, url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise SettingsError(
            f"{variable} is not a URL such as {OPENAI_BASE_URL} or http://localhost:8000/v1. Correct it."
        )
    return parts


def secrets_of(settings: Settings) -> Secrets:
    """Returns the keys that the settings hold, and the credentials of the proxies."""
    of_proxies = [part for proxy in settings.proxies().values() for part in secrets_of_url(proxy)]
    return Secrets([_plain(settings.openai_api_key), _plain(settings.azure_api_key), *of_proxies])


def _plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value().strip() if secret else None
