"""Files that tests compare with; ``UPDATE_GOLDEN=1 pytest tests/report`` renews them."""

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "report" / "golden"


def golden(name: str, text: str) -> None:
    """Compares a text with a golden file."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
