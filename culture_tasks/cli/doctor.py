"""``culture-tasks doctor``: what a run needs of this machine, and what to do where something is missing."""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import shutil
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from culture_tasks import __version__
from culture_tasks.text_tables import printable

if TYPE_CHECKING:
    from culture_tasks.cli.main import Commands


def register(commands: Commands) -> None:
    """Adds the subcommand."""
    parser = commands.add_parser(
        "doctor",
        description="Looks at packages, harnesses, judge, data, GPU, fonts, caches and disk. The judge is asked one "
        "question, as before a run. Nothing is downloaded. Exit status 1: something has to be fixed.",
    )
    parser.add_argument("--no-judge", action="store_true", help="don't ask the judge, which may cost something")
    parser.add_argument("--read-data", action="store_true", help="read and check all data, downloading what is missing")
    parser.add_argument(
        "--deep",
        action="store_true",
        help="build each harness's index of tasks and look for ours in it (half a minute)",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(handler=_examine)


def _examine(options: argparse.Namespace) -> int:
    from culture_tasks.benchmarks.registry import benchmarks
    from culture_tasks.cli.installation import examine

    findings = examine(ask_judge=not options.no_judge, read_data=options.read_data, deep=options.deep)
    if options.json:
        listed = [dataclasses.asdict(finding) for finding in findings]
        well = all(finding["state"] != "fix" for finding in listed)
        content = {"version": __version__, "well": well, "findings": listed}
        print(json.dumps(content, ensure_ascii=False, indent=1))
        return 0 if well else 1
    print(f"culture-tasks {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    columns = shutil.get_terminal_size(fallback=(100, 24)).columns
    width = max(len(benchmark.title) for benchmark in benchmarks().values())
    states: Counter[str] = Counter()
    for finding in findings:
        states[finding.state] += 1
        beginning = f"{finding.state:<4}  {finding.subject:<{width}}  "
        print(_filled(finding.found, beginning, columns), flush=True)
        if finding.remedy:
            print(_filled(finding.remedy, f"{'':{len(beginning)}}-> ", columns), flush=True)
    print(f"{states['fix']} to fix, {states['note']} to note, {states['ok']} ok")
    return 1 if states["fix"] else 0


def _filled(text: str, beginning: str, columns: int) -> str:
    lines = textwrap.wrap(printable(text), columns, initial_indent=beginning, subsequent_indent=" " * len(beginning))
    return "\n".join(lines)
