"""ROUGE-L in any script."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from culture_tasks.text import tokens


def rouge_l(candidate: str, reference: str) -> float:
    """ROUGE-L F of a candidate with one reference (Lin, 2004; CrossCult-KIBench, section 3.2).

    Formula: with L the length of the longest common subsequence of the two token sequences,
    100 * 2PR / (P + R), where P = L / tokens of the candidate and R = L / tokens of the reference.

    Returns:
        A percentage, 0 to 100; higher is nearer; 100 for texts with the same tokens in the same order. A text without
        any token (empty, or punctuation alone) scores 0 with another text and 100 with itself, so that an output
        which an insertion leaves as it was counts as preserved.

    Examples:
        >>> rouge_l("猫在树上", "猫在树下")
        75.0
        >>> rouge_l("A dish of rice", "a dish of rice.")
        100.0
    """
    ours, theirs = candidate.strip(), reference.strip()
    if ours == theirs:
        return 100.0
    return 100.0 * float(_scorer().score(theirs, ours)["rougeL"].fmeasure)


@cache
def _scorer() -> Any:
    # The default tokenizer drops every character outside of ASCII, so that two identical Chinese texts score 0.
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=SimpleNamespace(tokenize=tokens))
