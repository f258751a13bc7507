"""Counting the tokens of a text, without the tokenizer of the model that reads it.

The rule was measured on the judges' prompts and on questions and answers in seven languages with ``o200k_base``
(``docs/cost.md`` has the numbers). It says one token for

* 1.25 characters of a script that is written without spaces (Han, Kana, Hangul, Thai, Lao, Burmese, Khmer),
* 3 other characters that aren't ASCII,
* 4 ASCII characters.
"""

from __future__ import annotations

import math
import re

# Characters of scripts that are written without spaces, and Hangul, whose syllables take about as many tokens.
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_ASCII = re.compile(r"[\x00-\x7f]")


def tokens_by_rule(text: str) -> int:
    """Returns about how many tokens a text has, by the rule that the module states."""
    dense, ascii_ = len(_DENSE.findall(text)), len(_ASCII.findall(text))
    return math.ceil(dense / 1.25 + ascii_ / 4 + (len(text) - dense - ascii_) / 3)
