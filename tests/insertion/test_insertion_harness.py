"""The model ``knowledge_insertion`` in lmms-eval, on CrossCult's own tasks and on an ordinary one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.in_process import run_lmms_eval
from support.insertion_requests import made
from support.reports import rows_of
from support.written_runs import write_lmms_eval
from torch import nn

from culture_tasks.errors import CultureTasksError
from culture_tasks.insertion.core import devices
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.core.training import load_training_data
from culture_tasks.report.building import Options, build
from culture_tasks.settings import Settings

SINGLE = [
    "crosscult_single_reliability",
    "crosscult_single_generality",
    "crosscult_single_cross_language_locality",
    "crosscult_single_cross_scenario_locality",
]
CHAINS = ["crosscult_retention_en_zh_ar_en_after_1", "crosscult_retention_en_zh_ar_ar_after_3"]
FINETUNE = {"method": "finetune", "steps": "3", "learning_rate": "0.01"}
LATENCY = {"paper_latency": "true"}
TESTS = Path(__file__).parents[1]

pytestmark = pytest.mark.usefixtures("evaluating")


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A store of answers that all tests share which count none."""
    return tmp_path_factory.mktemp("answers") / "answers.sqlite3"


@pytest.fixture
def arguments(checkpoint, answers):
    return {"pretrained": str(checkpoint), "device": "cpu", "answers": str(answers)}


@pytest.fixture(scope="module")
def make_state(checkpoint, world, tmp_path_factory):
    model, data = MultimodalModel.load(str(checkpoint)), load_training_data(Settings(data=world))

    def make(folder=None, threshold=None):
        folder = folder or tmp_path_factory.mktemp("state")
        method = made("mcki", model, route_dim=16)
        method.fit(data, Store(None))
        method.threshold = method.threshold if threshold is None else threshold
        method.save(folder)
        return {"method": "mcki", "state": str(folder)}

    return make


def run(tasks, arguments, **options):
    text = ",".join(f"{name}={value}" for name, value in arguments.items())
    return run_lmms_eval("knowledge_insertion", tasks, model_args=text, bootstrap_iters=0, **options)


def responses(results, task):
    """Returns each response as answer and plain answer, which is the answer where it wasn't asked for."""
    said = [sample["resps"][0][0] for sample in results["samples"][task]]
    return [tuple(texts[:2]) if isinstance(texts, list) else texts for texts in said]


def overlap(results, task):
    return results["results"][task]["rouge_l,none"]


def test_the_plain_model_gives_the_base_row_and_finetune_changes_it(arguments):
    plain, edited = run(SINGLE, arguments), run(SINGLE[3:] + CHAINS[1:], {**arguments, **FINETUNE})
    assert [overlap(plain, task) for task in SINGLE[2:]] == [100.0, 100.0]
    assert all(after == base for task in SINGLE for after, base in responses(plain, task))
    assert len(responses(plain, SINGLE[0])) == 8  # two scenarios, two raw cases, two targets
    assert [base for _, base in responses(edited, SINGLE[3])] == [base for _, base in responses(plain, SINGLE[3])]
    assert any(after != base for after, base in responses(edited, SINGLE[3]))
    assert overlap(edited, SINGLE[3]) < 100.0


def test_an_active_method_inserts_once_a_case_and_a_second_run_generates_nothing(
    arguments, make_state, monkeypatch, tmp_path
):
    inserted, method = [], method_class("mcki")
    insert = method.insert
    monkeypatch.setattr(method, "insert", lambda self, sample: (inserted.append(sample.key), insert(self, sample)))
    chosen = {**arguments, **make_state(threshold=-1.0), "answers": str(tmp_path / "answers.sqlite3")}
    results = run([*SINGLE, *CHAINS], chosen)
    # 8 single-insert cases with one insertion, 4 chains whose step 1 is gone on with to step 3.
    assert len(inserted) == 8 + 4 * 3
    assert any(after != base for after, base in responses(results, SINGLE[3]))
    assert overlap(results, SINGLE[3]) < 100.0
    for sample in results["samples"][SINGLE[0]]:
        facts = sample["record"]["facts"]
        assert (facts["activated"], facts["threshold"]) == (0, -1.0)
        assert facts["similarity"] == pytest.approx(1.0, abs=1e-4)
        assert facts["input_tokens"] > facts["output_tokens"] > 0
    monkeypatch.setattr(MultimodalModel, "_answers", None)
    second = run(SINGLE, chosen)
    assert [responses(second, task) for task in SINGLE] == [responses(results, task) for task in SINGLE]


@pytest.mark.parametrize("way", [LATENCY, {"batch_size": "4"}])
def test_the_result_file_says_what_the_run_cost(arguments, make_state, tmp_path, way):
    chosen = {**arguments, **way, **make_state(), "answers": "off"}
    text = ",".join(f"{name}={value}" for name, value in chosen.items())
    path = write_lmms_eval(tmp_path, SINGLE, lmms="knowledge_insertion", model_args=text, bootstrap_iters=0)
    two = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2, device="meta")])
    assert devices.devices_of(two) == "CPU + META"
    costs = json.loads(path.read_text(encoding="utf-8"))["insertion_costs"]
    is_alone = "paper_latency" in way
    assert (costs["device"], costs["ranks"], costs["one_at_a_time"]) == ("CPU", 1, is_alone)
    assert costs["batch_size"] == int(way.get("batch_size", 1))
    # 8 single-insert cases of 4 requests each; in batches, prompts that are the same are answered once
    assert costs["insertions"] == 8
    assert costs["requests"] == (32 if is_alone else costs["answered"])
    assert not is_alone or costs["answered"] == 16 + 32  # 16 want a plain answer
    assert all(costs[name] > 0 for name in ("request_ms", "insert_ms", "train_ms", "train_gib", "peak_gib"))
    parameters = MultimodalModel.load(chosen["pretrained"]).model.num_parameters()
    assert costs["parameters"] * 1e9 > parameters  # the router comes on top
    tables = {table.key: table for table in build([str(tmp_path)], Options()).tables}
    [row] = rows_of(tables["crosscult_table_4"])
    assert row.labels[1:] == ("MCKI", "CPU, one at a time" if is_alone else "CPU, batches of 4")
    assert [cell.value for cell in row.cells][:3] == [costs[name] for name in ("train_ms", "insert_ms", "request_ms")]


def test_a_retrained_state_hits_no_stale_response(arguments, make_state, tmp_path, monkeypatch):
    cache = str(tmp_path / "cache")
    chosen = {**arguments, **make_state(tmp_path / "state", threshold=2.0), "answers": "off"}
    before = run(SINGLE[:1], chosen, use_cache=cache)
    with monkeypatch.context() as patch:
        patch.setattr(MultimodalModel, "_answers", None)
        again = run(SINGLE[:1], chosen, use_cache=cache)
    assert responses(again, SINGLE[0]) == responses(before, SINGLE[0])
    make_state(tmp_path / "state", threshold=-1.0)
    assert responses(run(SINGLE[:1], chosen, use_cache=cache), SINGLE[0]) != responses(before, SINGLE[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "mkci"}, "Did you mean 'mcki'"),
        ({"method": "mcki"}, "needs state=DIR"),
        ({"state": "somewhere"}, "takes no state"),
        ({"metod": "mcki"}, "Did you mean 'method'"),
        ({"method": "finetune", "steps": "0"}, "option steps='0' of finetune"),
        ({"pretrained": ""}, r"Add pretrained="),
        ({"batch_size": "0"}, "at least 1, or auto"),
        ({"paper_latency": "true", "batch_size": "4"}, "one request at a time"),
    ],
)
def test_mistakes_are_explained_before_the_model_is_loaded(arguments, change, message, monkeypatch):
    from culture_tasks.harness.lmms_eval.knowledge_insertion import KnowledgeInsertionModel

    monkeypatch.setattr(MultimodalModel, "load", None)
    with pytest.raises(CultureTasksError, match=message):
        KnowledgeInsertionModel(**{**arguments, **change})


def run_command(chosen, task, out, *launcher):
    """Runs lmms-eval's own command, and returns its responses and costs."""
    text = ",".join(f"{name}={value}" for name, value in chosen.items())
    options = ["--model", "knowledge_insertion", "--model_args", text, "--tasks", task, "--log_samples"]
    subprocess.run(
        [sys.executable, *launcher, "-m", "support.run_lmms_eval", *options, "--output_path", str(out)],
        env={**os.environ, "PYTHONPATH": str(TESTS), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
        cwd=out.parent,
        check=True,
        capture_output=True,
    )
    lines = next(out.rglob(f"*samples_{task}.jsonl")).read_text(encoding="utf-8").splitlines()
    rows = sorted(map(json.loads, lines), key=lambda row: row["doc_id"])
    results = json.loads(next(out.rglob("*_results.json")).read_text(encoding="utf-8"))
    return [tuple(row["filtered_resps"][:2]) for row in rows], results


@pytest.mark.slow
def test_two_ranks_answer_as_one_does(arguments, make_state, tmp_path):
    chosen = {**arguments, **make_state(threshold=-1.0), "answers": "off"}
    alone = run(SINGLE[2:3], chosen)
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    found, results = run_command(chosen, SINGLE[2], tmp_path / "out", *ranks)
    assert found == responses(alone, SINGLE[2])
    costs = results["insertion_costs"]
    assert (costs["ranks"], costs["insertions"]) == (2, alone["insertion_costs"]["insertions"])
