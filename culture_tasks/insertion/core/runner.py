"""Answers many requests with one method, and does nothing twice.

First come the prompts: a method prepares what it needs in batches, then one chain of insertions follows another, so
that a chain that extends the previous one needs only the rest. Then come the answers: all distinct prompts, those of
the plain model among them, in one pool. Requests of a method that edits weights are answered while
its edits are there.

Every answer is committed to a store before the next batch, so a crash or Ctrl-C loses none, and the next run, of this
or another method, finds them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

from culture_tasks.insertion.core.adapter import ModelAnswer, MultimodalModel
from culture_tasks.insertion.core.device_meter import device_name, now
from culture_tasks.insertion.core.identity import value_key
from culture_tasks.insertion.core.insertion_method import InsertionMethod, Route
from culture_tasks.insertion.core.progress import Progress, silent
from culture_tasks.insertion.core.queries import AnswerDecoding, Insertion, Query, read_all
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.core.weight_edits import Weights
from culture_tasks.insertion.core.weight_method import WeightMethod

Chain = tuple[str, ...]
"""The keys of insertions, in their order."""

Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Job:
    """One request to answer after insertions, in order; ``compare`` asks for the plain model's answer too."""

    query: Query
    decoding: AnswerDecoding
    insertions: tuple[Insertion, ...] = ()
    compare: bool = False


class Outcome(NamedTuple):
    """The answer after a job's insertions, and the plain model's if the job compares."""

    answer: ModelAnswer
    base: str | None = None


@dataclass
class Costs:
    """The work of a run and its time, in seconds.

    ``hits`` are distinct requests whose answer was in the store; ``alone`` are the times of answers that were given on
    their own, in this run or an earlier one.
    """

    answered: int = 0
    hits: int = 0
    seconds: float = 0.0
    inserted: int = 0
    insertion_seconds: float = 0.0
    prepared_seconds: float = 0.0
    alone: list[float] = field(default_factory=list)


class _Prompt(NamedTuple):
    """A prompt, the key of its answer in the store, which sampled answers lack, and what is inserted into weights."""

    route: Route
    key: str | None
    insertions: tuple[Insertion, ...] = ()


class _ChainWeights:
    """The weights of chains, made when a batch of requests needs them and dropped when no later one does.

    ``insertions`` has the insertions before each request, in the order of answering.
    """

    def __init__(self, method: WeightMethod, insertions: Sequence[tuple[Insertion, ...]], costs: Costs) -> None:
        self._method, self._insertions, self._costs = method, insertions, costs
        chains = [_chain(chain) for chain in insertions]
        self._last = {chain[:length]: place for place, chain in enumerate(chains) for length in range(len(chain) + 1)}
        self._weights: dict[Chain, Weights] = {(): method.weights}

    def batch_weights(self, pool: Sequence[int], numbers: Sequence[int]) -> list[Weights]:
        """Returns the weights of a batch of places of the pool; samples of several chains are inserted together."""
        places = [pool[number] for number in numbers]
        start = now(self._method.model.device)
        self._weights = {chain: weights for chain, weights in self._weights.items() if self._last[chain] >= min(places)}
        chains = {_chain(self._insertions[place]): self._insertions[place] for place in places}
        for length in range(1, max(map(len, chains)) + 1):
            longer = {chain[:length]: samples for chain, samples in chains.items() if len(chain) >= length}
            new = {chain: samples[length - 1] for chain, samples in longer.items() if chain not in self._weights}
            if new:
                before = [self._weights[chain[:-1]] for chain in new]
                self._weights.update(zip(new, self._method.insert_each(list(new.values()), before), strict=True))
                self._costs.inserted += len(new)
        self._costs.insertion_seconds += now(self._method.model.device) - start
        return [self._weights[_chain(self._insertions[place])] for place in places]


class Runner:
    """Runs one method, fitted or loaded, over one store of answers.

    Prompts are answered in batches of the method's size. With ``one_at_a_time`` every request is answered on its own,
    chain by chain, as the paper did to measure latency.
    ``identity`` is a hash of the model and the method: runs with the same hash give the same answers.
    """

    def __init__(
        self,
        method: InsertionMethod,
        store: ValueStore,
        *,
        one_at_a_time: bool = False,
    ) -> None:
        self.method, self._store, self._one_at_a_time = method, store, one_at_a_time
        self._device = method.model.device
        self._method_identity = [method.name, method.answers_version, method.fingerprint]
        self.identity = value_key([method.model.identity.run, *self._method_identity])
        self._present_chain: Chain = ()
        self.costs = Costs()
        method.reset()

    def run(self, jobs: Sequence[Job], progress: Progress = silent) -> list[Outcome]:
        """Answers all jobs, grouped by their insertions.

        Raises:
            DataError: For the first image that can't be read, before anything is answered.
        """
        if not self.method.inserts:
            jobs = [replace(job, insertions=()) for job in jobs]
        read_all((query for job in jobs for query in (job.query, *(item.query for item in job.insertions))), progress)
        outcomes: dict[int, Outcome] = {}
        for decoding in dict.fromkeys(job.decoding for job in jobs):
            group = {place: job for place, job in enumerate(jobs) if job.decoding == decoding}
            self._renew()
            base, after = self._answer_all(group, decoding, progress)
            self._renew()
            for place, job in group.items():
                answer = after.get(place) or base[place]
                outcomes[place] = Outcome(answer, base[place].text if job.compare else None)
        alone = (outcomes[place].answer.seconds for place in range(len(jobs)))
        self.costs.alone += [seconds for seconds in alone if seconds is not None]
        return [outcomes[place] for place in range(len(jobs))]

    def _answer_all(
        self, jobs: Mapping[int, Job], decoding: AnswerDecoding, progress: Progress
    ) -> tuple[dict[int, ModelAnswer], dict[int, ModelAnswer]]:
        """Returns the plain answers, and the answers after insertions."""
        plain = {
            place: self._prompt(Route(job.query), decoding)
            for place, job in jobs.items()
            if job.compare or not job.insertions
        }
        after = {place: job for place, job in jobs.items() if job.insertions}
        order = _chain_order(after)
        if self._one_at_a_time:
            base = {place: self._alone(plain[place], decoding) for place in progress(list(plain), "plain model")}
            edits = ((place, after[place]) for place in progress(order, f"after insertions ({self.method.name})"))
            return base, {place: self._alone(self._edited_prompt(job), decoding, job) for place, job in edits}
        # Plain answers and the others are one pool, so that batches are full and equal prompts are answered once.
        start = now(self._device)
        insertions = {insertion.key: insertion for job in after.values() for insertion in job.insertions}
        requests = [job.query for job in after.values()]
        self.method.prepare(requests, list(insertions.values()), self._store, progress)
        self.costs.prepared_seconds += now(self._device) - start
        pool: dict[tuple[bool, int], _Prompt] = {(False, place): prompt for place, prompt in plain.items()}
        for place in progress(order, f"insertions ({self.method.name})"):
            if self.method.edits_weights:
                pool[True, place] = self._edited_prompt(after[place])
            else:
                self._insert(after[place].insertions)
                pool[True, place] = self._prompt(self.method.ask(after[place].query), decoding)
        answers = self._answer_pool(pool, decoding, progress)
        base = {place: answers[False, place] for place in plain}
        return base, {place: pool[True, place].route.noted(answers[True, place]) for place in after}

    def _alone(self, prompt: _Prompt, decoding: AnswerDecoding, job: Job | None = None) -> ModelAnswer:
        """Answers one request on its own: by the plain model, or by the method after a job's insertions."""
        # An answer given on its own has a time, which holds for this kind of device alone.
        key = prompt.key and f"alone:{device_name(self._device)}:{prompt.key}"
        stored = self._stored_answer(key)
        if stored is not None:
            return stored
        if job is not None:
            self._insert(job.insertions)
        start = now(self._device)
        answer = (self.method.model if job is None else self.method).generate(prompt.route.query, decoding)
        seconds = now(self._device) - start
        return self._keep(key, replace(answer, seconds=seconds), seconds)

    def _answer_pool(
        self, prompts: Mapping[Place, _Prompt], decoding: AnswerDecoding, progress: Progress
    ) -> dict[Place, ModelAnswer]:
        """Answers prompts, each distinct one once, by the model or by the method's other model."""
        places_of: dict[Hashable, list[Place]] = {}
        for place, prompt in prompts.items():
            places_of.setdefault(prompt.key or place, []).append(place)
        answers: dict[Place, ModelAnswer] = {}
        missing: dict[tuple[MultimodalModel | None, bool], list[list[Place]]] = {}
        for places in places_of.values():
            prompt = prompts[places[0]]
            stored = self._stored_answer(prompt.key)
            if stored is None:
                missing.setdefault((prompt.route.by, bool(prompt.insertions)), []).append(places)
            else:
                answers.update(dict.fromkeys(places, stored))
        generated = self._generate(prompts, missing, decoding)
        for places, answer in progress(generated, "answers", total=sum(map(len, missing.values()))):
            answers.update(dict.fromkeys(places, answer))
        return {place: answers[place] for place in prompts}

    def _generate(
        self,
        prompts: Mapping[Place, _Prompt],
        missing: Mapping[tuple[MultimodalModel | None, bool], list[list[Place]]],
        decoding: AnswerDecoding,
    ) -> Iterator[tuple[list[Place], ModelAnswer]]:
        """Yields the places that share a prompt, with the answer, once it is stored."""
        start, inserting = now(self._device), self.costs.insertion_seconds
        for (model, is_edited), groups in missing.items():
            pool = [prompts[places[0]] for places in groups]
            queries = [prompt.route.query for prompt in pool]
            if is_edited:
                answers = self._edited_answers(queries, [prompt.insertions for prompt in pool], decoding)
            else:
                answers = (model or self.method.model).answers(queries, decoding, self.method.batch_size)
            for number, answer in answers:
                end = now(self._device)
                seconds = end - start - (self.costs.insertion_seconds - inserting)
                yield groups[number], self._keep(pool[number].key, answer, seconds)
                start, inserting = end, self.costs.insertion_seconds

    def _edited_answers(
        self, queries: Sequence[Query], inserted: Sequence[tuple[Insertion, ...]], decoding: AnswerDecoding
    ) -> Iterator[tuple[int, ModelAnswer]]:
        """Yields the place of a request after insertions into weights, with its answer.

        Rows of a batch have weights of several chains where the method offers that; else each chain has its own
        batches.
        """
        method, model = self.method, self.method.model
        runs = itertools.groupby(range(len(queries)), lambda place: _chain(inserted[place]))
        chains = [list(places) for _, places in runs]
        weights = _ChainWeights(method, inserted, self.costs) if isinstance(method, WeightMethod) else None
        if isinstance(method, WeightMethod) and method.by_row:
            chains = [[*range(len(queries))]]
        for chain in chains:
            weights_of = None if weights is None else partial(weights.batch_weights, chain)
            if weights is None:
                self._insert(inserted[chain[0]])
            chain_queries = [queries[place] for place in chain]
            for number, answer in model.answers(chain_queries, decoding, method.batch_size, weights_of):
                yield chain[number], answer

    def _stored_answer(self, key: str | None) -> ModelAnswer | None:
        content = None if key is None else self._store.get(key)
        self.costs.hits += content is not None
        return None if content is None else ModelAnswer(**json.loads(content))

    def _keep(self, key: str | None, answer: ModelAnswer, seconds: float) -> ModelAnswer:
        self.costs.answered += 1
        self.costs.seconds += seconds
        if key is not None:
            self._store.put(key, json.dumps(asdict(answer), ensure_ascii=False).encode())
        return answer

    def _prompt(self, route: Route, decoding: AnswerDecoding) -> _Prompt:
        """Returns a prompt under a key that says which model answers it; all methods share its answers."""
        model = route.by or self.method.model
        return _Prompt(route, _key([model.identity.run, route.query.key], decoding))

    def _edited_prompt(self, job: Job) -> _Prompt:
        """Returns a request under a key that says which insertions come before it, and by which method."""
        source = [self.method.model.identity.run, *self._method_identity, list(_chain(job.insertions))]
        return _Prompt(Route(job.query), _key([*source, job.query.key], job.decoding), job.insertions)

    def _insert(self, insertions: Sequence[Insertion]) -> None:
        """Inserts a chain; if it extends the present one, only the rest."""
        if self._present_chain != _chain(insertions[: len(self._present_chain)]):
            self._renew()
        start = now(self._device)
        for insertion in insertions[len(self._present_chain) :]:
            self.method.insert(insertion)
            self._present_chain = (*self._present_chain, insertion.key)
            self.costs.inserted += 1
        self.costs.insertion_seconds += now(self._device) - start

    def _renew(self) -> None:
        self.method.reset()
        self._present_chain = ()


def _chain_order(jobs: Mapping[int, Job]) -> list[int]:
    """Returns the places of jobs with equal chains together, each chain after the chains that it extends."""
    keys = (key for job in jobs.values() for key in _chain(job.insertions))
    ranks = {key: rank for rank, key in enumerate(dict.fromkeys(keys))}
    return sorted(jobs, key=lambda place: ([ranks[key] for key in _chain(jobs[place].insertions)], place))


def _chain(insertions: Sequence[Insertion]) -> Chain:
    return tuple(insertion.key for insertion in insertions)


def _key(source: Sequence[object], decoding: AnswerDecoding) -> str | None:
    return None if decoding.samples else f"answer:{value_key([*source, asdict(decoding)])}"
