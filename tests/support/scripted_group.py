"""A script that plays a group which makes a culture like CARE: its decisions, and the sheets of all steps.

``decide PROJECT`` enters people, and ``fill SHEETS SAVED`` fills in the CSV files that weren't sent back yet.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping
from pathlib import Path

from scripted_people import fill_in

_CATEGORIES = ("Cultural entities", "Opinion", "Social norms", "Cultural commonsense", "Literacy")
_PEOPLE = '[people]\np1 = ["write", "check", "rate"]\np2 = ["write", "check", "rate"]\np3 = ["rate_again"]\n'


def decide(project: Path) -> None:
    """Enters the people, and what a native speaker is called."""
    path = project / "culture.toml"
    text = path.read_text("utf-8").replace("[people]\n", _PEOPLE, 1).replace('people = ""', 'people = "Korean"', 1)
    path.write_text(text, "utf-8")


def answer(row: Mapping[str, str]) -> dict[str, str]:
    """Fills in a row of any step; the same texts give the same answer."""
    question = row.get("Question") or f"질문 {zlib.crc32(row['[row]'].encode())}?"
    number = zlib.crc32(question.encode())
    facts = {"category": _CATEGORIES[number % 5], "scope": "A whole country", "culture": "Ours"}
    if "rating" in row:
        return {"rating": str(1 + number % 10)}
    if "related" in row:
        return {"related": "yes", "right": "yes", **facts}
    return {"question": question, "answer": f"답 {number}", **facts}


def main() -> None:
    """Does what the command line asks for."""
    action, first, *arguments = sys.argv[1:]
    if action == "decide":
        decide(Path(first))
        return
    saved = Path(arguments[0])
    saved.mkdir(exist_ok=True)
    for sheet in sorted(Path(first).glob("*.csv")):
        if not (saved / sheet.name).exists():
            fill_in(sheet, answer, saved / sheet.name)


if __name__ == "__main__":
    main()
