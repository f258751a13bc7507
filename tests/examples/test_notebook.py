"""The notebook of the Python API runs with the toys."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_notebook_runs_and_shows_scores(tmp_path, monkeypatch, tiny_lm, tiny_vlm):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "lm").symlink_to(tiny_lm)
    (tmp_path / "models" / "vlm").symlink_to(tiny_vlm)
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(ROOT / "examples" / "data"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(ROOT / "examples" / "python_api.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [
        output["data"]["text/plain"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    assert any("care" in text and "culturalvqa" in text for text in shown)
    assert (tmp_path / "report" / "report.html").is_file()


def test_the_notebook_is_kept_without_outputs():
    notebook = nbformat.read(ROOT / "examples" / "python_api.ipynb", as_version=4)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
