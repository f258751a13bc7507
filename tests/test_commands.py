"""The commands of the pages run as they stand there, outside the checkout, with toy models and a judge on loopback.

A block runs if ``<!-- runs -->`` stands above it. ``make newcomer`` makes a fresh environment, whose folder of programs
``CULTURE_TASKS_PROGRAMS`` names, and runs these tests with it; without one they are skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import tiny_models
from support.grading_server import grading_server

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = os.environ.get("CULTURE_TASKS_PROGRAMS", "")

BLOCK = re.compile(r"^<!-- runs -->\n```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)

ON_A_CPU = {
    "README.md": (
        ("pretrained=OpenGVLab/InternVL3_5-8B-HF", "pretrained=OpenGVLab/InternVL3_5-8B-HF,device=cpu,device_map=cpu"),
    ),
    "docs/tutorial.md": (
        (
            "--model vllm --model_args model=$MODEL,max_model_len=20480",
            "--model internvl_hf --model_args pretrained=$MODEL,device=cpu,device_map=cpu",
        ),
        (
            "--model vllm --model_args pretrained=$MODEL,max_model_len=20480",
            "--model hf --model_args pretrained=$MODEL-text",
        ),
        ("--batch_size 256", "--batch_size 1"),
        ("--batch_size auto", "--batch_size 8"),
    ),
    "docs/preferences.md": (
        ("geyang627/CARE", "ratings.jsonl"),
        ("dpo.lora.yaml", "dpo.lora.yaml --use_cpu true --bf16 false --dtype float32"),
    ),
}
"""What a machine without a GPU must be told otherwise. All else runs to the letter: a model's name is a folder here."""

EXPECTED = {
    "README.md": {"culturalvqa", "care"},
    "docs/tutorial.md": {
        *("culturalvqa", "cedar_multimodal", "crosscult_diagnostic", "worldcuisines", "cvqa"),
        *("care", "cedar_text", "blend_en", "culturalbench_easy", "culturalbench_hard", "normad_rule"),
    },
    "docs/preferences.md": {"care_zh_3"},
}
"""Tasks that must be in the results."""


def script(page: str) -> str:
    """Returns the commands of a page."""
    commands = "\n".join(BLOCK.findall((ROOT / page).read_text("utf-8")))
    for real, toy in ON_A_CPU[page]:
        assert real in commands, f"{page} no longer has {real!r}"
        commands = commands.replace(real, toy)
    return f"set -euo pipefail\n{commands}"


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_models.make_tiny_lm(folder / "lm")
    tiny_models.make_tiny_vlm(folder / "vlm")
    return folder


@pytest.fixture
def elsewhere(tmp_path, models) -> Path:
    """A folder in which the models' names are toys, ``data`` the bundled data, and ``ratings.jsonl`` rated rows."""
    for name, toy in (
        ("OpenGVLab/InternVL3_5-8B-HF", "vlm"),
        ("Qwen/Qwen2.5-7B-Instruct", "lm"),
        ("Qwen/Qwen2.5-0.5B-Instruct", "lm"),
        *(
            (f"Qwen/Qwen3-VL-{size}-Instruct{kind}", toy)
            for size in ("4B", "8B")
            for kind, toy in (("", "vlm"), ("-text", "lm"))
        ),
    ):
        place = tmp_path / "here" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(models / toy)
    (tmp_path / "here" / "data").symlink_to(ROOT / "examples" / "data")
    rows = [
        {
            "question": f"第{n}个问题是什么？",
            "answer": "好",
            "response": response,
            "human_rating": rating,
            "language": "zh",
        }
        for n in range(20)
        for response, rating in (("好", 9), ("不好", 2))
    ]
    (tmp_path / "here" / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return tmp_path / "here"


def environment(url: str, home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    return kept | {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "OPENAI_BASE_URL": url,
        "CULTURE_TASKS_DATA": "data",
        "CULTURE_JUDGE_CACHE": str(home / "verdicts.sqlite3"),
    }


@pytest.mark.skipif(not PROGRAMS, reason="make newcomer runs it in a fresh environment")
@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("page", ON_A_CPU)
def test_the_commands_of_a_page_run(page, elsewhere, tmp_path):
    with grading_server() as url:
        done = subprocess.run(
            ["bash", "-c", script(page)],
            cwd=elsewhere,
            env=environment(url, tmp_path),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
    report = json.loads((elsewhere / "report" / "report.json").read_text("utf-8"))
    assert EXPECTED[page] <= {run["task"] for run in report["runs"].values()} | set(report["units"])
    assert (elsewhere / "report" / "report.html").is_file()
    graded = [run for run in report["runs"].values() if run["settings"]["judges"]]
    assert graded
    assert all(run["scored"] == run["items"] for run in graded)
