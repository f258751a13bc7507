"""How ``doctor`` and ``selftest`` show their findings: one screen, or JSON."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping

from culture_tasks import __version__
from culture_tasks.cli.options import Colour, coloured, print_json
from culture_tasks.selftest.findings import Finding, State
from culture_tasks.text_tables import printable

_COLOURS: Mapping[State, Colour] = {"ok": "green", "note": "yellow", "fix": "red"}


def show_findings(findings: Iterable[tuple[str, Finding]], *, title: str, width: int, as_json: bool) -> int:
    """Prints findings as they come, each with its subject, or all as JSON.

    Args:
        findings: What was looked at, in a word or two, and what was found.
        title: The first line.
        width: Columns of the subjects.
        as_json: Whether to print JSON.

    Returns:
        Exit status: 1 if something has to be fixed.
    """
    if as_json:
        listed = [{"subject": subject, **dataclasses.asdict(finding)} for subject, finding in findings]
        well = all(finding["state"] != "fix" for finding in listed)
        print_json({"version": __version__, "well": well, "findings": listed})
        return 0 if well else 1
    from tqdm import tqdm  # whose bar leaves room for what it writes

    print(title)
    columns = shutil.get_terminal_size(fallback=(100, 24)).columns
    states: Counter[str] = Counter()
    for subject, finding in findings:
        states[finding.state] += 1
        beginning = f"{finding.state:<4}  {subject:<{width}}  "
        lines = [(finding.found, beginning), (finding.remedy, f"{'':{len(beginning)}}-> ")]
        for text, indent in lines if finding.remedy else lines[:1]:
            after = " " * len(indent)
            wrapped = textwrap.wrap(printable(text), columns, initial_indent=indent, subsequent_indent=after)
            shown = "\n".join(wrapped)
            tqdm.write(coloured(shown[:4], _COLOURS[finding.state]) + shown[4:], file=sys.stdout)
            sys.stdout.flush()
    print(f"{states['fix']} to fix, {states['note']} to note, {states['ok']} ok")
    return 1 if states["fix"] else 0
