"""Answers many requests with one method, and does nothing twice.

The plain model answers first (requests without insertions, and the references of locality), then one chain of
insertions follows another, so that a chain that extends the previous one needs only what is new. Every answer is
committed to a store before the next request, so a crash or Ctrl-C loses none, and the next run, of this or another
method, finds them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from culture_tasks.insertion.adapter import Answer
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.insertion_method import InsertionMethod, Progress, silent
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
class Outcome:
    """The answer to a job.

    Attributes:
        text: The answer after the insertions.
        base: The plain model's answer, if it was asked.
        activated: Index of the insertion that was used; None if none was, or if the method uses all.
    """

    text: str
    base: str | None = None
    activated: int | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is stored of an answer."""

    text: str
    activated: int | None

    @classmethod
    def of(cls, answer: Answer) -> _Kept:
        return cls(answer.text, answer.activated)

    @classmethod
    def read(cls, content: bytes) -> _Kept:
        values = json.loads(content)
        return cls(values["text"], values["activated"])

    def written(self) -> bytes:
        return json.dumps({"text": self.text, "activated": self.activated}, ensure_ascii=False).encode()


class Runner:
    """Runs one method over one store of answers.

    Args:
        method: The method, fitted or loaded.
        kept: Where answers are stored.
    """

    def __init__(self, method: InsertionMethod, kept: ValueStore) -> None:
        self._method = method
        self._kept = kept
        self._identity = [method.name, method.answers_version, method.fingerprint]
        self._inserted: tuple[Insertion, ...] = ()
        method.reset()

    @property
    def identity(self) -> str:
        """Hash of the model and the method: runs with the same hash give the same answers."""
        return _hash([self._method.model.identity.run, *self._identity])

    def run(self, jobs: Sequence[Job], progress: Progress = silent) -> list[Outcome]:
        """Answers all jobs, in an order of its own.

        Raises:
            DataError: For the first image that can't be read, before anything is answered.
        """
        if not self._method.inserts:
            jobs = [replace(job, insertions=()) for job in jobs]
        keys = [self._keys(job) for job in jobs]
        self._renew()
        base = [self._plain(job, plain) for job, (plain, _) in progress(_paired(jobs, keys), "plain model")]
        after: dict[int, _Kept] = {}
        order = _chain_order(jobs)
        for place in progress(order, f"after insertions ({self._method.name})"):
            after[place] = self._after(jobs[place], keys[place][1])
        return [_outcome(job, base[place], after.get(place)) for place, job in enumerate(jobs)]

    def _keys(self, job: Job) -> tuple[str, str]:
        """Returns the keys under which the plain answer and the answer after the insertions are stored."""
        asked = [self._method.model.identity.run, job.query.key, job.decoding.as_dict()]
        inserted = [*self._identity, [insertion.key for insertion in job.insertions]]
        return f"answer:{_hash(asked)}", f"answer:{_hash([*asked, *inserted])}"

    def _plain(self, job: Job, key: str) -> _Kept | None:
        if job.insertions and not job.compare:
            return None
        return self._answered(key, job, lambda: self._method.model.generate(job.query, job.decoding))

    def _after(self, job: Job, key: str) -> _Kept:
        def ask() -> Answer:
            self._insert(job.insertions)
            return self._method.generate(job.query, job.decoding)

        return self._answered(key, job, ask)

    def _answered(self, key: str, job: Job, ask: Callable[[], Answer]) -> _Kept:
        content = None if job.decoding.samples else self._kept.get(key)
        if content is not None:
            return _Kept.read(content)
        kept = _Kept.of(ask())
        if not job.decoding.samples:
            self._kept.put(key, kept.written())
        return kept

    def _insert(self, wanted: tuple[Insertion, ...]) -> None:
        """Inserts a chain; if it extends what is already inserted, only the rest."""
        there = [insertion.key for insertion in self._inserted]
        if there != [insertion.key for insertion in wanted[: len(there)]]:
            self._renew()
        for insertion in wanted[len(self._inserted) :]:
            self._method.insert(insertion)
            self._inserted = (*self._inserted, insertion)

    def _renew(self) -> None:
        self._method.reset()
        self._inserted = ()


def _paired(jobs: Sequence[Job], keys: Sequence[tuple[str, str]]) -> list[tuple[Job, tuple[str, str]]]:
    return list(zip(jobs, keys, strict=True))


def _chain_order(jobs: Sequence[Job]) -> list[int]:
    """Returns the indices of jobs with insertions: equal chains together, each after the chains that it extends."""
    first_seen: dict[str, int] = {}

    def rank(job: Job) -> tuple[int, ...]:
        return tuple(first_seen.setdefault(insertion.key, len(first_seen)) for insertion in job.insertions)

    ranks = {place: rank(job) for place, job in enumerate(jobs) if job.insertions}
    return sorted(ranks, key=lambda place: (ranks[place], place))


def _outcome(job: Job, base: _Kept | None, after: _Kept | None) -> Outcome:
    said = base if after is None else after
    assert said is not None
    return Outcome(said.text, base.text if job.compare and base is not None else None, said.activated)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
