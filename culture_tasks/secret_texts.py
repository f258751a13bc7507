"""What is secret among the arguments of a model, a judge's or an evaluated one: one rule for all that is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "***"

_SECRET = re.compile(
    r"key|token|secret|passw|passphrase|pwd|auth|cred|cookie|header|bearer|signature|jwt|connection_?string"
    r"|(?<![a-z])(?:pass|sig|sas|pat|dsn|login|session)(?![a-z])"
)
# Parts of the names of both harnesses' arguments on the tokens of texts and the frames of videos.
_PLAIN = re.compile(
    r"(?:de)?tokeni[sz][a-z]*|tokenize_fn|(?:max|min|num|n|new|add|skip|spaces|stop|input|output|image)_(?:[a-z]+_)*tokens|max_think_token_n"
    r"|tokens?_(?:ids?|len|length)(?![a-z])|(?<![a-z])(?:bos|eos|eot|pad|image|video|audio|think_end|think)_token(?![a-z])"
    r"|vqtoken_[a-z_]+|token_(?:strategy|merge_ratio|stride)|video_key|key_?frames?|pass_video_url"
)
# Keys of well-known services, JSON web tokens, and what follows the scheme in a header.
_KEY = re.compile(
    r"(?<![\w-])(?:(?:sk|pk|rk|gsk|xai|pplx|nvapi)[-_](?=[\w-]*\d)[\w-]{16,}|(?:hf|gh[pousr]|glpat|xox[a-z]|r8)[-_]\w{20,}"
    r"|github_pat_\w{20,}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.?[\w-]*)"
    r"|(?i:(?<=bearer )|(?<=basic ))(?=\S*[\d=])[^\s'\",]{8,}"
)
_URL = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"}\]]+")
# A name and its value within the text of a mapping, as {"api_key": "abc"}.
_PAIR = re.compile(r"""(?P<name>[\w.-]+)(?P<between>['"]?\s*[:=]\s*)(?P<value>"[^"]*"|'[^']*'|[^\s,'"{}\[\]]+)""")


def is_secret_name(name: str) -> bool:
    """Whether an argument of this name holds a secret.

    Examples:
        >>> [name for name in ("hf_token", "max_tokens", "think_end_token", "api-key") if is_secret_name(name)]
        ['hf_token', 'api-key']
    """
    words = re.sub(r"[\s.-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())).lower()
    return bool(_SECRET.search(_PLAIN.sub("", words)))


def shown_url(url: str) -> str:
    """Returns a URL without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return HIDDEN


def shown_text(text: str) -> str:
    """Returns a text without parts of URLs that authorise, a mapping's secrets, and what looks like a key."""
    text = _URL.sub(lambda url: shown_url(url.group()), text)
    if "{" in text:
        text = _PAIR.sub(
            lambda pair: f"{pair['name']}{pair['between']}{HIDDEN}" if is_secret_name(pair["name"]) else pair[0], text
        )
    return _KEY.sub(HIDDEN, text)


def arguments_of(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields name, equals sign and value of model arguments, such as ``pretrained=a/b,dtype=auto``.

    A part without a name belongs to the value before it, as in ``header={"a": "b","c": "d"}``.
    """
    parts: list[str] = []
    for part in text.split(","):
        if parts and "=" in parts[-1] and not re.match(r"\s*[\w.-]+\s*=", part):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    yield from (part.partition("=") for part in parts if part)


def shown_arguments(arguments: str) -> str:
    """Returns model arguments without secrets: values whose names sound secret, parts of URLs, and keys."""
    parts = arguments_of(arguments)
    return ",".join(f"{shown_text(name)}{equals}{shown_value(name, value)}" for name, equals, value in parts)


def shown_value(name: str, value: Any) -> Any:
    """Returns the value of an argument without secrets, at any depth; True, False and None say no secret."""
    if isinstance(value, bool) or value is None or str(value).lower() in ("", "true", "false", "none"):
        return value
    if is_secret_name(name):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: shown_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shown_value("", inner) for inner in value]
    if isinstance(value, str):
        return shown_arguments(value) if name.endswith("args") else shown_text(value)
    return value
