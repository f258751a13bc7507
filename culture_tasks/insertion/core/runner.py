"""Answers requests after insertions: a loop over cases, which resets the method, inserts, and answers the requests.

A case that goes on with the insertions of the one before needs no reset. Some cases are a window, for which a method
computes ahead and answers in batches; no more than that is in memory. Equal prompts are answered once. A batch's
answers are in the store before the next, so a killed run goes on, and other methods find the plain model's answers.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from culture_tasks.insertion.core.adapter import Answer
from culture_tasks.insertion.core.devices import now
from culture_tasks.insertion.core.insertion_method import InsertionMethod, Prompt
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request
from culture_tasks.insertion.core.state import value_key
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.core.weight_edits import Weights
from culture_tasks.insertion.core.weight_method import WeightMethod

Place = TypeVar("Place", bound=Hashable)

_BATCHES = 8  # of a window: requests of one length are then in one batch


@dataclass(frozen=True, slots=True)
class Case(Generic[Place]):
    """Insertions, one after another, and the requests that are answered after them, each with a place of the caller."""

    insertions: tuple[Insertion, ...]
    requests: Mapping[Place, Request]


@dataclass
class Costs:
    """The work of a run and its time, in seconds; ``hits`` are prompts whose answer was in the store."""

    answered: int = 0
    hits: int = 0
    seconds: float = 0.0
    inserted: int = 0
    insertion_seconds: float = 0.0


class CaseLoop:
    """The loop for one method, fitted or loaded, with one way of decoding.

    With ``one_at_a_time`` every request is answered on its own, as the paper did to measure latency.
    """

    def __init__(
        self,
        method: InsertionMethod,
        decoding: AnswerDecoding,
        store: Store,
        costs: Costs | None = None,
        *,
        one_at_a_time: bool = False,
    ) -> None:
        self._method, self._decoding, self._store, self._alone = method, decoding, store, one_at_a_time
        self.costs = costs or Costs()
        self._device, self._chain = method.model.device, list[str]()

    def answers(self, cases: Iterable[Case[Place]]) -> Iterator[tuple[Place, Answer]]:
        """Yields the answers to the requests of all cases, by their places."""
        method = self._method
        method.reset()
        if not method.inserts:
            cases = (replace(case, insertions=()) for case in cases)
        if self._alone:
            for case in cases:
                for place, request in case.requests.items():
                    yield place, self._answer_alone(case.insertions, request)
        else:
            for window in _windows(cases, _BATCHES * method.batch_size):
                yield from self._answer_window(window)
        method.reset()

    def _answer_alone(self, insertions: Sequence[Insertion], request: Request) -> Answer:
        """Answers a request with the time that it takes, which is measured in each run."""
        self._insert(insertions)
        start = now(self._device)
        answer = (self._method if insertions else self._method.model).generate(request, self._decoding)
        self.costs.answered += 1
        return replace(answer, seconds=now(self._device) - start)

    def _answer_window(self, window: Sequence[Case[Place]]) -> Iterator[tuple[Place, Answer]]:
        start, inserting = now(self._device), self.costs.insertion_seconds
        prompts = self._prompts(window)
        keys = {place: self._key(prompt) or (place,) for place, prompt in prompts.items()}
        distinct = dict(zip(keys.values(), prompts.values(), strict=True))
        answers = self._stored(distinct)
        for batch in self._generated({key: distinct[key] for key in distinct if key not in answers}):
            answers |= batch
            self._keep(batch)
        self.costs.seconds += now(self._device) - start - (self.costs.insertion_seconds - inserting)
        for place, prompt in prompts.items():
            yield place, replace(answers[keys[place]], **prompt.notes)

    def _prompts(self, window: Sequence[Case[Place]]) -> dict[Place, Prompt]:
        """Returns what the requests of some cases become after their insertions."""
        method, prompts = self._method, dict[Place, Prompt]()
        if isinstance(method, WeightMethod):
            asked = [(place, request, case) for case in window for place, request in case.requests.items()]
            return {place: Prompt(request, edits=case.insertions) for place, request, case in asked}
        changed = [case for case in window if case.insertions]
        insertions = {insertion.key: insertion for case in changed for insertion in case.insertions}
        requests = [request for case in changed for request in case.requests.values()]
        method.prepare(requests, list(insertions.values()), self._store)
        for case in window:
            self._insert(case.insertions)
            for place, request in case.requests.items():
                prompts[place] = method.prompt(request) if case.insertions else Prompt(request)
        return prompts

    def _generated(self, prompts: Mapping[Hashable, Prompt]) -> Iterator[dict[Hashable, Answer]]:
        """Yields the answers to prompts, batch by batch; each model answers its own."""
        method, groups = self._method, dict[Hashable, list[Hashable]]()
        is_shared = isinstance(method, WeightMethod) and method.by_row
        for key, prompt in prompts.items():
            edits = tuple(edit.key for edit in prompt.edits)
            groups.setdefault((prompt.model, bool(edits) if is_shared else edits), []).append(key)
        for keys in groups.values():
            first = prompts[keys[0]]
            weights = partial(self._weights, [prompts[key].edits for key in keys]) if first.edits else None
            requests = [prompts[key].request for key in keys]
            model = first.model or method.model
            for batch in model.answers(requests, self._decoding, method.batch_size, weights):
                yield {keys[place]: answer for place, answer in batch}

    def _weights(self, chains: Sequence[tuple[Insertion, ...]], places: Sequence[int]) -> list[Weights]:
        method = self._method
        assert isinstance(method, WeightMethod)
        start, before = now(self._device), method.inserted
        weights = method.weights_after([chains[place] for place in places])
        self.costs.inserted += method.inserted - before
        self.costs.insertion_seconds += now(self._device) - start
        return weights

    def _insert(self, insertions: Sequence[Insertion]) -> None:
        """Inserts a chain; if it extends the present one, only the rest."""
        keys = [insertion.key for insertion in insertions]
        if self._chain != keys[: len(self._chain)]:
            self._method.reset()
            self._chain = []
        start = now(self._device)
        for insertion in insertions[len(self._chain) :]:
            self._method.insert(insertion)
            self.costs.inserted += 1
        self._chain = keys
        self.costs.insertion_seconds += now(self._device) - start

    def _key(self, prompt: Prompt) -> str | None:
        """Returns the key of a prompt's answer: all methods share the plain model's. Sampled answers have none."""
        if self._decoding.samples:
            return None
        source: list[Any] = [(prompt.model or self._method.model).identity.run]
        if prompt.edits:
            source += [*self._method.identity, [edit.key for edit in prompt.edits]]
        return f"answer:{value_key([*source, prompt.request.key, asdict(self._decoding)])}"

    def _stored(self, keys: Iterable[Hashable]) -> dict[Hashable, Answer]:
        contents = {key: self._store.get(key) for key in keys if isinstance(key, str)}
        answers: dict[Hashable, Answer] = {key: Answer(**json.loads(text)) for key, text in contents.items() if text}
        self.costs.hits += len(answers)
        return answers

    def _keep(self, answers: Mapping[Hashable, Answer]) -> None:
        self.costs.answered += len(answers)
        texts = {key: json.dumps(asdict(answer), ensure_ascii=False) for key, answer in answers.items()}
        self._store.put({key: text.encode() for key, text in texts.items() if isinstance(key, str)})


def _windows(cases: Iterable[Case[Place]], most: int) -> Iterator[list[Case[Place]]]:
    """Yields cases together that have at most so many different requests: all batches of a window but one are full."""
    window, requests = list[Case[Place]](), set[str]()
    for case in cases:
        more = {request.key for request in case.requests.values()}
        if window and len(requests | more) > most:
            yield window
            window, requests = [], set()
        window.append(case)
        requests |= more
    if window:
        yield window
