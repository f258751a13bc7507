"""What a build of preference data costs: time and peak memory against the number of rated rows.

    python speed/preferences.py                       # 10,000 and 100,000 rows
    python speed/preferences.py --rows 1000000 --folder /scratch

Rows are as long as CARE's, ten responses a question, in Chinese. Beside each command stands the plain reading of the
same file, row by row into memory, in a separate process too: ratios say what checking, pairing, comparing with
tests and writing add to it. The tests are the toy data of this repository, as many questions as there are for each of
CARE's languages when --tests says so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonlines

_CATEGORIES = ("Cultural entities", "Opinion", "Social norms", "Cultural commonsense", "Literacy")
_SIGNS = "茶客人先山水火木金土日月年時分上下左右中大小春夏秋冬東西南北街市村家門路橋河海天地風雨"
_KINDS = ("plain", "build", "stat")


def main() -> None:
    """Runs the benchmark and prints a table."""
    options = _options()
    if options.measure is not None:
        _measure(options.measure, options.kind)
        return
    print("| rows | file | what | time | CPU time | peak memory | of plain reading |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | --- |")
    for rows in options.rows or [10_000, 100_000]:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            _write(Path(folder), rows, options.tests)
            size = (Path(folder) / "rated.jsonl").stat().st_size
            costs = {kind: _child(folder, kind) for kind in _KINDS}
        plain = costs["plain"]
        for kind, cost in costs.items():
            ratio = f"{cost['cpu'] / plain['cpu']:.1f} x CPU time, {cost['peak_mib'] / plain['peak_mib']:.2f} x memory"
            cells = (f"{rows:,}", f"{size / 2**20:.0f} MiB", kind, f"{cost['seconds']:.1f} s", f"{cost['cpu']:.1f} s")
            print(f"| {' | '.join(cells)} | {cost['peak_mib']:.0f} MiB | {ratio} |", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", help="numbers of rated rows (default: 10000 100000)")
    parser.add_argument("--tests", type=int, default=150, help="questions of each test (default: %(default)s, as CARE)")
    parser.add_argument("--folder", help="where the synthetic files go (default: the system's)")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=_KINDS, help=argparse.SUPPRESS)
    return parser.parse_args()


def _child(folder: str, kind: str) -> Mapping[str, float]:
    command = [sys.executable, __file__, "--measure", folder, "--kind", kind]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CULTURE_TASKS_DATA": folder}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    cost: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return cost


def _measure(folder: Path, kind: str) -> None:
    start = time.perf_counter()
    source = folder / "rated.jsonl"
    if kind == "plain":
        rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
        assert rows
    else:
        from culture_tasks.cli.main import main as command

        output = [] if kind == "stat" else ["-o", str(folder / "out")]
        assert command(["preferences", kind, str(source), *output]) == 0
    seconds, cpu = time.perf_counter() - start, time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mib": peak}))


def _write(folder: Path, rows: int, tests: int) -> None:
    rng = random.Random(0)
    with jsonlines.open(folder / "rated.jsonl", "w") as file:
        file.write_all(_rows(rows, rng))
    (folder / "care").mkdir()
    for language, culture in (("Arabic", "Arab"), ("Chinese", "Chinese"), ("Japanese", "Japanese")):
        questions = [
            {
                "question": f"{language} {number} {_text(rng, 24)}？",
                "answer": _text(rng, 60),
                "culture_type": _CATEGORIES[number % 5],
                "associated_culture": f"Native ({culture})",
                "geographic_scope": "Nationwide",
            }
            for number in range(tests)
        ]
        path = folder / "care" / f"{language}-test.json"
        path.write_text(json.dumps(questions, ensure_ascii=False), encoding="utf-8")


def _rows(rows: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    for number in range(rows // 10):
        question, answer = f"第{number}問、{_text(rng, 24)}？", _text(rng, 120)
        for place in range(10):
            yield {
                "question": question,
                "answer": answer,
                "response": answer if place == 0 else _text(rng, 300),
                "human_rating": rng.randint(1, 10),
                "source": "human" if place == 0 else f"model {place}",
                "cul_type": _CATEGORIES[number % 5],
                "associated_culture": "Native (Chinese)" if number % 2 else "Foreign",
            }


def _text(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(_SIGNS, k=length))


if __name__ == "__main__":
    main()
