"""A judge behind an endpoint that is asked in batches, over as many rounds and commands as it takes.

Requests, reading of replies and the reminder after an unreadable one are the endpoint judge's. A request that neither
the verdict cache nor a batch answers is open, and is part of the next batch. One that failed for a reason that may
pass, expired, or was cut off by thinking is given up after three batches.

A small file beside the results lists the batches: which requests, as which file and batch at the endpoint. It is
written before and after each step, so that a command that was killed goes on where it stopped and pays for no request
twice; where it is copied with the results, another machine can collect. It holds no key and no text.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from culture_tasks.errors import DataError, JudgeUnreachableError, SettingsError
from culture_tasks.judges.batch.batch_endpoint import (
    BatchEndpoint,
    RefusedError,
    Status,
    agreed,
    batch_files,
    name_of,
    read_results,
)
from culture_tasks.judges.cache import VerdictCache
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
from culture_tasks.judges.grading import Grading, open_requests
from culture_tasks.judges.parameters import limit_of
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Usage
from culture_tasks.judges.tickets import GradingTicket
from culture_tasks.plain_files import write_whole
from culture_tasks.settings import Settings

# Name of the file beside the results.
STATE_FILE = "judge_batches.json"
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0
_ANSWERED = 200
_MOST_TIMES = 3
_NO_REPLY = Problem("the batch ended without a reply", retry=True)


class BatchJudge(EndpointJudge):
    """Notes the items to grade; ``asks`` says whether :meth:`check` may ask the endpoint a question."""

    def __init__(self, model: str, settings: Settings, *, asks: bool) -> None:
        super().__init__(model, settings)
        self.model = model
        self.unfinished: list[GradingTicket] = []
        self.cache = VerdictCache(settings.cache_file)
        self._asks = asks

    def submit(self, rubric: Rubric, item: JudgeItem) -> GradingTicket:
        """Notes an item."""
        self.unfinished.append(GradingTicket(Grading(self._grader, rubric, item), self._progress))
        return self.unfinished[-1]

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> None:
        """Asks the endpoint for one verdict, which tells what parameters it takes; not where results are collected."""
        if self._asks:
            super().check(expected, responses_known=responses_known)

    def sent_sampling(self, rubric: Rubric) -> Mapping[str, Any]:
        """Returns the sampling parameters that requests by a rubric are sent with now."""
        return self._grader.adaptations.apply(self._grader.wording(rubric).sampling, self._grader.most_tokens)

    def adopt_sampling(self, rubric: Rubric, sampling: Mapping[str, Any]) -> None:
        """Takes over the sampling parameters that an earlier batch was sent with."""
        self._grader.adaptations.adopt(self._grader.wording(rubric).sampling, sampling)

    def open_jobs(
        self, answer: Callable[[Grading, Answer | None], Answer | None] = lambda _, cached: cached
    ) -> dict[str, Grading]:
        """Returns a job for each open request, by the name of its line; all others are answered."""
        open_ = open_requests([ticket.grading for ticket in self.unfinished], self.cache, answer)
        self.settle()
        return {name_of(key): jobs[0] for key, jobs in open_.items()}

    def settle(self) -> None:
        """Hands the verdicts out that are there."""
        for ticket in self.unfinished:
            if ticket.grading.verdict is not None:
                ticket.settle()
        self.unfinished = [ticket for ticket in self.unfinished if ticket.grading.verdict is None]


class _Reply(NamedTuple):
    result: Completion | Problem  # the completion, or why there is none
    sampling: Mapping[str, Mapping[str, Any]]  # the sampling parameters of the batch by rubric, as sent
    usage: Usage  # tokens of earlier completions, which thinking had cut off
    times: int  # how many batches it was in that have ended


class _Batch(BaseModel, extra="forbid"):
    model: str  # who is asked
    names: list[str]  # the requests
    sampling: dict[str, dict[str, Any]]  # sampling parameters as sent, by rubric
    file: str | None = None  # the uploaded file; None before
    id: str | None = None  # the batch; None before it was begun
    # Whether its results couldn't be fetched so far, and whether its requests may be sent again even so.
    results: Literal["not fetched", "given up"] | None = None


class _State(BaseModel, extra="forbid"):
    format: Literal[1] = 1
    endpoint: str
    batches: list[_Batch] = []


def state_file(results: Sequence[Path]) -> Path:
    """Returns the file that lists the batches of these result files: in the folder that holds them all."""
    file = Path(os.path.commonpath([path.resolve().parent for path in results])) / STATE_FILE
    if strays := [path for path in state_files(results) if path != file]:
        raise DataError(
            f"rejudge: batches of some of these results were sent with other paths ({strays[0]}). Name the results "
            f"as before, {strays[0].parent}, or delete the file to forget what was sent."
        )
    return file


def state_files(results: Iterable[Path]) -> list[Path]:
    """Returns the files that list batches of any of these result files, alone or together with others."""
    folders = dict.fromkeys(folder for path in results for folder in path.resolve().parents)
    return [file for folder in folders if (file := folder / STATE_FILE).is_file()]


@dataclass(eq=False)
class BatchRounds:
    """The batches of some results."""

    judges: Mapping[str, BatchJudge]  # by model
    rubrics: Mapping[str, Rubric]  # by name
    _: KW_ONLY
    endpoint: BatchEndpoint
    file: Path  # lists the batches
    say: Callable[[str], None]  # prints a line of progress
    resend: bool = False  # whether requests are sent again whose results can't be fetched
    _collected: set[str] = field(default_factory=set, init=False)
    _patient_until: dict[str, float] = field(default_factory=dict, init=False)
    _content: bytes | None = field(default=None, init=False)
    _replies: dict[str, _Reply] = field(default_factory=dict, init=False)
    _used: set[str] = field(default_factory=set, init=False)  # names of replies that answered a request
    _requested: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._state = self._read(next(iter(self.judges.values())).address.name)

    @property
    def were_sent(self) -> bool:
        """Whether any batch was sent and not written into result files yet."""
        return bool(self._state.batches)

    @property
    def unfetched(self) -> int:
        """How many requests are in batches that have ended and whose results couldn't be fetched so far."""
        return sum(len(batch.names) for batch in self._state.batches if batch.results == "not fetched")

    def adopt_sampling(self) -> None:
        """Tells the judges the sampling parameters of the batches so far."""
        for batch in self._state.batches:
            for name, sampling in batch.sampling.items():
                if batch.model in self.judges and name in self.rubrics:
                    self.judges[batch.model].adopt_sampling(self.rubrics[name], sampling)

    def submit(self) -> int:
        """Sends the open requests that are not on their way, and returns their number.

        Requests that batches which have ended left open are sent again, unless their results can't be fetched.
        """
        self.collect()
        under_way = {n for batch in self._state.batches if batch.id not in self._collected for n in batch.names}
        total = 0
        for judge in self.judges.values():
            jobs = [(name, job) for name, job in judge.open_jobs(self._answer).items() if name not in under_way]
            # Requests that begin alike together, for the endpoint's prompt cache.
            jobs.sort(key=lambda pair: pair[1].rubric.prompt_order(pair[1].item))
            count = sum(self._send(judge, *file) for file in batch_files(self._affordable_lines(judge, jobs)))
            if count < len(jobs):
                self.say(f"{len(jobs) - count:,} requests are not sent now, to keep to the budget")
            total += count
        return total

    def collect(self) -> list[Status]:
        """Takes the results of all batches that have ended, and returns the status of the others.

        A batch whose results can't be fetched is among these for as long as patience lasts.

        Raises:
            JudgeUnreachableError: If the endpoint refused a whole batch, which is forgotten then.
        """
        self._recover()
        running, refused = [], []
        for batch in [batch for batch in self._state.batches if batch.id not in self._collected]:
            assert batch.id is not None
            status = self.endpoint.status(batch.id)
            if not status.has_ended:
                running.append(status)
            elif status.name == "failed" and not status.outputs:
                refused.append(f"batch {batch.id}: {status.error or 'no reason given'}")
                self._forget(batch)
            elif self._fetch(batch, status):
                self._collected.add(batch.id)
            else:
                now = time.monotonic()
                if now < self._patient_until.setdefault(batch.id, now + self.endpoint.patience):
                    running.append(status._replace(name=f"{status.name}, results not fetched"))
        if refused:
            raise JudgeUnreachableError(
                f"rejudge: the endpoint refused {'; '.join(refused)}. None of it was answered. Fix the cause, or "
                "wait until other batches have ended, and submit again."
            )
        return running

    def wait(self) -> None:
        """Sends the open requests and waits for the results, until there is nothing more to send."""
        while True:
            before = len(self._collected)
            count = self.submit()
            pause = _FIRST_PAUSE
            while running := self.collect():
                self.say(described(running))
                time.sleep(pause)
                pause = min(1.5 * pause, _LONGEST_PAUSE)
            if not count and len(self._collected) == before:
                return

    def open_requests(self) -> int:
        """Returns how many requests neither the cache nor the results so far answer."""
        return sum(len(judge.open_jobs(self._answer)) for judge in self.judges.values())

    def foreign_results(self) -> int:
        """Returns how many results so far belong to no sample that is graded now, or to other settings."""
        self.open_requests()
        return len(self._replies.keys() - self._requested)

    def end_verdicts(self) -> None:
        """Ends all verdicts: open requests have failed, for their last problem or for lack of money."""
        for judge in self.judges.values():
            budget, unsent = judge.budget, len(judge.open_jobs(self._answer).keys() - self._replies.keys())
            reason = "no batch has answered it" if budget is None else budget.reason
            if unsent and budget is not None:
                budget.refuse(unsent)
            for job in [ticket.grading for ticket in judge.unfinished]:
                reply = self._replies.get(name_of(job.request.key))
                problem = reply.result if reply is not None else None
                job.take(Answer(problem if isinstance(problem, Problem) else Problem(reason)))
            judge.settle()

    def finish(self) -> None:
        """Removes the file, once the verdicts are in result files; keeps it where others may still need it."""
        if foreign := self.foreign_results():
            self.say(
                f"{foreign:,} results of batches belong to other samples or settings, so {self.file} is kept. Run the "
                "command with those samples and settings to use them, or delete the file."
            )
        elif self._on_disk() == self._content:
            self.file.unlink(missing_ok=True)

    def _recover(self) -> None:
        """Completes a killed command: a file that wasn't uploaded was never sent, a batch may have begun."""
        for batch in list(self._state.batches):
            if batch.file is None:
                self._forget(batch)
            elif batch.id is None:
                try:
                    batch.id = self.endpoint.find(batch.file)
                except JudgeUnreachableError as error:
                    raise JudgeUnreachableError(
                        f"{error} If the endpoint never lists batches, look there for a batch of this file; if there "
                        f"is none, delete {self.file} to send everything again."
                    ) from None
                self._begin(batch, batch.file)

    def _answer(self, job: Grading, cached: Answer | None) -> Answer | None:
        """Returns the answer to a request: a batch's, or else the cache's; None where it is open."""
        name = name_of(job.request.key)
        self._requested.add(name)
        reply = self._replies.get(name)
        if reply is None:
            return cached
        result, grader, may_go_on = reply.result, job.grader, reply.times < _MOST_TIMES
        if isinstance(result, Problem):
            return cached or (None if result.retry and may_go_on else Answer(result, attempts=reply.times))
        sampling = reply.sampling.get(job.rubric.name, job.request.sampling)
        if may_go_on and result.is_cut_off_by_thinking and grader.adaptations.grow(sampling, grader.most_tokens):
            return cached
        result = replace(result, usage=reply.usage + result.usage, sampling=sampling)
        if name in self._used:
            return Answer(result)
        self._used.add(name)
        self.judges[grader.model].cache.put_many([replace(job.row(result), replaces=True)])
        return Answer(result, attempts=reply.times)

    def _affordable_lines(self, judge: BatchJudge, jobs: Iterable[tuple[str, Grading]]) -> Iterator[tuple[str, bytes]]:
        """Yields the lines that the budget pays for, and sets their highest cost aside."""
        reserved = 0.0
        for name, job in jobs:
            sampling = judge.sent_sampling(job.rubric)
            body = job.request.body(sampling)
            if judge.budget is not None:
                reserved += judge.budget.cost(judge.model, Usage(len(body), limit_of(sampling) or 32_768).in_a_batch)
                if reserved > judge.budget.left:
                    return
            yield name, body

    def _send(self, judge: BatchJudge, content: bytes, names: list[str]) -> int:
        """Sends a file of lines as a batch, and returns how many requests it has."""
        sampling = {name: dict(judge.sent_sampling(rubric)) for name, rubric in self.rubrics.items()}
        batch = _Batch(model=judge.model, names=names, sampling=sampling)
        self._state.batches.append(batch)
        self._save()
        batch.file = self.endpoint.upload(content)
        self._save()
        self._begin(batch, batch.file)
        self.say(f"sent batch {batch.id}: {len(names):,} requests to {judge.model}")
        return len(names)

    def _begin(self, batch: _Batch, file: str) -> None:
        """Begins a batch that hasn't begun; one that the endpoint doesn't take is forgotten, to be sent anew."""
        try:
            batch.id = batch.id or self.endpoint.begin(file)
        except RefusedError:
            self._forget(batch)
            raise
        self._save()

    def _forget(self, batch: _Batch) -> None:
        self._state.batches.remove(batch)
        self._save()

    def _fetch(self, batch: _Batch, status: Status) -> bool:
        """Gives the results of a batch that has ended to its judge; False where they aren't all there to be fetched."""
        judge = self.judges.get(batch.model)
        if judge is None:
            raise SettingsError(
                f"rejudge: batch {batch.id} was sent to the judge {batch.model!r}, and the judge now is "
                f"{', '.join(self.judges)}. Name the same judge, or delete {self.file} to forget what was sent."
            )
        results: dict[str, Completion | Problem] = {}
        damaged, problem = 0, ""
        for file in status.outputs:
            content = self.endpoint.content(file)
            if content is None:
                problem = f"its file {file} isn't there"
                continue
            part, unreadable = read_results(content, judge.address.secrets)
            results |= {name: agreed(results.get(name), part[name]) for name in batch.names if name in part}
            damaged += unreadable
        answers = sum(isinstance(result, Completion) or result.status == _ANSWERED for result in results.values())
        present, expected = answers + damaged, status.answered
        if status.name == "completed" and not status.done:  # the endpoint doesn't count
            present, expected = len(results) + damaged, len(batch.names)
        # Where every request has a line, an endpoint that counts more answers counts wrong.
        if not problem and present < expected and len(results) + damaged < len(batch.names):
            problem = f"{present:,} of {expected:,} are there"
        if problem and batch.results is None:
            self.say(f"batch {batch.id} is {status.name}, but its results can't be fetched: {problem}")
        before = batch.results
        if before != "given up":
            batch.results = None if not problem else "given up" if self.resend else "not fetched"
        if batch.results != before:
            self._save()
        if batch.results == "not fetched":
            return False
        if damaged:
            self.say(f"batch {batch.id}: {damaged:,} lines of its results can't be read")
        for name in batch.names:
            self._give(judge, name, results.get(name), batch)
        missing = len(batch.names) - len(results)
        unanswered = f", {missing:,} without a result" if missing else ""
        self.say(f"batch {batch.id} is {status.name}: {len(batch.names):,} requests{unanswered}")
        return True

    def _give(self, judge: BatchJudge, name: str, result: Completion | Problem | None, batch: _Batch) -> None:
        """Takes the result of a line, in the order of the batches; None where the batch has ended without one."""
        before = self._replies.get(name)
        usage = Usage() if before is None else before.usage
        if before is not None and isinstance(before.result, Completion):
            usage += before.result.usage
        if isinstance(result, Completion):
            result = replace(result, usage=result.usage.in_a_batch)
        times = 1 if before is None else before.times + 1
        self._replies[name] = _Reply(result or _NO_REPLY, batch.sampling, usage, times)
        if judge.budget is not None and isinstance(result, Completion):
            judge.budget.spend(judge.model, result.usage)

    def _read(self, endpoint: str) -> _State:
        try:
            self._content = self._on_disk()
            if self._content is None:
                return _State(endpoint=endpoint)
            state = _State.model_validate_json(self._content)
        except (OSError, ValidationError) as error:
            reason = (
                error.strerror if isinstance(error, OSError) else f"{error.error_count()} fields are not as written"
            )
            raise DataError(
                f"{self.file}: can't be read ({reason}). It says which batches were sent: restore it, or delete it to "
                "send them, and pay for them, again."
            ) from None
        if state.endpoint != endpoint:
            raise SettingsError(
                f"rejudge: batches of these results were sent to {state.endpoint}, and the endpoint now is {endpoint}. "
                f"Set the same OPENAI_BASE_URL, or delete {self.file} to forget what was sent."
            )
        return state

    def _on_disk(self) -> bytes | None:
        try:
            return self.file.read_bytes()
        except FileNotFoundError:
            return None

    def _save(self) -> None:
        if self._on_disk() != self._content:
            raise DataError(
                f"{self.file}: another command has changed it. Nothing more is sent, so that nothing is paid for "
                "twice: wait for the other command to end, and run this one again."
            )
        self._content = self._state.model_dump_json(indent=1).encode()
        write_whole(self.file, self._content.decode())


def described(running: Sequence[Status]) -> str:
    """Returns the progress of batches, in a line."""
    done, requests = sum(status.done for status in running), sum(status.requests for status in running)
    names = ", ".join(dict.fromkeys(status.name.replace("_", " ") for status in running))
    return f"batches not done: {len(running)} ({names}); {done:,} of {requests:,} requests have a result"
