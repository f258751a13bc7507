"""Counting the tokens of a text: by the judge's own encoding where it can be loaded, else by a rule.

The rule was measured on the judges' prompts and on questions and answers in seven languages with ``o200k_base``
(``docs/cost.md`` has the numbers). It says one token for

* 1.25 characters of a script that is written without spaces (Han, Kana, Hangul, Thai, Lao, Burmese, Khmer),
* 3 other characters that aren't ASCII,
* 4 ASCII characters.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import tiktoken

_SECONDS_TO_DOWNLOAD = 10.0
_ENCODINGS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
# Characters of scripts that are written without spaces, and Hangul, whose syllables take about as many tokens.
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_ASCII = re.compile(r"[\x00-\x7f]")


class TokenCounter(NamedTuple):
    """A way of counting the tokens of a text, and its name for the user."""

    name: str
    count: Callable[[str], int]


def counter_for(model: str) -> TokenCounter:
    """Returns the best way of counting that there is for a model: its encoding, or else a rule."""
    import tiktoken

    try:
        encoding = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return TokenCounter(f"a rule (no encoding of {model!r} is known)", tokens_by_rule)
    codec = _load(encoding)
    if codec is None:
        return TokenCounter(f"a rule ({encoding} isn't available)", tokens_by_rule)
    return TokenCounter(f"tiktoken's {codec.name}", lambda text: len(codec.encode(text, disallowed_special=())))


def tokens_by_rule(text: str) -> int:
    """Returns about how many tokens a text has, by the rule that the module states."""
    dense, ascii_ = len(_DENSE.findall(text)), len(_ASCII.findall(text))
    return math.ceil(dense / 1.25 + ascii_ / 4 + (len(text) - dense - ascii_) / 3)


def _load(encoding: str) -> tiktoken.Encoding | None:
    """Loads an encoding: from tiktoken's folder, or else from the network, within a few seconds and unless offline."""
    import tiktoken
    from huggingface_hub import constants

    override = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folder = Path(override) if override else Path(tempfile.gettempdir()) / "data-gym-cache"
    file = hashlib.sha1(_ENCODINGS.format(encoding).encode(), usedforsecurity=False).hexdigest()
    if not (folder / file).is_file() and constants.HF_HUB_OFFLINE:
        return None
    encodings: list[tiktoken.Encoding] = []

    def load() -> None:
        try:
            encodings.append(tiktoken.get_encoding(encoding))
        except Exception:  # noqa: BLE001  # broad: without a network anything may fail, and then the rule counts
            return

    # tiktoken downloads without a timeout.
    thread = threading.Thread(target=load, name="culture-tasks-encoding", daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_DOWNLOAD)
    return encodings[0] if encodings else None
