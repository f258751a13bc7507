"""Files that tests compare with; ``UPDATE_GOLDEN=1 pytest tests/report`` renews them."""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "report" / "golden"


def golden(name: str, text: str) -> None:
    """Compares a text with a golden file, numbers to twelve digits: the last ones differ between processors."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert _rounded(text) == _rounded(path.read_text(encoding="utf-8"))


def _rounded(text: str) -> str:
    return re.sub(r"\d+\.\d{12,}(e-\d+)?", lambda number: str(float(f"{float(number[0]):.12g}")), text)
