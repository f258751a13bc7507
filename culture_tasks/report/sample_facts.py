"""What a sample file tells beside its scores: the prompts as one hash, the tokens used, and how long responses are."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from culture_tasks.judges.verdicts import DISCOUNTS, Usage
from culture_tasks.results.task_results import Asked, Spent

_MOST_TOKENS = 10**12
"""Most tokens that a sample may have taken."""


class SampleFacts:
    """Gathers the facts of one file, sample by sample, in a few numbers."""

    def __init__(self) -> None:
        self._samples = self._responses = self._characters = 0
        self._asked: int | None = 0
        self._tokens: tuple[int | None, int | None] = (0, 0)
        self._judge = (0, 0)
        self._judge_discounts = self._judge_kept = Usage()

    def add(self, item: str, sample: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Takes a sample in.

        Raises:
            TypeError, ValueError: If a response is no text, or a number of tokens is none.
        """
        responses = characters = 0
        cheaper: list[tuple[Usage, Usage]] = []
        read, written = self._judge
        if type(record["runs"]) is not list:
            raise TypeError("responses that are no list")
        for run in record["runs"]:
            if type(run) is not dict:
                raise TypeError("a response that is no object")
            if "response" in run:
                response = run["response"]
                if type(response) is not str:
                    raise TypeError("a response that is no text")
                responses += 1
                characters += len(response)
            if "tokens" in run:
                tokens_in, tokens_out = run["tokens"]
                read += _count(tokens_in)
                written += _count(tokens_out)
                if "kept" in run or "discounts" in run:
                    cheaper.append(_cheaper(run))
        tokens = self._tokens
        if tokens != (None, None):
            counts = sample.get("token_counts")
            if not counts or not any(counts):  # lmms-eval logs none for a response that is a list
                counts = [record.get("facts")]
            tokens = (_more(tokens[0], counts, "input_tokens"), _more(tokens[1], counts, "output_tokens"))
        self._samples += 1
        self._responses += responses
        self._characters += characters
        self._judge, self._tokens = (read, written), tokens
        for discounts, kept in cheaper:
            self._judge_discounts += discounts
            self._judge_kept += kept
        if self._asked is not None:
            # lm-eval logs the prompt's hash, lmms-eval the prompt. The sum is the same in any order of the samples.
            prompt = sample.get("prompt_hash") or sample.get("input")
            self._asked = self._asked + _hash(f"{item}\0{prompt}") if isinstance(prompt, str) else None

    @property
    def asked(self) -> Asked | None:
        """All prompts as one hash; None where a sample doesn't have its own."""
        if not self._asked:
            return None
        return Asked(self._samples, f"{self._asked % 2**64:016x}", "report")

    @property
    def spent(self) -> Spent:
        """What the samples took."""
        judge = Usage(*self._judge) + self._judge_discounts
        counted = judge != Usage()
        return Spent(
            responses=self._responses,
            characters=self._characters,
            tokens_in=self._tokens[0] if self._samples else None,
            tokens_out=self._tokens[1] if self._samples else None,
            judge=judge if counted else None,
            judge_kept=self._judge_kept if counted else None,
        )


def _cheaper(run: Mapping[str, Any]) -> tuple[Usage, Usage]:
    """Returns a verdict's tokens with a discount, and all of them if nothing was asked for it."""
    found = run.get("discounts", {})
    if type(found) is not dict or not found.keys() <= DISCOUNTS:
        raise TypeError("discounts that are none")
    discounts = Usage(**{name: _count(number) for name, number in found.items()})
    usage = Usage(*run["tokens"]) + discounts
    too_many = discounts.cached_tokens + discounts.batch_prompt_tokens > usage.prompt_tokens
    if too_many or discounts.batch_completion_tokens > usage.completion_tokens:
        raise TypeError("more tokens with a discount than tokens")
    return discounts, usage if run.get("kept") else Usage()


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_TOKENS:
        raise TypeError("a number of tokens that is none")
    return value


def _more(total: int | None, counts: Any, name: str) -> int | None:
    """Adds the tokens of a sample's requests to a total; None where one doesn't say."""
    if total is None or not counts:
        return None
    for entry in counts:
        found = entry.get(name) if isinstance(entry, dict) else None
        if found is None:
            return None
        total += _count(found)
    return total


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
