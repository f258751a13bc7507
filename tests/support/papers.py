"""What the papers print, and how our prompts are compared with it."""

from __future__ import annotations

import re
from pathlib import Path

PAPERS = Path(__file__).parents[1] / "fixtures" / "papers"


def printed(paper: str, place: str) -> str:
    """Returns what a paper prints in a figure, table or appendix; the first two lines of the file name the source."""
    source, blank, text = (PAPERS / paper / f"{place}.txt").read_text(encoding="utf-8").split("\n", 2)
    assert source
    assert not blank
    return text


def table_rows(paper: str, place: str) -> list[list[str]]:
    """Returns the rows with numbers of a table, cell by cell, without marks of bold and italics."""
    lines = re.sub(r"</?[a-z]+>", "", printed(paper, place)).splitlines()
    rows = [[cell.strip() for cell in (line.strip().split("\t") if "\t" in line else line.split())] for line in lines]
    return [row for row in rows if row and re.search(r"^[-–—]$|\d%?$", row[-1]) and len(row) > 3]


def wording(text: str) -> str:
    """Returns a text without what extraction from a PDF changes: white space, Markdown's escapes and fences.

    The text of the papers shows ``**Accuracy**`` as bold text whose asterisks are escaped.
    """
    text = text.replace("**\\*\\*", "**").replace("\\*\\***", "**")
    return " ".join(re.sub(r"^```$", "", text, flags=re.MULTILINE).split())
