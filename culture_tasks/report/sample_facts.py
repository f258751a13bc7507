"""What a sample file tells beside its scores: the prompts as one hash, the tokens used, and how long responses are."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from culture_tasks.results.task_results import Asked, Spent

_MOST_TOKENS = 10**12
"""Most tokens that a sample may have taken."""


class SampleFacts:
    """Gathers the facts of one file, sample by sample, in a few numbers."""

    def __init__(self) -> None:
        self._samples = 0
        self._asked: int | None = 0
        self._responses = self._characters = 0
        self._tokens: dict[str, int | None] = {"input_tokens": 0, "output_tokens": 0}
        self._judge = [0, 0]

    def add(self, item: str, sample: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Takes a sample in.

        Raises:
            TypeError: If a response is no text, or a number of tokens is none.
        """
        responses = [run["response"] for run in record["runs"] if "response" in run]
        if not all(isinstance(response, str) for response in responses):
            raise TypeError("a response that is no text")
        judge = [run["tokens"] for run in record["runs"] if "tokens" in run]
        used = [(_count(tokens[0]), _count(tokens[1])) for tokens in judge]
        own = {name: _sum(sample.get("token_counts"), name) for name in self._tokens}
        self._samples += 1
        self._responses += len(responses)
        self._characters += sum(map(len, responses))
        for read, written in used:
            self._judge[0] += read
            self._judge[1] += written
        for name, total in self._tokens.items():
            more = own[name]
            self._tokens[name] = None if total is None or more is None else total + more
        self._add_prompt(item, sample)

    def _add_prompt(self, item: str, sample: Mapping[str, Any]) -> None:
        """Adds the hash of an item with its prompt: the sum is the same in any order of the samples."""
        prompt = sample.get("prompt_hash") or sample.get("input")  # lm-eval's, and lmms-eval's
        if self._asked is None or not isinstance(prompt, str):
            self._asked = None
        else:
            text = f"{item}\0{prompt}".encode("utf-8", "surrogatepass")
            self._asked += int.from_bytes(blake2b(text, digest_size=8).digest(), "big")

    @property
    def asked(self) -> Asked | None:
        """All prompts as one hash; None where a sample doesn't have its own."""
        if not self._asked:
            return None
        return Asked(self._samples, f"{self._asked % 2**64:016x}", "report")

    @property
    def spent(self) -> Spent:
        """What the samples took."""
        read, written = self._judge
        return Spent(
            responses=self._responses,
            characters=self._characters,
            tokens_in=self._tokens["input_tokens"] if self._samples else None,
            tokens_out=self._tokens["output_tokens"] if self._samples else None,
            judge_tokens_in=read if read or written else None,
            judge_tokens_out=written if read or written else None,
        )


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_TOKENS:
        raise TypeError("a number of tokens that is none")
    return value


def _sum(counts: Any, name: str) -> int | None:
    """Returns the tokens of a sample's requests; None where one doesn't say."""
    found = [entry.get(name) if isinstance(entry, dict) else None for entry in counts or ()]
    return sum(map(_count, found)) if found and None not in found else None
