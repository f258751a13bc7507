"""A judge that is asked in an endpoint's batches, over as many rounds and commands as it takes.

Requests, reading and the reminder after an unreadable reply are the endpoint judge's. A request is open if neither the
verdict cache nor a batch answers it. Open requests that no batch has are sent, in a batch; one that failed for a reason
that may pass, expired, or was cut off by thinking is given up after three batches.

A small file beside the results lists the batches: which requests, as which file and batch at the endpoint. It is
written before and after a batch is begun, so that the same command goes on where a killed one stopped, and pays for no
request twice. It holds no key and no text. A request is named by the beginning of its key in the verdict cache.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from culture_tasks.errors import DataError, JudgeUnreachableError, SettingsError
from culture_tasks.judges.batch.batch_endpoint import BatchEndpoint, batch_files, read_results
from culture_tasks.judges.cache import VerdictCache
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
from culture_tasks.judges.grading import Grading, open_requests
from culture_tasks.judges.parameters import limit_of
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Usage
from culture_tasks.judges.selection import parse_spec
from culture_tasks.plain_files import write_whole
from culture_tasks.settings import Settings

STATE_FILE = "judge_batches.json"
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0
_MOST_TIMES = 3
_LONGEST_REPLY = 32_768  # tokens of a reply without a limit
_NO_REPLY = Problem("the batch ended without a reply", retry=True)


class _Batch(BaseModel):
    names: list[str]  # the requests
    sampling: dict[str, dict[str, Any]]  # sampling parameters as sent, by rubric
    file: str  # the uploaded file
    id: str | None = None  # the batch; None before it was begun


class _State(BaseModel):
    format: Literal[2] = 2
    batches: list[_Batch] = []


class _Reply(NamedTuple):
    result: Completion | Problem  # the completion, or why there is none
    sampling: Mapping[str, Mapping[str, Any]]  # the sampling parameters of the batch by rubric, as sent
    times: int  # how many batches the request was in that have ended
    usage: Usage  # tokens of earlier completions, which thinking had cut off


def state_file(results: Sequence[Path]) -> Path:
    """Returns the file that lists the batches of result files, in a folder above all of them; there may be one."""
    folders = dict.fromkeys(folder for path in results for folder in path.resolve().parents)
    files = [file for folder in folders if (file := folder / STATE_FILE).is_file()]
    if len(files) > 1:
        raise DataError(
            f"rejudge: batches of these results were sent by different commands ({files[0]} and {files[1]}). Name the "
            "results as before, apart, or delete a file to forget what was sent."
        )
    return files[0] if files else Path(os.path.commonpath([path.resolve().parent for path in results])) / STATE_FILE


class BatchJudge(EndpointJudge):
    """Notes the items to grade; the first verdict that is waited for has all of them graded in batches.

    ``say`` prints a line; ``resend`` sends requests again whose results can't be fetched.
    """

    def __init__(
        self, settings: Settings, results: Sequence[Path], *, say: Callable[[str], None], resend: bool = False
    ) -> None:
        spec = parse_spec(settings.judge) if settings.judge else None
        if spec is None or spec.backend != "openai" or settings.cache_file is None:
            raise SettingsError(
                f"rejudge: batches need a judge behind an endpoint (--judge openai:<model>, found {spec or 'none'}), "
                "and the verdict cache (no CULTURE_JUDGE_CACHE=off)."
            )
        super().__init__(spec.model, settings)
        self._say, self._resend = say, resend
        self._file = state_file(results)
        self._content: bytes | None = None  # of the file, as this command has read or written it
        self._batches = self._read()
        self._batch_endpoint = BatchEndpoint(self.address, settings)
        self._cache = VerdictCache(settings.cache_file)
        self._gradings: list[Grading] = []
        self._collected: set[str | None] = set()
        self._replies: dict[str, _Reply] = {}  # by the requests' names
        self._requested: set[str] = set()
        self._used: set[str] = set()  # names of the requests whose completions are in the cache
        self._lost: set[str] = set()  # names of requests that were paid for and whose results can't be fetched

    def submit(self, rubric: Rubric, item: JudgeItem) -> Grading:
        """Notes an item."""
        self._gradings.append(Grading(self.grader, rubric, item, lambda _: self._grade_all()))
        return self._gradings[-1]

    def finish(self) -> None:
        """Removes the file, once the verdicts are in result files; keeps it where others may still need it."""
        if self._requested.issuperset(name for batch in self._batches if batch.id for name in batch.names):
            self._save([])
        else:
            self._say(
                f"{self._file} is kept: it lists batches of other samples, judges or settings. Run the command with "
                "those to use their results, or delete the file."
            )

    def close(self) -> None:
        """Closes the cache and all connections."""
        super().close()
        self._batch_endpoint.close()
        self._cache.close()

    def _grade_all(self) -> None:
        """Collects and sends batches until each verdict is there, or no more may be spent."""
        pause = _FIRST_PAUSE
        while open_ := self._open_requests():
            under_way = [batch for batch in self._batches if batch.id not in self._collected]
            under_way = [batch for batch in under_way if not open_.keys().isdisjoint(batch.names)]
            running = [batch for batch in under_way if not self._collect(batch)]
            if running:
                requests = sum(len(batch.names) for batch in running)
                self._say(f"{len(running)} batches are under way, with {requests:,} requests")
                time.sleep(pause)
                pause = min(1.5 * pause, _LONGEST_PAUSE)
            elif not under_way:
                if not self._send([grading for name, grading in open_.items() if name not in self._lost]):
                    break
                pause = _FIRST_PAUSE
        if lost := open_.keys() & self._lost:
            raise JudgeUnreachableError(
                f"rejudge: {len(lost):,} requests are in batches that have ended and whose results can't be fetched, "
                "so they aren't sent again. The same command tries once more. With --resend, it sends them again, and "
                "they are paid for a second time."
            )
        if open_ and self.budget is not None:
            self.budget.refuse(len(open_))
            for grading in self._gradings:
                grading.abandon(self.budget.reason)

    def _open_requests(self) -> dict[str, Grading]:
        """Returns one grading for each request that neither a batch nor the cache answers, by its name."""
        gradings = [grading for grading in self._gradings if grading.result is None]
        return {_name_of(first): first for first, *_ in open_requests(gradings, self._cache, self._answer).values()}

    def _answer(self, grading: Grading, kept: Answer | None) -> Answer | None:
        """Returns a batch's answer to a request, or else the cache's; None where it is open."""
        name = _name_of(grading)
        self._requested.add(name)
        if (reply := self._replies.get(name)) is None:
            return kept
        result, may_go_on = reply.result, reply.times < _MOST_TIMES
        if isinstance(result, Problem):
            return kept or (None if result.retry and may_go_on else Answer(result, attempts=reply.times))
        sampling, grader = reply.sampling.get(grading.rubric.name, grading.sampling), self.grader
        if may_go_on and result.is_cut_off_by_thinking and grader.adaptations.grow(sampling, grader.most_tokens):
            return kept
        result = result._replace(usage=reply.usage + result.usage, sampling=sampling)
        if name in self._used:
            return Answer(result)
        self._used.add(name)
        self._cache.put_many([grading.row(result)])
        return Answer(result, attempts=reply.times)

    def _send(self, gradings: list[Grading]) -> bool:
        """Sends requests as batches, as far as the budget pays for them; False if it pays for none."""
        # Requests that begin alike together, for the endpoint's prompt cache.
        gradings.sort(key=lambda grading: grading.rubric.prompt_order(grading.item))
        sampling = {grading.rubric.name: dict(self._sampling_of(grading)) for grading in gradings}
        count = len(self._batches)
        for content, names in batch_files(self._affordable_lines(gradings)):
            batch = _Batch(names=names, sampling=sampling, file=self._batch_endpoint.upload(content))
            self._save([*self._batches, batch])
            self._begin(batch)
        return len(self._batches) > count

    def _affordable_lines(self, gradings: Sequence[Grading]) -> Iterator[tuple[str, bytes]]:
        """Yields names and bodies of requests, as long as the budget pays for the most that they can cost."""
        cost = 0.0
        for grading in gradings:
            sampling = self._sampling_of(grading)
            body = grading.body(sampling)
            if self.budget is not None:  # a token has at least one byte
                most = Usage(len(body), limit_of(sampling) or _LONGEST_REPLY).in_a_batch
                cost += self.budget.cost(self.grader.model, most)
                if cost > self.budget.left:
                    return
            yield _name_of(grading), body

    def _sampling_of(self, grading: Grading) -> Mapping[str, Any]:
        return self.grader.adaptations.apply(grading.sampling, self.grader.most_tokens)

    def _begin(self, batch: _Batch) -> str:
        """Begins a batch, unless it was begun before a kill; returns the endpoint's name of it."""
        batch.id = self._batch_endpoint.begin(batch.file)
        self._save(self._batches)
        self._say(f"sent batch {batch.id}: {len(batch.names):,} requests")
        return batch.id

    def _collect(self, batch: _Batch) -> bool:
        """Takes the results of a batch; False where it has not ended."""
        status = self._batch_endpoint.status(batch.id or self._begin(batch))
        if not status.has_ended:
            return False
        if status.name == "failed" and not status.outputs:
            self._save([other for other in self._batches if other is not batch])
            raise JudgeUnreachableError(
                f"rejudge: the endpoint refused batch {batch.id}: {status.error or 'no reason given'}. None of it was "
                "answered. Fix the cause, or wait until other batches have ended, and run the command again."
            )
        results: dict[str, Completion | Problem] = {}
        for file in status.outputs:
            results |= read_results(self._batch_endpoint.content(file), self.address.secrets)
        answers = sum(isinstance(result, Completion) or result.status == 200 for result in results.values())
        is_counted = status.answered + status.failed > 0 or status.name != "completed"
        missing = set(batch.names) - results.keys()
        if answers < (status.answered if is_counted else len(batch.names)) and not self._resend:
            self._lost |= missing
        for name in batch.names:
            self._take(name, results.get(name), batch)
        self._collected.add(batch.id)
        self._say(
            f"batch {batch.id} is {status.name}: {len(batch.names):,} requests, {len(missing):,} without a result"
        )
        return True

    def _take(self, name: str, result: Completion | Problem | None, batch: _Batch) -> None:
        """Takes the result of a line, in the order of the batches; None where the batch has ended without one."""
        before = self._replies.get(name, _Reply(_NO_REPLY, {}, times=0, usage=Usage()))
        usage = before.usage + (before.result.usage if isinstance(before.result, Completion) else Usage())
        if isinstance(result, Completion):
            result = result._replace(usage=result.usage.in_a_batch)
            if self.budget is not None:
                self.budget.spend(self.grader.model, result.usage)
        self._replies[name] = _Reply(result or _NO_REPLY, batch.sampling, before.times + 1, usage)

    def _read(self) -> list[_Batch]:
        try:
            self._content = self._on_disk()
            return _State.model_validate_json(self._content).batches if self._content else []
        except (OSError, ValidationError) as error:
            raise DataError(
                f"{self._file}: can't be read ({str(error).splitlines()[0]}). It says which batches were sent: restore "
                "it, or delete it to send them, and pay for them, again."
            ) from None

    def _on_disk(self) -> bytes | None:
        return self._file.read_bytes() if self._file.exists() else None

    def _save(self, batches: list[_Batch]) -> None:
        if self._on_disk() != self._content:
            raise DataError(
                f"{self._file}: another command has changed it. Nothing more is sent, so that nothing is paid for "
                "twice: wait for the other command to end, and run this one again."
            )
        self._batches = batches
        self._content = _State(batches=batches).model_dump_json(indent=1).encode() if batches else None
        if self._content is None:
            self._file.unlink(missing_ok=True)
        else:
            write_whole(self._file, self._content.decode())


def _name_of(grading: Grading) -> str:
    return grading.key.hex()[:32]
