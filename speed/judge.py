"""How fast judging is: share of the ideal, against the harnesses' own ways and a bare loop over the same client.

A server of fixed latency L runs in a separate process (``judge_server.py``). With C requests in flight, N requests
take at best N*L/C seconds; the share of the ideal is that time over the measured one. Run on an idle machine::

    python speed/judge.py                  # everything, some minutes
    python speed/judge.py --requests 1000 --memory 0 --documents 64
    python speed/judge.py --real MODEL     # your own server instead, by the same variables as a judge's

A real server says how fast it can be by the bare loop alone, so the two take turns, and their ratio counts. Its replies
should be short and of a form, or a judge that rambles is what is measured: CULTURE_JUDGE_EXTRA_BODY gives the server's
parameter for that.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from judging_runs import lm_eval_way, lmms_eval_way, our_way

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.settings import Settings

_SERVER = Path(__file__).with_name("judge_server.py")


class Timing(NamedTuple):
    """Seconds from the first request to the last verdict, and of processor time of this process."""

    seconds: float
    cpu: float


Cells = tuple[str, ...]
_HEADER = ("way", "in flight", "requests", "seconds", "requests/s", "share of the ideal", "CPU ms/request")
_TURNS_HEADER = ("in flight", "requests", "bare loop/s", "culture-tasks/s", "ratio", "load")
_HARDSHIP_HEADER = ("endpoint", "requests", "seconds", "at best", "ratio", "lost", "sent again")


def row(name: str, in_flight: int, requests: int, latency: float, timing: Timing) -> Cells:
    """Returns one line of the table."""
    ideal = requests * latency / in_flight
    share = f"{ideal / timing.seconds:.1%}" if latency else "-"
    rate = requests / timing.seconds
    counts = str(in_flight), str(requests), f"{timing.seconds:.2f}", f"{rate:.0f}"
    return name, *counts, share, f"{1000 * timing.cpu / requests:.3f}"


@contextmanager
def server(latency: float, *options: str) -> Iterator[str]:
    """Starts a server of this latency in another process, with more options; gives its base URL."""
    command = [sys.executable, str(_SERVER), "--latency", str(latency), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


def items(count: int, first: int = 0) -> list[JudgeItem]:
    """Returns items to grade, all different."""
    references = ("biryani", "hyderabadi biryani", "a rice dish of Hyderabad")
    return [
        JudgeItem(f"What is the dish in picture {number} called?", references, f"It seems to be biryani, {number}.")
        for number in range(first, first + count)
    ]


def timed(work: Callable[[], object]) -> Timing:
    """Measures a function."""
    cpu, began = time.process_time(), time.perf_counter()
    work()
    return Timing(time.perf_counter() - began, time.process_time() - cpu)


def settings(url: str, cache: Path, in_flight: int) -> Settings:
    """Returns settings for the server."""
    return Settings(openai_base_url=url, openai_api_key="none", judge_cache=str(cache), judge_concurrency=in_flight)


def grade(judge: EndpointJudge, judge_items: Sequence[JudgeItem]) -> None:
    """Submits all, then waits for all, and makes sure that all were scored."""
    tickets = [judge.submit(LAVE, item) for item in judge_items]
    outcomes = {ticket.verdict().outcome for ticket in tickets}
    assert outcomes == {"scored"}, outcomes


def ours(url: str, in_flight: int, count: int) -> tuple[Timing, Timing]:
    """Measures this project's judge with its cache on: cold, then warm."""
    with tempfile.TemporaryDirectory() as folder:
        judge = EndpointJudge("judge", settings(url, Path(folder) / "verdicts.sqlite3", in_flight))
        judge_items = items(count)
        judge.check([(LAVE, judge_items[0])])  # as each run begins, and apart from what is measured
        cold = timed(lambda: grade(judge, judge_items))
        warm = timed(lambda: grade(judge, judge_items))
        judge.close()
    return cold, warm


def bare(url: str, in_flight: int, count: int) -> Timing:
    """Measures a loop over the same client that does nothing else: bodies made before, replies not looked at."""
    return post_all(f"{url}/chat/completions", {}, in_flight, [_body(item) for item in items(count)])


def post_all(url: str, headers: Mapping[str, str], in_flight: int, bodies: Sequence[bytes]) -> Timing:
    """Measures how long it takes to post bodies and to read the replies."""
    queue = iter(bodies)

    async def worker(session: aiohttp.ClientSession) -> None:
        for body in queue:
            async with session.post(url, data=body) as response:
                await response.read()
                response.raise_for_status()

    async def all_workers() -> None:
        json_headers = {"Content-Type": "application/json", **headers}
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=json_headers) as session:
            await asyncio.gather(*(worker(session) for _ in range(in_flight)))

    return timed(lambda: asyncio.run(all_workers()))


def _body(item: JudgeItem, model: str = "judge", sampling: Mapping[str, Any] = LAVE.sampling) -> bytes:
    messages = LAVE.messages(item)
    return json.dumps({"messages": messages, "model": model, **sampling}, ensure_ascii=False).encode()


def peak_memory() -> float:
    """Returns the largest memory that this process has had, in megabytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def memory(count: int) -> None:
    """Asks for many verdicts and prints by how many megabytes the process grew at most. To be run in a new process."""
    before = peak_memory()
    with server(0.0) as url, tempfile.TemporaryDirectory() as folder:
        judge = EndpointJudge("judge", settings(url, Path(folder) / "verdicts.sqlite3", 256))
        timing = timed(lambda: grade(judge, items(count)))
        judge.close()
    grown = peak_memory() - before
    print(f"\n{count:,} verdicts in {timing.seconds:.0f} s: {grown:.0f} MB more at the peak, items included")


def speeds(options: argparse.Namespace) -> Iterator[Cells]:
    """Measures all ways, one after the other."""
    with server(options.latency) as url:
        for in_flight in options.in_flight:
            count = min(options.requests, in_flight * options.rounds)
            yield row("bare loop, aiohttp", in_flight, count, options.latency, bare(url, in_flight, count))
            cold, _ = ours(url, in_flight, count)
            yield row("culture-tasks, cache on", in_flight, count, options.latency, cold)
    with server(0.0) as url:
        yield row("bare loop, aiohttp", 256, options.requests, 0.0, bare(url, 256, options.requests))
        cold, warm = ours(url, 256, options.requests)
        yield row("culture-tasks, cache on", 256, options.requests, 0.0, cold)
        yield row("culture-tasks, warm rerun", 256, options.requests, 0.0, warm)


def turns(model: str, in_flight: Sequence[int], rounds: int = 3) -> Iterator[Cells]:
    """Measures a real server: the bare loop and this project take turns, each turn with other prompts."""
    first = 0
    for most in in_flight:
        count = max(24, 2 * most)
        rates: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                cache = {"judge_cache": str(Path(folder) / "verdicts.sqlite3"), "judge_concurrency": most}
                judge = EndpointJudge(model, Settings.from_environment().model_copy(update=cache))
                sampling = judge.identity(LAVE).sampling
                bodies = [_body(item, model, sampling) for item in items(count, first)]
                judge_items = items(count, first + count)
                first += 2 * count
                judge.check([(LAVE, judge_items[0])])
                its = post_all(judge.address.url, judge.address.headers, most, bodies)
                mine = timed(functools.partial(grade, judge, judge_items))
                judge.close()
            for rate, timing in zip(rates, (its, mine), strict=True):
                rate.append(count / timing.seconds)
        ratios = [ours / bare for bare, ours in zip(*rates, strict=True)]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        medians = (f"{statistics.median(rate):.1f}" for rate in rates)
        yield str(most), str(count), *medians, ratio, f"{os.getloadavg()[0]:.1f}"


def hardships(seconds: float, in_flight: int) -> Iterator[Cells]:
    """Measures endpoints that limit the rate or are out: each for about so many seconds."""
    for rate, tells in itertools.product((10.0, 1.0), (False, True)):
        count = max(10, int(rate * seconds))
        with server(0.2, "--rate", str(rate), *(["--tells"] if tells else [])) as url:
            name = f"takes {rate:g}/s, with{'' if tells else 'out'} Retry-After"
            yield _endured(name, url, in_flight, count, least=0.2 + (count - 1) / rate)
    count = int(in_flight * 5 * seconds / 2)
    for share in (0.15, 0.5, 0.9):
        outage = share * seconds
        with server(0.2, "--outage", "1", str(1 + outage)) as url:
            name = f"out for {outage:g} s, with patience of {seconds:g} s"
            least = outage + count * 0.2 / in_flight
            yield _endured(name, url, in_flight, count, least=least, patience=seconds)
    for share in (0.05, 0.2):
        with server(0.2, "--turns-away", str(share)) as url:
            name = f"turns {share:.0%} away by chance, without Retry-After"
            yield _endured(name, url, in_flight, count, least=count * (1 + share) * 0.2 / in_flight)
    with server(0.2) as url:
        yield _shared(url, in_flight, count)


def hardship(name: str, requests: int, seconds: float, least: float, lost: int, again: int) -> Cells:
    """Returns one line of the table of difficult endpoints; least are the seconds that the requests take at best."""
    times = f"{seconds:.1f}", f"{least:.1f}", f"{seconds / least:.2f}"
    return name, str(requests), *times, str(lost), str(again)


def _endured(name: str, url: str, in_flight: int, count: int, *, least: float, patience: float | None = None) -> Cells:
    with tempfile.TemporaryDirectory() as folder:
        judge_settings = settings(url, Path(folder) / "verdicts.sqlite3", in_flight)
        if patience is not None:
            judge_settings = judge_settings.model_copy(update={"judge_patience": patience})
        judge = EndpointJudge("judge", judge_settings)
        began = time.perf_counter()
        verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(count)]]
        seconds = time.perf_counter() - began
        judge.close()
    lost = sum(verdict.outcome != "scored" for verdict in verdicts)
    return hardship(name, count, seconds, least, lost, sum(verdict.attempts for verdict in verdicts) - count)


def _shared(url: str, in_flight: int, count: int) -> Cells:
    """Measures two processes that begin together, with the same items and one cache."""
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder) / "verdicts.sqlite3")
        command = [sys.executable, __file__, "--only-grade", url, cache, str(in_flight), str(count)]
        began = time.perf_counter()
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        outputs = [process.communicate()[0].split() for process in processes]
    lost, attempts = (sum(int(numbers[place]) for numbers in outputs) for place in (0, 1))
    name = "a cache that two processes share; seconds with their start"
    least = count * 0.2 / (2 * in_flight)
    return hardship(name, count, time.perf_counter() - began, least, lost, attempts - count)


def only_grade(url: str, cache: str, in_flight: str, count: str) -> None:
    """Grades items and prints how many verdicts were lost, and how many requests were sent."""
    judge = EndpointJudge("judge", settings(url, Path(cache), int(in_flight)))
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(int(count))]]
    judge.close()
    print(sum(verdict.outcome != "scored" for verdict in verdicts), sum(verdict.attempts for verdict in verdicts))


def comparison(options: argparse.Namespace) -> Iterator[Cells]:
    """Measures whole runs of the harnesses: judged in their own ways and in this project's, on the same documents."""
    documents, latency = options.documents, options.latency
    with server(latency) as url:
        yield row("lm-eval: one by one", 1, 20, latency, Timing(*lm_eval_way(url, 20)))
        for workers in (4, 64):
            timing = Timing(*lmms_eval_way(url, workers, documents))
            yield row(f"lmms-eval llm_judge, {workers} workers", workers, documents, latency, timing)
        for in_flight in (64, 256):
            timing = Timing(*our_way(url, in_flight, documents))
            yield row("culture-tasks, cache on", in_flight, documents, latency, timing)


def show(title: str, rows: Iterator[Cells], header: Cells = _HEADER) -> None:
    """Prints a table as its rows come."""
    print(f"\n{title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for cells in rows:
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", metavar="MODEL", help="measure the server at OPENAI_BASE_URL, and nothing else")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that a reply takes (L)")
    parser.add_argument("--requests", type=int, default=10_000, help="requests (N)")
    parser.add_argument("--rounds", type=int, default=250, help="at most so many requests for each in flight")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[4, 64, 256, 1000], help="requests in flight (C)")
    parser.add_argument(
        "--documents", type=int, default=512, help="documents for the harnesses' own ways; 0 skips them"
    )
    parser.add_argument(
        "--hardships", type=float, default=40.0, help="seconds for each difficult endpoint; 0 skips them"
    )
    parser.add_argument("--memory", type=int, default=100_000, help="verdicts for the memory test; 0 skips it")
    parser.add_argument("--only-memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--only-grade", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.real:
        show(f"{options.real}, a real server", turns(options.real, (1, 8, 64, 256)), _TURNS_HEADER)
        return
    if options.only_memory:
        memory(options.only_memory)
        return
    if options.only_grade:
        only_grade(*options.only_grade)
        return
    show(f"L = {options.latency:g} s", speeds(options))
    if options.hardships:
        lines = hardships(options.hardships, 64)
        show("difficult endpoints, 64 in flight at most", lines, _HARDSHIP_HEADER)
    if options.documents:
        show(f"{options.documents} documents, in runs of the harnesses", comparison(options))
    if options.memory:
        subprocess.run([sys.executable, __file__, "--only-memory", str(options.memory)], check=True)


if __name__ == "__main__":
    main()
