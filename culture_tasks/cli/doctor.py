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
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(handler=_examine)


def _examine(options: argparse.Namespace) -> int:
    from culture_tasks.installation import examine

    findings = examine(ask_judge=not options.no_judge, read_data=options.read_data)
    states = Counter(finding.state for finding in findings)
    if options.json:
        listed = [dataclasses.asdict(finding) for finding in findings]
        content = {"version": __version__, "well": not states["fix"], "findings": listed}
        print(json.dumps(content, ensure_ascii=False, indent=1))
        return 1 if states["fix"] else 0
    print(f"culture-tasks {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    columns = shutil.get_terminal_size(fallback=(100, 24)).columns
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        beginning = f"{finding.state:<4}  {finding.subject:<{width}}  "
        print(_filled(finding.found, beginning, columns))
        if finding.remedy:
            print(_filled(finding.remedy, f"{'':{len(beginning)}}-> ", columns))
    print(f"{states['fix']} to fix, {states['note']} to note, {states['ok']} ok")
    return 1 if states["fix"] else 0


def _filled(text: str, beginning: str, columns: int) -> str:
    lines = textwrap.wrap(printable(text), columns, initial_indent=beginning, subsequent_indent=" " * len(beginning))
    return "\n".join(lines)
