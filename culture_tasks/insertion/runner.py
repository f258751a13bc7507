"""Answers many requests with one method, and does nothing twice.

First comes what to ask: a method prepares what it needs in batches, then one chain of insertions follows another, so
that a chain that extends the previous one needs only what is new, and the method says what each request becomes. Then
come the answers: all distinct prompts, those of the plain model among them, in one pool and by any engine. What a
method leaves alone is a prompt of the plain model, and is asked once.

A method that edits weights is asked while its edits are there, all requests of one state together.

Every answer is committed to a store before the next batch, so a crash or Ctrl-C loses none, and the next run, of this
or another method, finds them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

from culture_tasks.insertion.adapter import Answer, MultimodalModel
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.device_meter import device_name, now
from culture_tasks.insertion.insertion_method import Asked, InsertionMethod
from culture_tasks.insertion.progress import Counted, Progress, silent
from culture_tasks.insertion.queries import Insertion, Query
from culture_tasks.insertion.value_store import ValueStore


@dataclass(frozen=True, slots=True)
class Job:
    """One request to answer.

    Attributes:
        query: The request.
        decoding: How to decode.
        insertions: What is inserted before it, in order.
        compare: Whether the plain model is asked too.
    """

    query: Query
    decoding: Decoding
    insertions: tuple[Insertion, ...] = ()
    compare: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What was answered to one request.

    Attributes:
        text: The answer.
        prompt_tokens: Number of tokens that the model was shown, those of images among them; None if the engine
            doesn't say.
        new_tokens: Number of tokens of the answer; None if the engine doesn't say.
        activated: Index of the insertion that was used; None if none was, or if the method uses all.
        similarity: Highest router score of the request; None if nothing was compared.
        threshold: What the score was compared with.
        seconds: Time that the answer took on its own; None if it was one of a batch.
    """

    text: str
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    activated: int | None = None
    similarity: float | None = None
    threshold: float | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, answer: Answer, seconds: float | None = None) -> Reply:
        """Returns what is kept of a model's answer."""
        return cls(
            text=answer.text,
            prompt_tokens=answer.prompt_tokens,
            new_tokens=len(answer.tokens),
            activated=answer.activated,
            similarity=answer.similarity,
            threshold=answer.threshold,
            seconds=seconds,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a job.

    Attributes:
        reply: The answer after the insertions.
        base: The plain model's answer, if it was asked.
    """

    reply: Reply
    base: str | None = None


@dataclass
class Costs:
    """What a run did and how long it took.

    Attributes:
        answered: Distinct requests that were answered now.
        found: Distinct requests whose answer was in the store.
        new_tokens: Tokens of the answers that were given now.
        seconds: Time of answering.
        inserted: Insertions.
        insertion_seconds: Time of inserting.
        prepared_seconds: Time of what was computed ahead for insertions and requests.
        alone: Time of each job's answer that was given on its own, in this run or an earlier one.
    """

    answered: int = 0
    found: int = 0
    new_tokens: int = 0
    seconds: float = 0.0
    inserted: int = 0
    insertion_seconds: float = 0.0
    prepared_seconds: float = 0.0
    alone: list[float] = field(default_factory=list)


class Engine(Protocol):
    """Answers prompts of the plain model."""

    @property
    def identity(self) -> str:
        """Hash of all that can change an answer, the request and its decoding aside."""

    def answers(self, queries: Sequence[Query], decodings: Sequence[Decoding]) -> Iterator[tuple[int, Reply]]:
        """Yields the place of a request, with its answer, as they come."""


class InBatches:
    """The engine that generates with transformers, in batches.

    Args:
        model: The model.
        batch_size: Requests that are answered together.
    """

    def __init__(self, model: MultimodalModel, batch_size: int = 1) -> None:
        self._model = model
        self._batch_size = batch_size

    @property
    def identity(self) -> str:
        """The model's identity; the size of a batch is not part of it."""
        return self._model.identity.run

    def answers(self, queries: Sequence[Query], decodings: Sequence[Decoding]) -> Iterator[tuple[int, Reply]]:
        """Yields the place of a request, with its answer, those of one decoding after another."""
        for decoding in dict.fromkeys(decodings):
            places = [place for place, each in enumerate(decodings) if each == decoding]
            asked = [queries[place] for place in places]
            for place, answer in self._model.answers(asked, decoding, self._batch_size):
                yield places[place], Reply.of(answer)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A prompt, and the key of its answer in the store; what is sampled has none."""

    asked: Asked
    decoding: Decoding
    key: str | None


class Runner:
    """Runs one method over one store of answers.

    Args:
        method: The method, fitted or loaded.
        kept: Where answers are stored.
        engine: Answers prompts of the plain model; None means transformers, in batches of the method's size.
        one_at_a_time: Whether every request is answered on its own, chain by chain, as the paper did to measure
            latency (Table 4); nothing is prepared ahead then.

    Attributes:
        costs: What was done so far.
    """

    def __init__(
        self, method: InsertionMethod, kept: ValueStore, engine: Engine | None = None, *, one_at_a_time: bool = False
    ) -> None:
        self._method = method
        self._kept = kept
        self._engine: Engine = engine or InBatches(method.model, method.batch_size)
        self._one_at_a_time = one_at_a_time
        self._method_identity = [method.name, method.answers_version, method.fingerprint]
        self._inserted: tuple[Insertion, ...] = ()
        self.costs = Costs()
        method.reset()

    @property
    def identity(self) -> str:
        """Hash of the model and the method: runs with the same hash give the same answers."""
        return _hash([self._engine.identity, *self._method_identity])

    def run(self, jobs: Sequence[Job], progress: Progress = silent) -> list[Outcome]:
        """Answers all jobs, in an order of its own.

        Raises:
            DataError: For the first image that can't be read, before anything is answered.
        """
        if not self._method.inserts:
            jobs = [replace(job, insertions=()) for job in jobs]
        _read(jobs, progress)
        self._renew()
        plain = {place: self._plain(job) for place, job in enumerate(jobs) if job.compare or not job.insertions}
        after = {place: job for place, job in enumerate(jobs) if job.insertions}
        base, replies = self._answered(plain, after, progress)
        self._renew()
        outcomes = [
            Outcome(replies.get(place) or base[place], base[place].text if job.compare else None)
            for place, job in enumerate(jobs)
        ]
        self.costs.alone += [outcome.reply.seconds for outcome in outcomes if outcome.reply.seconds is not None]
        return outcomes

    def _answered(
        self, plain: Mapping[int, _Wanted], after: Mapping[int, Job], progress: Progress
    ) -> tuple[dict[int, Reply], dict[int, Reply]]:
        """Returns the plain answers, and those after insertions."""
        if self._one_at_a_time:
            base = {place: self._alone(plain[place]) for place in progress(list(plain), "plain model")}
            return base, self._in_turn(after, progress)
        if self._method.edits_weights:
            base = self._pooled(plain, progress, "plain model")
            return base, self._while_edited(after, progress)
        # Plain answers and the others are one pool, so that batches are full and equal prompts are asked once.
        routed = self._routed(after, progress)
        offset = 1 + max(plain, default=-1)
        found = self._pooled(
            {**plain, **{offset + place: wanted for place, wanted in routed.items()}}, progress, "answers"
        )
        return found, {place: _with_routing(found[offset + place], wanted.asked) for place, wanted in routed.items()}

    def _routed(self, after: Mapping[int, Job], progress: Progress) -> dict[int, _Wanted]:
        """Asks the method what each request becomes."""
        self._prepare(after.values(), progress)
        routed = {}
        for place in progress(_chain_order(after), f"insertions ({self._method.name})"):
            job = after[place]
            self._insert(job.insertions)
            routed[place] = self._prompt(self._method.ask(job.query), job.decoding)
        return routed

    def _while_edited(self, after: Mapping[int, Job], progress: Progress) -> dict[int, Reply]:
        """Answers the requests of each edited state together; a state whose answers are all stored isn't made."""
        self._prepare(after.values(), progress)
        replies: dict[int, Reply] = {}
        for places in progress(_chains(after), f"after insertions ({self._method.name})"):
            wanted = {place: self._edited(after[place]) for place in places}
            if any(each.key is None or self._kept.get(each.key) is None for each in wanted.values()):
                self._insert(after[places[0]].insertions)
            replies.update(self._pooled(wanted, silent, ""))
        return replies

    def _in_turn(self, after: Mapping[int, Job], progress: Progress) -> dict[int, Reply]:
        replies: dict[int, Reply] = {}
        for place in progress(_chain_order(after), f"after insertions ({self._method.name})"):
            replies[place] = self._alone(self._edited(after[place]), after[place])
        return replies

    def _alone(self, wanted: _Wanted, job: Job | None = None) -> Reply:
        """Answers one request on its own: of the plain model, or of the method after a job's insertions."""
        # An answer given on its own says how long it took, which holds for this kind of device alone.
        key = wanted.key and f"alone:{device_name(self._method.model.device)}:{wanted.key}"
        stored = self._stored(key)
        if stored is not None:
            self.costs.found += 1
            return stored
        if job is not None:
            self._insert(job.insertions)
        start = now(self._method.model.device)
        asked = self._method.model if job is None else self._method
        answer = asked.generate(wanted.asked.query, wanted.decoding)
        seconds = now(self._method.model.device) - start
        return self._keep(key, Reply.of(answer, seconds), seconds)

    def _pooled(self, wanted: Mapping[int, _Wanted], progress: Progress, description: str) -> dict[int, Reply]:
        """Answers prompts, each distinct one once, by the engine or by a model of the method's own."""
        places_of: dict[tuple[str | None, int], list[int]] = {}
        for place, each in wanted.items():
            places_of.setdefault((each.key, place if each.key is None else 0), []).append(place)
        replies: dict[int, Reply] = {}
        missing: dict[MultimodalModel | None, list[list[int]]] = {}
        for (key, _), places in places_of.items():
            stored = self._stored(key)
            if stored is None:
                missing.setdefault(wanted[places[0]].asked.by, []).append(places)
            else:
                self.costs.found += 1
                replies.update(dict.fromkeys(places, stored))
        count = sum(map(len, missing.values()))
        for places, reply in progress(Counted(self._generated(wanted, missing), count), description):
            replies.update(dict.fromkeys(places, reply))
        return {place: replies[place] for place in wanted}

    def _generated(
        self, wanted: Mapping[int, _Wanted], missing: Mapping[MultimodalModel | None, list[list[int]]]
    ) -> Iterator[tuple[list[int], Reply]]:
        """Yields the places that share a prompt, with the answer, once it is stored."""
        start = now(self._method.model.device)
        for model, groups in missing.items():
            asked = [wanted[places[0]] for places in groups]
            engine = self._engine if model is None else InBatches(model, self._method.batch_size)
            if self._method.edits_weights:
                engine = InBatches(self._method.model, self._method.batch_size)
            for number, reply in engine.answers(
                [each.asked.query for each in asked], [each.decoding for each in asked]
            ):
                end = now(self._method.model.device)
                yield groups[number], self._keep(asked[number].key, reply, end - start)
                start = end

    def _stored(self, key: str | None) -> Reply | None:
        content = None if key is None else self._kept.get(key)
        return None if content is None else Reply(**json.loads(content))

    def _keep(self, key: str | None, reply: Reply, seconds: float) -> Reply:
        self.costs.answered += 1
        self.costs.seconds += seconds
        self.costs.new_tokens += reply.new_tokens or 0
        # Nothing said may be a failure that a backend didn't tell: what isn't stored is asked again.
        if key is not None and (reply.text or reply.new_tokens):
            self._kept.put(key, json.dumps(asdict(reply), ensure_ascii=False).encode())
        return reply

    def _plain(self, job: Job) -> _Wanted:
        return self._prompt(Asked(job.query), job.decoding)

    def _prompt(self, asked: Asked, decoding: Decoding) -> _Wanted:
        """Returns a prompt under a key that says which model answers it: the plain one's answers are everybody's."""
        by = [self._engine.identity] if asked.by is None else [asked.by.identity.run, *self._method_identity]
        return _Wanted(asked, decoding, self._key(decoding, [*by, asked.query.key]))

    def _edited(self, job: Job) -> _Wanted:
        """Returns a request under a key that says what was inserted before it, and by which method."""
        inserted = [insertion.key for insertion in job.insertions]
        by = [self._method.model.identity.run, *self._method_identity, inserted]
        return _Wanted(Asked(job.query), job.decoding, self._key(job.decoding, [*by, job.query.key]))

    def _key(self, decoding: Decoding, asked: Sequence[object]) -> str | None:
        return None if decoding.samples else f"answer:{_hash([*asked, decoding.as_dict()])}"

    def _prepare(self, jobs: Collection[Job], progress: Progress) -> None:
        start = now(self._method.model.device)
        insertions = {insertion.key: insertion for job in jobs for insertion in job.insertions}
        self._method.prepare([job.query for job in jobs], list(insertions.values()), self._kept, progress)
        self.costs.prepared_seconds += now(self._method.model.device) - start

    def _insert(self, wanted: tuple[Insertion, ...]) -> None:
        """Inserts a chain; if it extends what is already inserted, only the rest."""
        there = [insertion.key for insertion in self._inserted]
        if there != [insertion.key for insertion in wanted[: len(there)]]:
            self._renew()
        start = now(self._method.model.device)
        for insertion in wanted[len(self._inserted) :]:
            self._method.insert(insertion)
            self._inserted = (*self._inserted, insertion)
            self.costs.inserted += 1
        self.costs.insertion_seconds += now(self._method.model.device) - start

    def _renew(self) -> None:
        self._method.reset()
        self._inserted = ()


def _read(jobs: Sequence[Job], progress: Progress) -> None:
    """Reads all requests once, so that an image that can't be read is found before anything is computed."""
    queries = [query for job in jobs for query in (job.query, *(insertion.query for insertion in job.insertions))]
    for query in progress(list({id(query): query for query in queries}.values()), "requests"):
        _ = query.key


def _chain_order(jobs: Mapping[int, Job]) -> list[int]:
    """Returns the places of jobs with equal chains together, each chain after those that it extends."""
    first_seen: dict[str, int] = {}

    def rank(job: Job) -> tuple[int, ...]:
        return tuple(first_seen.setdefault(insertion.key, len(first_seen)) for insertion in job.insertions)

    ranks = {place: rank(job) for place, job in jobs.items()}
    return sorted(ranks, key=lambda place: (ranks[place], place))


def _chains(jobs: Mapping[int, Job]) -> list[list[int]]:
    """Returns the places of jobs, those with equal chains in one list, in the order of :func:`_chain_order`."""
    chains: dict[tuple[str, ...], list[int]] = {}
    for place in _chain_order(jobs):
        chains.setdefault(tuple(insertion.key for insertion in jobs[place].insertions), []).append(place)
    return list(chains.values())


def _with_routing(reply: Reply, asked: Asked) -> Reply:
    return replace(reply, activated=asked.activated, similarity=asked.similarity, threshold=asked.threshold)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
