import csv
import json
import re

import numpy as np
import pytest
from support.scripted_judge import ScriptedJudge

from culture_tasks.cli.main import main
from culture_tasks.judges.rubric.verdicts import Verdict

WORDS = ["tea", "rice", "boat", "moon", "lamp", "song", "drum", "silk", "gate", "pine"]
FILES = {"agreement.json", "agreement.txt", "ratings.csv"}


def kind(item):
    """Rates one above the number of words of the response; fails where the response says so."""
    if item.response in ("refused", "failed", "unparsable"):
        return Verdict(item.response, error="=asked\nfor it")
    rating = float(min(10, len(item.response.split()) + 1))
    return Verdict("scored", rating, endpoint="http://localhost:1/v1")


def care_rows(questions=30, responses=4):
    rng = np.random.default_rng(0)
    categories = ["Cultural entities", "Opinion", "Social norms", "Cultural commonsense", "Literacy"]
    for number in range(questions * responses):
        right, question = int(rng.integers(1, 11)), number // responses
        yield {
            "question": f"Which ten words, number {question}?",
            "answer": " ".join(WORDS),
            "response": " ".join(WORDS[:right]),
            "human_rating": int(np.clip(right + rng.integers(-1, 2), 1, 10)),
            "source": "LLM",
            "cul_type": categories[question % 5],
            "associated_culture": f"Native ({('Chinese', 'Arab', 'Japanese')[question % 3]})",
        }


def write_json(path, rows):
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def read_json(folder):
    return json.loads((folder / "agreement.json").read_text(encoding="utf-8"))


def csv_rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def data(tmp_path):
    return write_json(tmp_path / "rated.json", list(care_rows()))


def run(*arguments):
    return main(["agreement", *map(str, arguments)])


@pytest.fixture
def fakes(monkeypatch):
    """Judges by name."""
    made = {}

    def make(spec, settings):
        made[spec.model] = ScriptedJudge(kind, spec.model)
        return made[spec.model]

    monkeypatch.setattr("culture_tasks.judges.selection.make_judge", make)
    return made


def test_lexical_judge_from_end_to_end(data, tmp_path, capsys):
    assert run("--judge", "lexical", "--data", data, "-o", tmp_path / "out", "--resamples", 50) == 0
    printed = capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert run("--judge", "lexical", "--data", data, "--resamples", 50, "--json") == 0
    assert json.loads(capsys.readouterr().out) == read_json(tmp_path / "out")
    assert re.search(r"overall +all +120 +30 +100\.0%", printed)
    assert re.search(r"paper: GPT-4o +0\.933 +0\.901 +0\.733", printed)
    assert "the paper's figures, not measured here" in printed
    assert re.findall(r"^language +(\w+)", printed, re.MULTILINE)[:3] == ["ar", "ja", "zh"]
    groups = read_json(tmp_path / "out")["comparisons"][0]["groups"]
    assert [group["group"] for group in groups[4:]] == ["entities", "opinion", "norms", "commonsense", "literacy"]
    overall = groups[0]["statistics"]["pearson"]
    assert overall["value"] > 0.9
    assert overall["low"] < overall["value"] < overall["high"]


def test_the_judge_is_named_in_every_output(fakes, data, tmp_path, capsys):
    run("--judge", "openai:kind", "--resamples", 10, "--data", data, "-o", tmp_path / "a")
    assert fakes["kind"].checked == len({(row["question"], row["response"]) for row in care_rows()})
    texts = [(tmp_path / "a" / name).read_text(encoding="utf-8") for name in FILES]
    for text in (capsys.readouterr().out, *texts):
        assert all(name in text for name in ("kind", "http://localhost:1/v1", "care_literacy.v1", "0" * 12))


def test_failures_are_counted_and_never_scored(fakes, tmp_path, capsys):
    rows = [*care_rows(questions=10, responses=1)]
    for row, outcome in zip(rows, ("refused", "failed", "failed", "unparsable"), strict=False):
        row["response"] = outcome
    path = write_json(tmp_path / "rows.json", rows)
    run("--judge", "openai:kind", "--data", path, "-o", tmp_path / "out", "--resamples", 10)
    printed = capsys.readouterr().out
    assert re.search(r"overall +all +6 +6 +60\.0% \(low\)", printed)
    assert "verdicts: 2 failed, 1 refused, 6 scored, 1 unparsable" in printed
    found = read_json(tmp_path / "out")
    overall = found["comparisons"][0]["groups"][0]
    # the judge's rating less people's
    errors = [min(10, len(row["response"].split()) + 1) - row["human_rating"] for row in rows[4:]]
    assert overall["statistics"]["mean_error"]["value"] == pytest.approx(np.mean(errors))
    assert overall["coverage"] == 0.6
    assert found["judges"][0]["outcomes"] == {"refused": 1, "failed": 2, "unparsable": 1, "scored": 6}
    first = csv_rows(tmp_path / "out" / "ratings.csv")[0]
    assert (first["openai:kind outcome"], first["openai:kind error"]) == ("refused", "'=asked\nfor it")  # no formula
    assert run("--judge", "openai:kind", "--data", write_json(path, rows[:3]), "--json") == 0
    [pair] = json.loads(capsys.readouterr().out)["comparisons"]
    assert pair["groups"][0]["statistics"]["pearson"] == {
        "value": None,
        "low": None,
        "high": None,
        "reason": "no response has both ratings",
    }
