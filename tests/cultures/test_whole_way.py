"""Two new cultures go the whole way by commands, from an empty folder to a report beside published rows.

One is like CARE and written from right to left, one like CulturalVQA and about images. Their 24 rows are made by people
who are honest, careless, contradict themselves, or stop; an endpoint on loopback responds and grades.
"""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.cultures import cultures_in
from support.fault_server import Behaviour, FaultServer, Request, says
from support.grading_server import grade
from support.scripted_people import SKIP, fill_in

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
CATEGORIES = ("Cultural entities", "Opinion", "Social norms", "Cultural commonsense", "Literacy")

ISFAHAN = {
    "people": 'amin = ["write", "check", "rate"]\nbita = ["write", "check", "rate"]\ncyrus = ["rate_again"]\n',
    'people = ""': 'people = "Persian"',
    "questions_per_writer = 15": "questions_per_writer = 8",
    "test_per_category = 30": "test_per_category = 2",
    "second_per_category = 15": "second_per_category = 2",
    "near_duplicates = ": "# near_duplicates = ",
    'licence = ""': 'licence = "CC BY 4.0"',
}
NEPAL = {
    "people": "dawa = []\neshwar = []\nfiruza = []\n",
    "answerers = 3": "answerers = 2",
    "rated_questions = 50": "rated_questions = 2",
    "raters = 5": "raters = 2",
}


def respond(seen: Request) -> Behaviour:
    """Answers a question that it is asked, and grades an answer that it is shown."""
    text = str(seen.body["messages"])
    asked = re.search(r"پرسش \w+ \d+", text)
    return says(f"{seen.body['model']} می‌گوید {asked.group()}") if asked and "Rating" not in text else grade(seen)


class Commands:
    """Commands in a folder of a user with this environment: in this process, those of a harness in another."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, **environment: str) -> None:
        self.folder, self.patch = folder, patch
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(folder)

    def __call__(self, *words: object, status: int = 0) -> str:
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            assert main([*map(str, words)]) == status, said.getvalue()
        return said.getvalue()

    def harness(self, module: str, *words: str) -> None:
        """Runs a harness on the first documents of its tasks."""
        limits = ("--log_samples", "--output_path", "results", "--limit", "4")
        done = subprocess.run(
            [sys.executable, "-m", module, *words, *limits], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-5000:]

    def decide(self, project: str, **decisions: str) -> None:
        """Edits the configuration of a project, as the group does."""
        path = self.folder / project / "culture.toml"
        text = path.read_text("utf-8").replace("[people]\n", f"[people]\n{decisions.pop('people')}", 1)
        for before, after in decisions.items():
            assert before in text
            text = text.replace(before, after, 1)
        path.write_text(text, "utf-8")

    def sheets(self, project: str, step: str) -> dict[str, Path]:
        """Writes the sheets of a step, and returns the CSV file of each person."""
        self("culture", "sheets", project, "--step", step, "-o", f"out/{project}-{step}")
        return {path.name.split("-")[1]: path for path in (self.folder / f"out/{project}-{step}").glob("*.csv")}

    def collect(self, project: str, *paths: Path, status: int = 0) -> str:
        """Collects what came back."""
        return self("culture", "collect", project, *paths, status=status)


@pytest.fixture
def user(tmp_path, monkeypatch, tiny_lm, tiny_vlm):
    monkeypatch.setattr("culture_tasks.cultures.project.benchmarks", benchmarks)  # in place of the toy
    server = FaultServer()
    server.decide = respond
    (tmp_path / "lm").symlink_to(tiny_lm)
    (tmp_path / "vlm").symlink_to(tiny_vlm)
    yield Commands(
        tmp_path,
        monkeypatch,
        OMP_NUM_THREADS="1",
        PYTHONPATH=str(ROOT / "tests"),
        OPENAI_BASE_URL=server.url,
        OPENAI_API_KEY="sk-never-written",
        CULTURE_TASKS_DATA=str(ROOT / "examples" / "data"),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        CULTURE_JUDGE_CACHE=str(tmp_path / "verdicts.sqlite3"),
    )
    server.close()


def make_isfahan(user: Commands) -> None:
    user("culture", "new", "isfahan", "--like", "care", "--language", "fa", "--place", "IR")
    user.decide("isfahan", **ISFAHAN)
    labels = user.folder / "isfahan" / "labels.json"
    labels.write_text(labels.read_text("utf-8").replace('"Yes": ""', '"Yes": "بله"'), "utf-8")
    sheets, count = user.sheets("isfahan", "write"), iter(range(100))

    def question(person: str, number: int) -> dict[str, str]:
        category = CATEGORIES[number % 5]
        facts = {"category": category, "scope": "A whole country", "culture": "Ours"}
        return {"question": f"پرسش {person} {number}", "answer": f"پاسخ {person} {number}", **facts}

    fill_in(sheets["amin"], lambda _: question("amin", next(count)))  # honest
    fill_in(sheets["bita"], lambda _: question("bita", n) if (n := next(count)) < 14 else None)  # stops after six
    assert "8 " in user.collect("isfahan", *sheets.values())
    # The same file again changes nothing; another wording of a row that is in is a conflict, and isn't taken.
    once_more = fill_in(sheets["amin"], lambda row: {"answer": f"{row['answer']}!"}, user.folder / "edited.csv")
    assert "conflict" in user.collect("isfahan", sheets["amin"], once_more, status=1)

    for path in (sheets := user.sheets("isfahan", "check")).values():
        fill_in(
            path,
            lambda row: (
                {"related": "no"}
                if "bita 8" in row["Question"]
                else {
                    "related": "yes",
                    "category": CATEGORIES[int(row["Question"].split()[-1]) % 5],
                    "scope": "A whole country",
                    "culture": "Ours",
                    "right": "yes",
                }
            ),
        )
    user.collect("isfahan", *sheets.values())
    assert "has no rows yet" in user("culture", "sheets", "isfahan", "--step", "rate")
    for model in ("small", "large"):
        user("culture", "draft", "isfahan", "--step", "respond", "--model", f"openai:{model}")
        assert "0 rows saved" in user("culture", "draft", "isfahan", "--step", "respond", "--model", f"openai:{model}")

    sheets = user.sheets("isfahan", "rate")
    page = sheets["amin"].with_suffix(".html").read_text("utf-8")
    assert 'dir="rtl"' in page
    assert "openai" not in page

    def rating(row: dict[str, str], low: int) -> dict[str, str]:
        return {"rating": str(low + sum(map(ord, row["Response"])) % 4)}

    for path in sheets.values():
        fill_in(path, lambda row: rating(row, 5))
    user.collect("isfahan", *sheets.values())
    sheets = user.sheets("isfahan", "rate_again")
    dice = np.random.default_rng(0)
    careless = fill_in(sheets["cyrus"], lambda _: {"rating": str(dice.integers(1, 11))}, user.folder / "careless.csv")
    user.collect("isfahan", careless)
    said = user("culture", "build", "isfahan", status=1)  # the careless rater agrees with nobody
    assert "alpha" in said
    fill_in(sheets["cyrus"], lambda row: rating(row, 5))
    user.collect("isfahan", sheets["cyrus"], status=1)
    assert "replaced" in user("culture", "collect", "isfahan", sheets["cyrus"], "--replace")
    assert "paper" in user("culture", "agree", "isfahan")
    said = user("culture", "build", "isfahan", "--zip", "isfahan.zip")
    assert "care_isfahan" in said


def make_nepal(user: Commands) -> None:
    user("culture", "new", "nepal", "--like", "culturalvqa", "--language", "en")
    user.decide("nepal", **NEPAL)
    rows = [["file", "licence", "source", "people", "consent"]]
    for number in range(10):
        noise = np.random.default_rng(number).integers(0, 255, (120, 160, 3), dtype=np.uint8)
        Image.fromarray(noise).save(user.folder / "nepal" / "images" / f"photo {number}.jpg", comment=b"at home")
        rows.append([f"photo {number}.jpg", "CC BY 4.0", "own", "no", ""])
    with (user.folder / "nepal" / "inputs" / "images.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    seen: set[str] = set()
    answers = {
        "screen": lambda row: {"suitable": "yes", "people": "no"},
        "write": lambda row: (
            SKIP if len(seen) % 9 == 8 and not seen.add(row["[row]"]) else write(row)  # type: ignore[func-returns-value]
        ),
        "answer": lambda _: {"answer": "momo"},
    }

    def write(row: dict[str, str]) -> dict[str, str]:
        seen.add(row["[row]"])
        return {"question": f"What is on plate {len(seen)}?", "answer": "momo", "variants": "mo:mo", "facet": "food"}

    for step, answer in answers.items():
        sheets = user.sheets("nepal", step)
        for path in sheets.values():
            fill_in(path, answer)
        user.collect("nepal", *sheets.values())
    user("culture", "agree", "nepal")
    assert "culturalvqa_nepal" in user("culture", "build", "nepal")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_cultures_go_from_an_empty_folder_to_a_report(user):
    make_isfahan(user)
    make_nepal(user)
    with cultures_in(user.folder / "isfahan", user.folder / "nepal"):
        for name in ("care_isfahan", "culturalvqa_nepal"):
            user("data", "check", name)
        listed = user("tasks")
        assert "care_isfahan" in listed
        assert "culturalvqa_nepal_blind" in listed
        user.harness(
            *("support.run_lm_eval", "run", "--model", "hf", "--model_args", "pretrained=lm"),
            *("--device", "cpu", "--gen_kwargs", "max_gen_toks=8", "--tasks", "care_isfahan,care_ar"),
            "--apply_chat_template",
        )
        user.harness(
            *("support.run_lmms_eval", "--model", "internvl_hf"),
            *("--model_args", "pretrained=vlm,device=cpu,device_map=cpu"),
            *("--batch_size", "1", "--tasks", "culturalvqa_nepal", "--gen_kwargs", "max_new_tokens=8"),
        )
        user("report", "results", "-o", "report", "--formats", "json,markdown")
    report = json.loads((user.folder / "report" / "report.json").read_text("utf-8"))
    units = report["units"]
    assert {"care_isfahan", "culturalvqa_nepal", "care_ar"} <= set(units)
    for name in ("care_isfahan", "culturalvqa_nepal"):
        assert units[name]["cells"]
    text = (user.folder / "report" / "report.md").read_text("utf-8")
    assert "CARE, Isfahan" in text
    assert "ublished" in text
    results = "".join(path.read_text("utf-8") for path in (user.folder / "results").rglob("*results*.json"))
    assert "lave_nepal" in results
    assert "care_rating" in results

    # Nothing else of the culture than its data, and not the key of the endpoint, is in the folder that is shared.
    shared = [path for path in (user.folder / "nepal" / "built").rglob("*") if path.is_file()]
    assert all(b"sk-never-written" not in path.read_bytes() for path in shared)
    assert all(b"at home" not in path.read_bytes() for path in shared)
    table = next((user.folder / "isfahan" / "built" / "data").glob("*.json"))
    table.write_text(f"{table.read_text('utf-8')}\n", "utf-8")
    with cultures_in(user.folder / "isfahan"):
        assert "SHA-256" in user("data", "check", "care_isfahan", status=1)
