import json

import pytest
from support.stored_runs import RUNS, write

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def contents(folder):
    """The lines of all files below a folder, to nine digits, and without hashes, which have addresses of images."""

    def read(line):
        content = json.loads(line, parse_float=lambda number: round(float(number), 9), parse_constant=str)
        return {name: value for name, value in content.items() if name not in ("doc_hash", "task_hashes")}

    files = {path.relative_to(folder): path.read_text("utf-8") for path in folder.rglob("*.json*")}
    return {
        path: [read(text)] if path.suffix == ".json" else [read(line) for line in text.splitlines()]
        for path, text in files.items()
    }


def test_stored_runs_are_what_the_harnesses_write(tmp_path):
    write(tmp_path)
    new, stored = contents(tmp_path), contents(RUNS)
    assert new.keys() == stored.keys()
    for path, content in new.items():
        assert content == stored[path], f"{path} differs: make stored-runs"
