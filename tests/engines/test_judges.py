"""Judges on a real vLLM: behind ``vllm serve``, and loaded by ``culture-tasks rejudge``."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engines.toys import ENGINE, ROOT, Server, run
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.registry import rubrics
from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
from culture_tasks.judges.rubric.verdicts import JudgeItem, Verdict
from culture_tasks.settings import Settings

KEY = "sk-very-secret-0123456789abcdef"
LAST_OF_REASONS = {"regex": {"\n": 50, '"': 40}, "json_schema": {'"': 50}}
"""The tokens that end reasons, with a bias. Toys ramble on, so their server prefers the first one that may come."""
RATING = json.dumps({"structured_outputs": {"regex": r"rating=[12]"}})
NO_THOUGHTS = json.dumps({"structured_outputs": {"regex": r"rating=[12]"}, "reasoning_effort": "none"})


@pytest.fixture(scope="module")
def bias(text_model) -> Callable[[str], str]:
    """Returns the further parameters with which a toy ends its reasons."""
    tokenizer = AutoTokenizer.from_pretrained(text_model)

    def parameters(form: str) -> str:
        ids = {text: tokenizer.encode(text, add_special_tokens=False) for text in LAST_OF_REASONS[form]}
        return json.dumps({"logit_bias": {str(token): LAST_OF_REASONS[form][text] for text, [token] in ids.items()}})

    return parameters


@pytest.fixture
def judge_for(tmp_path) -> Iterator[Callable[..., EndpointJudge]]:
    judges: list[EndpointJudge] = []

    def make(server, model=None, **variables: str) -> EndpointJudge:
        named = {f"CULTURE_JUDGE_{name}": value for name, value in variables.items()}
        place = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "CULTURE_JUDGE_CACHE": str(cache_in(tmp_path))}
        judges.append(EndpointJudge(model or server.model, Settings.from_environment(place | named)))
        return judges[-1]

    yield make
    for judge in judges:
        judge.close()


def cache_in(folder: Path) -> Path:
    return folder / "verdicts.sqlite3"


def items(count: int, first: int = 0) -> list[JudgeItem]:
    return [JudgeItem(f"What is dish {n}?", ("biryani",), f"biryani {n}") for n in range(first, first + count)]


def verdicts_of(judge: EndpointJudge, wanted: list[JudgeItem], rubric=LAVE) -> list[Verdict]:
    return [ticket.verdict() for ticket in [judge.submit(rubric, item) for item in wanted]]


def outcomes(verdicts: list[Verdict]) -> Counter[str]:
    return Counter(verdict.outcome for verdict in verdicts)


@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
@pytest.mark.parametrize("form", LAST_OF_REASONS)
def test_a_reply_that_vllm_holds_to_a_form_is_a_verdict(server, judge_for, bias, form, rubric):
    judge = judge_for(server, FORM=form, EXTRA_BODY=bias(form))
    verdict = judge.check([(rubric, items(1)[0])])
    verdicts = [verdict, *verdicts_of(judge, items(3), rubric)]
    assert outcomes(verdicts) == {"scored": 4}, verdicts
    assert {verdict.attempts for verdict in verdicts} == {1}
    assert all(rubric.lowest <= verdict.score <= rubric.highest for verdict in verdicts)
    asked = judge.identity(rubric).sampling
    assert asked["logit_bias"]
    assert set(rubric.form(form)) & set(asked)  # vLLM took the parameter


@pytest.fixture(scope="module")
def real_server(real_model, tmp_path_factory) -> Iterator[Server]:
    """``vllm serve`` with SmolLM2."""
    server = Server(real_model, tmp_path_factory.mktemp("server") / "log.txt")
    server.start()
    yield server
    server.stop()


@pytest.mark.real
@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_every_verdict_of_a_small_real_model_whose_reasons_are_bounded_is_read(real_server, judge_for, rubric):
    """Unbounded, SmolLM2 repeats itself until its tokens end."""
    form = dict(rubric.form("regex"))
    pattern = form["structured_outputs"]["regex"].replace("]+", "]{1,160}", 1)
    judge = judge_for(real_server, EXTRA_BODY=json.dumps(form | {"structured_outputs": {"regex": pattern}}))
    verdicts = verdicts_of(judge, items(3), rubric)
    assert outcomes(verdicts) == {"scored": 3}, verdicts


def test_hundreds_in_flight_are_all_graded_and_asked_once(server, judge_for):
    judge = judge_for(server, EXTRA_BODY=RATING, CONCURRENCY="256")
    verdicts = verdicts_of(judge, items(512))
    assert outcomes(verdicts) == {"scored": 512}
    assert sum(verdict.attempts for verdict in verdicts) == 512
    judge.close()
    again = verdicts_of(judge_for(server, EXTRA_BODY=RATING), items(512))
    assert [verdict.score for verdict in again] == [verdict.score for verdict in verdicts]
    assert all(verdict.attempts == 0 for verdict in again)


REFUSALS = {
    "a model that it has not": ("another", {}, "HTTP 404 .*`another` does not exist"),
    "more tokens than its context": (
        None,
        {"EXTRA_BODY": '{"max_tokens": 9999}'},
        "HTTP 400 .*max_tokens=9999 cannot be greater",
    ),
    "a value out of range": (None, {"EXTRA_BODY": '{"top_p": 7.0}'}, "HTTP 400 .*top_p must be in"),
    "a word that it does not know": (
        None,
        {"EXTRA_BODY": '{"reasoning_effort": "much"}'},
        "HTTP 400 .*reasoning_effort",
    ),
    "no pattern": (None, {"EXTRA_BODY": '{"structured_outputs": {"regex": "["}}'}, "HTTP 400 .*regex"),
    "no schema": (None, {"EXTRA_BODY": '{"structured_outputs": {"json": {"type": "x"}}}'}, "HTTP 400 .*Grammar error"),
}


@pytest.mark.parametrize(("model", "variables", "message"), REFUSALS.values(), ids=REFUSALS)
def test_what_vllm_refuses_ends_the_run_before_it_begins(server, judge_for, caplog, model, variables, message):
    judge = judge_for(server, model, **variables)
    with pytest.raises(JudgeUnreachableError, match=message) as caught:
        judge.check([(LAVE, items(1)[0])])
    [verdict] = verdicts_of(judge, items(1, first=1))
    assert (verdict.outcome, verdict.attempts) == ("failed", 1)
    assert KEY not in f"{caught.value} {verdict.error} {caplog.text}"


def test_a_prompt_beyond_the_context_fails_alone(server, judge_for):
    long = JudgeItem("What is it?", ("biryani",), "rice " * 6_000)
    verdicts = verdicts_of(judge_for(server, EXTRA_BODY=RATING), [*items(8), long])
    assert outcomes(verdicts) == {"scored": 8, "failed": 1}
    assert verdicts[-1].attempts == 1
    assert "maximum context length is 4096 tokens" in verdicts[-1].error


RUNS = {
    "lm-eval": ("culture-tasks", "lm-eval", "run", "--model", "dummy", "--tasks", "care_greedy"),
    "lmms-eval": ("lmms-eval", "--model", "dummy", "--tasks", "culturalvqa_blind,crosscult_diagnostic"),
}


@pytest.mark.parametrize("command", RUNS.values(), ids=RUNS)
def test_a_whole_run_of_a_harness_is_graded_in_full(server, bias, tmp_path, command):
    variables = {
        "CULTURE_TASKS_DATA": str(ROOT / "examples" / "data"),
        "CULTURE_JUDGE": f"openai:{server.model}",
        "CULTURE_JUDGE_FORM": "regex",
        "CULTURE_JUDGE_EXTRA_BODY": bias("regex"),
        "CULTURE_JUDGE_CACHE": str(cache_in(tmp_path)),
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": KEY,
    }
    options = ("--limit", "6", "--batch_size", "1", "--log_samples", "--output_path", tmp_path / "out")
    log = run(*command, *options, variables=variables)
    assert graded_in_full(tmp_path / "out")
    written = "".join(path.read_text("utf-8") for path in (tmp_path / "out").rglob("*.json*"))
    assert KEY not in log + written


def graded_in_full(folder: Path) -> list[str]:
    """Returns the judged metrics of a folder with result files, and makes sure that every verdict is scored."""
    results = [json.loads(path.read_text("utf-8"))["results"] for path in folder.rglob("*results*.json")]
    numbers = {name: value for tasks in results for task in tasks.values() for name, value in task.items()}
    coverage = {name: value for name, value in numbers.items() if "coverage" in name and "stderr" not in name}
    assert set(coverage.values()) == {1.0}, numbers
    return list(coverage)


def test_a_model_that_a_harness_loads_grades_in_rejudge(rating_model, text_model, tmp_path):
    variables = {
        "CULTURE_TASKS_DATA": str(ROOT / "examples" / "data"),
        "CULTURE_JUDGE": "none",
        "CULTURE_JUDGE_FORM": "regex",
        "CULTURE_JUDGE_CACHE": str(cache_in(tmp_path)),
    }
    model = ("--model", "vllm", "--model_args", f"pretrained={text_model},{ENGINE}", "--apply_chat_template")
    options = ("--tasks", "care_greedy", "--limit", "2", "--log_samples", "--output_path", tmp_path / "out")
    run("culture-tasks", "lm-eval", "run", *model, *options, variables=variables)
    [ungraded] = (tmp_path / "out").rglob("*results*.json")
    judge = f"lm_eval:vllm,pretrained={rating_model},{ENGINE.replace('2048', '8192')}"
    run("culture-tasks", "rejudge", tmp_path / "out", "--judge", judge, variables=variables)
    ungraded.unlink()
    assert graded_in_full(tmp_path / "out")


@pytest.fixture(scope="module")
def rating_model(text_model, tmp_path_factory) -> Path:
    """The text model, ending its reasons where it would end its reply: a judge in process takes no bias of tokens."""
    folder = Path(shutil.copytree(text_model, tmp_path_factory.mktemp("models") / "rating"))
    tokenizer, file = AutoTokenizer.from_pretrained(folder), folder / "model.safetensors"
    [last] = tokenizer.encode("\n", add_special_tokens=False)
    weights = load_file(file)
    weights["lm_head.weight"][last] = weights["lm_head.weight"][tokenizer.eos_token_id]
    save_file(weights, file, metadata={"format": "pt"})
    return folder


def stored(folder: Path) -> int:
    """Returns how many replies the verdict cache holds."""
    with sqlite3.connect(f"file:{cache_in(folder)}?mode=ro", uri=True) as connection:
        if not list(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'completions'")):
            return 0  # the file is there before its table
        [[count]] = connection.execute("SELECT count(*) FROM completions")
    return int(count)


def wait_for(replies: int, folder: Path) -> None:
    """Waits until the verdict cache holds so many replies."""
    deadline = time.monotonic() + 300
    while not cache_in(folder).exists() or stored(folder) < replies:
        assert time.monotonic() < deadline, f"there are no {replies} replies"
        time.sleep(0.02)


@pytest.fixture
def server_to_stop(server) -> Iterator[Server]:
    """The shared server for a test that starts it with other options: the next test gets one with the usual ones."""
    yield server
    server.stop()


def test_a_server_that_is_stopped_or_killed_in_the_middle_costs_no_verdict(server_to_stop, judge_for, tmp_path):
    server = server_to_stop
    patient = judge_for(server, EXTRA_BODY=RATING, CONCURRENCY="64", PATIENCE="1800")
    tickets = [patient.submit(LAVE, item) for item in items(300)]
    wait_for(50, tmp_path)
    server.stop()
    server.start()
    assert outcomes([ticket.verdict() for ticket in tickets]) == {"scored": 300}
    patient.close()
    assert stored(tmp_path) == 300

    brief = judge_for(server, EXTRA_BODY=NO_THOUGHTS, CONCURRENCY="64", PATIENCE="1")
    tickets = [brief.submit(LAVE, item) for item in items(300, first=300)]
    wait_for(350, tmp_path)
    server.stop(kill=True)
    ended = outcomes([ticket.verdict() for ticket in tickets])
    lost = ended["failed"]
    assert ended == {"scored": 300 - lost, "failed": lost}
    assert 0 < lost < 300
    brief.close()
    assert stored(tmp_path) == 600 - lost

    # The reasoning parser takes all that the toy writes for thoughts, unless it is told that there are none.
    server.start("--reasoning-parser", "qwen3", "--api-key", KEY)
    unparsable = verdicts_of(judge_for(server), items(2))
    assert outcomes(unparsable) == {"unparsable": 2}
    verdicts = verdicts_of(judge_for(server, EXTRA_BODY=NO_THOUGHTS), items(300, first=300))
    assert outcomes(verdicts) == {"scored": 300}
    assert sum(verdict.attempts for verdict in verdicts) == lost
