"""Prompt files: loading, hashing, and filling in texts that nobody vouches for.

A filled-in text is data. It is never formatted twice (braces in it mean nothing), it can't carry characters that break
a request or a log, it has a largest length, and by default it stands between tags that end in a code. The code is made
from the text and a secret of the run, so that no text can hold it.
"""

from __future__ import annotations

import hashlib

from culture_tasks.prompt_files import Prompt, load
from culture_tasks.text import storable

LONGEST_TEXT = 32_000
"""Characters of one filled-in text that a judge is shown; the rest is cut, and the cut is named in the prompt."""


def load_prompt(name: str) -> Prompt:
    """Loads ``judges/prompts/<name>.txt``.

    Raises:
        FileNotFoundError: If there is no such prompt.
    """
    return load("culture_tasks.judges", name)


def shortened(text: str) -> str:
    """Returns the text as it may be shown to a judge: storable, and cut after :data:`LONGEST_TEXT` characters."""
    clean = storable(text)
    if len(clean) <= LONGEST_TEXT:
        return clean
    return f"{clean[:LONGEST_TEXT]} [cut here: {len(clean) - LONGEST_TEXT} more characters]"


def delimited(name: str, text: str, secret: str = "") -> str:
    """Wraps a text in tags that it can't close: they end in a hash of the text and a secret.

    Args:
        name: What the text is: ``question``, ``reference`` or ``response``.
        text: The text, already :func:`shortened`.
        secret: What nobody who wrote the text can know. Without, anybody can compute the tags: such a prompt names a
            request (see :class:`~culture_tasks.judges.completions.ChatRequest`), and is not sent.
    """
    code = hashlib.sha256(f"{secret}\n{name}\n{text}".encode()).hexdigest()[:12]
    return f"<{name}-{code}>\n{text}\n</{name}-{code}>"
