"""The table of what a judge is swayed by, from runs, their spot check and its ratings."""

from __future__ import annotations

import json
import random

from support.checked_runs import sample, truth, write_ratings
from support.reports import rows_of
from support.sample_files import write_run

from culture_tasks.cli.main import main
from culture_tasks.people.spotcheck_design import read_rated
from culture_tasks.report.building import Options, build

PROBES = (
    "Length of the response, per doubling",
    "Judge and model of one family",
    "People's rating, per point",
)
WORDS = {"zh": "他们在春节一起吃饺子", "ar": "يأكلون الطعام معا في العيد", "ja": "みんなで一緒にお祝いします"}
MODELS = {"Qwen/Qwen3-8B": "20260101_000000", "toy/gpt-like": "20260102_000000"}


def quality(item):
    """Returns what people think of a response, 5 or 6: far from the ends of the scale, where the judge is biased."""
    return 5 + truth(item) % 2


def report(folder, *, per_doubling=0.0, own_family=0.0, error=0.5):
    """The report of two models' runs of CARE, with a GPT as the judge and its bias by what the arguments name."""
    for model, stamp in MODELS.items():
        samples = {}
        for language in WORDS:
            samples[f"care_{language}"] = own = []
            for number in range(60):
                draws = random.Random(f"{model} {language} {number}")
                doublings = draws.uniform(0.0, 4.0)
                response = (WORDS[language] * 40)[: round(10 * 2**doublings)]
                made = sample(language, number, "gpt-4o", response)
                rating = quality(made["record"]["item"]) + draws.gauss(0.0, error) + (language == "ja")
                rating += per_doubling * (doublings - 2.0) + own_family * ("gpt" in model)
                made["record"]["runs"][0]["rating"] = made["record"]["score"] = min(max(rating, 1.0), 10.0)
                own.append(made)
        write_run(folder / "runs", model, samples, stamp)
    runs, sheet = str(folder / "runs"), folder / "sheet"
    assert main(["spotcheck", "draw", runs, "-n", "120", "-o", str(sheet)]) == 0
    rows = json.loads((sheet / "spotcheck.json").read_text())["rows"]
    ratings = write_ratings(sheet, folder / "amina.csv", **{row["row"]: quality(row["item"]) for row in rows})
    assert main(["spotcheck", "score", str(sheet), str(ratings), "--results", runs]) == 0
    return build([runs], Options(rated=(read_rated(sheet),)))


def cells(built):
    [table] = [table for table in built.tables if table.key == "spotcheck_biases"]
    assert [row.labels for row in rows_of(table)] == [("gpt-4o", "CARE", probe) for probe in PROBES]
    keys = [column.key for column in table.columns]
    return {row.labels[2]: dict(zip(keys, row.cells, strict=True)) for row in rows_of(table)}


def test_a_judge_that_long_responses_sway_is_said_to_be(tmp_path, capsys):
    found = cells(report(tmp_path, per_doubling=0.6))
    assert "Biases of the judge" in capsys.readouterr().out
    length = found[PROBES[0]]["effect"]
    assert length.low < 0.6 < length.high < length.value + 0.2
    assert found[PROBES[0]]["p_holm"].value < 1e-4
    assert found[PROBES[0]]["responses"].value == 120


def test_a_judge_that_nothing_sways_is_left_in_peace_and_one_of_the_family_is_not(tmp_path):
    found = cells(report(tmp_path / "fair"))
    assert all(cell["p_holm"].value is None or cell["p_holm"].value > 0.05 for cell in found.values())
    effect = cells(report(tmp_path / "family", own_family=1.5))[PROBES[1]]["effect"]
    assert 0.0 < effect.low < 1.5 < effect.high
