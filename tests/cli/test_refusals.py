"""What commands refuse: one message that says what to do, a status, and nothing written, before anything is asked."""

from __future__ import annotations

import json
import os
import shlex
import shutil

import pytest
from support.checked_runs import write_care
from support.rated_data import row, rows_of, write_rows
from support.sample_files import LEXICAL, care_sample, write_run

from culture_tasks.cli.main import main

OWN = {"question": "q", "reference": "r", "response": "s", "human_rating": 7.5, "rubric": "care_literacy"}
UNRATED = {name: value for name, value in OWN.items() if name != "human_rating"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Rated rows, runs that a judge graded, and others."""
    folder = tmp_path_factory.mktemp("world")
    write_rows(folder / "rated.jsonl", rows_of(3))
    write_care(folder / "runs", {"zh": 60, "ar": 30, "ja": 12})
    write_run(folder / "mmlu", "toy/model", {"mmlu": [{"doc_id": 0, "acc": 1.0}]})
    write_run(folder / "alike", "a", {"care_zh": [care_sample(n, 4.0) for n in range(10)]})
    write_run(folder / "alike", "b", {"care_zh": [care_sample(n, n, judge=LEXICAL) for n in (1, 9)]})
    (folder / "taken").mkdir()
    (folder / "taken" / "mine.txt").write_text("mine")
    (folder / "empty").mkdir()
    return folder


REJUDGE = "rejudge runs --judge openai:a"
COST = "cost --judge openai:gpt-4o"
AZURE = "AZURE_OPENAI_ENDPOINT=https://x.azure.com OPENAI_API_VERSION=1"
CANT_TELL = "can't tell whether questions of care_ar are among the training data"
TOO_FEW = "-n 14 is too few for 3 strata (cultures of each task of each model), which need 5 each"

COMMANDS = {
    # agreement of judges with people
    "agreement": "no judge is configured",
    "agreement --judge none": "gives no ratings",
    "agreement --judge lexical -o /dev/null/x": "can't write to",
    # preferences from rows
    "preferences build rated.jsonl -o out --culture native": "3 questions not drawn for culture",
    "preferences build rated.jsonl -o out --language zj": "--language zj: no question has it. Expected one of zh.",
    "preferences build rated.jsonl -o out --category literarcy": "care: unknown category 'literarcy'. Did you",
    "preferences build rated.jsonl -o out --hold-out blendd": "--hold-out: no task 'blendd'. Did you mean 'blend'",
    "preferences build rated.jsonl -o out --hold-out none,care": "--hold-out: no task 'none'",
    "CULTURE_TASKS_DATA=empty preferences build rated.jsonl -o out": CANT_TELL,
    "preferences build rated.jsonl -o taken": "taken is there already. Remove it, or name a new folder with -o.",
    "preferences build rated.jsonl -o .": "-o . is there already. Remove it, or name a new folder with -o.",
    "preferences stat runs": "runs: a folder. Expected a file with one of the endings",
    "preferences stat geyang627/CAR": "no such file. Did you mean 'geyang627/CARE'?",
    # grading again
    "rejudge nowhere --judge lexical": "no such file, folder or match of a pattern",
    "rejudge empty --judge lexical": "the folder holds no JSON file",
    f"{REJUDGE} --sample 3 --failed-only": "grades a draw of the responses anew. Leave out --failed-only",
    f"{REJUDGE} --resend": "--resend needs --batch",
    f"{REJUDGE} --judge openai:b": "--judge is given twice. Run the command once for each",
    "rejudge runs --judge lexical --batch": "openai:<model>, found lexical",
    f"CULTURE_JUDGE_CACHE=off {REJUDGE} --batch": "and the verdict cache",
    f"{AZURE} {REJUDGE} --batch": "Azure offers batches at its OpenAI-compatible address",
    # what a judge will cost
    COST: "cost: name tasks, such as --tasks care, or finished runs",
    f"{COST} --tasks car": "no task 'car'. Did you mean 'care'?",
    f"{COST} --tasks care_zh --sample 4": "with --results, which --sample and --width need",
    f"{COST} --results runs --width 3 --sample 4": "--width and --sample. Leave out one",
    f"{COST} --results nowhere": "no such file",
    f"{COST} --results mmlu": "none of these runs has logged samples of these tasks that a judge grades",
    f"{COST} --results alike --width 3": "scores that vary (the lexical judge's don't count)",
    f"{COST} --results runs --width 3 --tasks cedar_text": "cost: no task of these runs has logged samples",
    f"{COST} --tasks care --prices prices.json": "can't read prices.json (No such file or directory)",
    # spot checks
    "spotcheck draw mmlu -n 9 -o out": "no responses that a judge grades",
    "spotcheck draw nowhere -n 9 -o out": "missing, no such file, folder or match",
    "spotcheck draw runs -n 14 -o out": f"{TOO_FEW}, or all of fewer. Choose at least -n 15",
    "spotcheck draw runs -n 20 -o out --tasks care_zn": "fits no judged task. Did you mean 'care_zh'",
    "spotcheck draw runs -n 20 -o out --images nowhere": "no such folder",
    "spotcheck score runs rated.jsonl --results runs": "spotcheck.json can't be read",
    # the others
    "CULTURE_JUDGES=none tasks": "unknown environment variable 'CULTURE_JUDGES'. Did you mean 'CULTURE_JUDGE'?",
    "report nowhere -o out": "no run that can be used in nowhere",
    "compare nowhere runs": "nowhere has no run that can be used",
    "compare runs runs --margin x": "--margin 'x' isn't NAME=NUMBER",
    "cache stats --file nope": "cache: --file nope: no such file",
    "cache clear --file nope --yes": "cache: --file nope: no such file",
    "report runs -o r --formats ,": "report: unknown format ''",
    "cache merge nope -o out.sqlite3": "nope isn't there. Name the files of caches",
    "data check --data nowhere": "nowhere: no such folder",
    "data overlap care care": "the tasks are of one benchmark. Name tasks of at least two",
    "data overlap carex normad": "no task 'carex'. Did you mean 'care'?",
    "culture check empty": "holds no culture.toml",
    "insertion fit --method mckii --model x -o out": "unknown method 'mckii'. Did you mean 'mcki'?",
    "insertion fit --method mcki --model x -o out --set a": "--set 'a'. Expected OPTION=VALUE",
    "selftest --no-judge": "there is nothing to check. Name a --model, or leave out --no-judge",
}
"""What is said to a command, which may begin with environment variables."""


def second(**change):
    """A table whose second row has something else in it."""
    return [OWN, OWN | change]


PIPE = "a pipe, which isn't waited for"
NOT_PLAIN = (PIPE, "not a plain file")
RESULTS = "20260101_000000_results.json"

FILES = {
    "agreement --judge lexical --data rows.jsonl -o out": [
        (second(human_rating=11), "row 2, field 'human_rating': found 11. Expected a number from 1 to 10"),
        (second(human_rating="good"), "row 2, field 'human_rating': found 'good'"),
        (second(reference=[]), "row 2, field 'reference"),
        (second(rubric="care_literary"), "Did you mean 'care_literacy'"),
        (second(category="Literature"), "row 2, field 'category': care: unknown category 'Literature'"),
        (second(response="[LMMS_EVAL_BUDGET_EXCEEDED]"), "row 2, field 'response': found no response"),
        (second(rubric=None), "row 2: no rubric for the category 'none'. Either choose one for all"),
        (second(rubric="lave", human_rating=2), "different scales: care_literacy (1 to 10), lave (1 to 2)"),
        ([UNRATED | {"human_ratings": 3}], "no column 'human_rating'. Did you mean 'human_ratings'"),
        NOT_PLAIN,
    ],
    "preferences build rows.jsonl -o out": [
        ([row("q", "a", 5), row("q", "b", 5), row("p", "c", 7)], "2 questions, 3 responses, 1 ties, 1 questions with"),
        ([row("q", "a", 5), {"question": "q"}], "row 2, field 'response': found nothing"),
    ],
    "preferences stat rows.jsonl": [
        ([*rows_of(700), row("q", "b", 11)], "rows.jsonl, row 2101, field 'human_rating': found 11. Expected a number"),
        ([row("q", "b", 5, cul_type="Socal norms")], "row 1, field 'category'"),
        ([row("q", "a", 3), row("q", "b", 2, rubric="lave")], "has the scale (1.0, 2.0), and "),
        ([row("q", "b", 5, colour="red")], "unknown column 'colour'"),
        ([row("q", "a", None)], "no row has a rating in the column 'human_rating'"),
        NOT_PLAIN,
    ],
    f"rejudge {RESULTS} --judge lexical": [
        ("[]", "has no 'results'"),
        ('{"results": {}, "configs": {}}', "none of these runs has logged samples"),
        ('{"results": {}, "group_subtasks": {"care": 7}}', "field 'group_subtasks.care': found 7"),
        NOT_PLAIN,
    ],
    f"{COST} --tasks care --prices prices.json": [
        ('{"currency": "EUR", "models": {"a": {"input": 1}}}', "models.a: Value error, expected 'input' and 'output'"),
        NOT_PLAIN,
    ],
    "spotcheck score spotcheck.json rated.jsonl --results runs": [
        ("hi", "spotcheck.json, found b'hi' (Invalid JSON"),
        NOT_PLAIN,
    ],
    "report runs -o out --spotcheck rated.json": [("{}", "Expected a file that `culture-tasks spotcheck score` has")],
    f"report {RESULTS} -o out": [NOT_PLAIN],
    f"compare {RESULTS} {RESULTS}": [NOT_PLAIN],
    "cache stats --file pipe.json": [NOT_PLAIN],
}
"""What is said to a command of the first file in it that isn't there otherwise, by its rows or its text."""


@pytest.mark.parametrize(
    ("command", "content", "said"),
    [
        *((command, None, said) for command, said in COMMANDS.items()),
        *((command, content, said) for command, rows in FILES.items() for content, said in rows),
    ],
)
def test_a_command_says_what_is_wrong_and_writes_nothing(
    world, tmp_path, monkeypatch, capsys, fixture_data, command, content, said
):
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    if command == "agreement":
        monkeypatch.delenv("OPENAI_API_KEY")
    words = shlex.split(command)
    if content is not None:
        file = next(word for word in words if word.endswith((".json", ".jsonl")) and not (tmp_path / word).exists())
        text = content if isinstance(content, str) else "".join(json.dumps(each) + "\n" for each in content)
        if content is PIPE:
            os.mkfifo(tmp_path / file)
        else:
            (tmp_path / file).write_text(text, encoding="utf-8")
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(words) == (2 if words[0] == "compare" else 1)
    out, error = capsys.readouterr()
    assert error.startswith("culture-tasks: error: ")
    assert error.count("\n") == 1
    assert said in error
    assert "sk-hidden" not in out + error
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
