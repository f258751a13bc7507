"""``culture-tasks insertion table``: its plan, what it refuses, its estimates, and how it goes on after a crash."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace

import pytest
from support.local_hub import LocalHub

from culture_tasks import published
from culture_tasks.cli.main import main
from culture_tasks.errors import SettingsError
from culture_tasks.harness import loading
from culture_tasks.insertion import table
from culture_tasks.insertion.core.adapter import ModelOptions
from culture_tasks.insertion.core.method_registry import method_class, method_names
from culture_tasks.insertion.estimates import (
    CaseShape,
    Device,
    MethodWork,
    ModelShape,
    PromptSize,
    Requests,
    RowEstimator,
)
from culture_tasks.insertion.methods import labels, paper_rows
from culture_tasks.insertion.model_files import ModelLocation, explained, locate, without_weights
from culture_tasks.insertion.table import MethodRow, TableOptions, rows_of

TASKS = "crosscult_single_reliability,crosscult_single_cross_scenario_locality"


@pytest.fixture
def others(folders):
    """Options of methods that load further models."""
    encoders = [f"{name}.encoder={folders[name]}" for name in ("serac", "mscke")]
    replacements = [f"{name}.replacement={folders['replacement']}" for name in ("serac", "mscke")]
    return [f"ike.encoder={folders['serac']}", *encoders, *replacements]


@pytest.fixture(autouse=True)
def environment(evaluating, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def command(checkpoint, tmp_path):
    def arguments(*more, methods="all", options=(), out="table"):
        chosen = [part for option in options for part in ("--set", option)]
        given = ["--model", str(checkpoint), "--out", str(tmp_path / out), "--tasks", TASKS, "--device", "cpu"]
        return ["insertion", "table", *given, "--methods", methods, "--batch-size", "1", *chosen, *more]

    return arguments


def test_the_methods_of_the_tables_are_the_published_rows():
    rows = dict.fromkeys(row.keys["method"] for row in published.load("crosscult_table_2").rows)
    assert [labels()[name] for name in paper_rows()] == list(rows)
    assert set(paper_rows()) <= set(method_names())


def test_the_plan_names_rows_requests_and_models_and_runs_nothing(
    command, others, tmp_path, capsys, caplog, monkeypatch
):
    monkeypatch.setattr(loading, "_own_data_warnings", set())
    assert main([*command("--plan", "--limit", "4", options=[*others, "mend.layers=2"])]) == 0
    plan = capsys.readouterr().out
    rows = {line.split()[0]: line for line in plan.splitlines() if line and line.split()[0] in paper_rows()}
    assert list(rows) == list(paper_rows())
    assert all(("fit" in line) == method_class(name).needs_state for name, line in rows.items())
    # Of each task 4 documents: two raw cases with two targets each. Reliability asks 4 things; locality, after the
    # same 4 insertions, 4 others, which the plain model answers too.
    assert "8 after 4 insertions. Training cases: 8." in plan
    assert "not measured" in plan
    assert plan.count("in the folder") == 4
    assert caplog.text.count("own data, not the benchmark's release") == 1
    assert main([*command("--json", "--limit", "4", options=[*others, "mend.layers=2"])]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {row["method"] for row in content["rows"]} == set(rows)
    assert content["hours"] == pytest.approx(sum(row["fit_hours"] + row["evaluation_hours"] for row in content["rows"]))
    assert not (tmp_path / "table").exists()

    monkeypatch.setattr(method_class("finetune"), "work", classmethod(lambda cls, *given: None))
    assert main(command("--plan", methods="base,finetune")) == 0
    plan = capsys.readouterr().out
    assert next(line for line in plan.splitlines() if line.startswith("finetune")).count("not known") == 4


def test_all_models_that_cannot_be_had_are_named_before_anything_is_loaded(command, tmp_path, capsys):
    options = [f"serac.encoder={tmp_path}", "serac.replacement=a/b/c", "mscke.encoder=x y", "ike.encoder=lexical"]
    assert main(command(options=options)) == 1
    said = capsys.readouterr().err
    for part in (
        "x y: no folder, and no name on the Hub",
        f"{tmp_path}: the folder has no config.json",
        "a/b/c: no folder, and no name on the Hub",
        "--set serac.replacement=MODEL",
        "--set mscke.encoder=MODEL",
    ):
        assert part in said
    assert "mscke: the paper names no replacement" not in said  # it does, for this architecture
    assert main([*command("--model", "d/e/f", options=options)]) == 1
    said = capsys.readouterr().err
    assert "d/e/f: no folder, and no name on the Hub" in said
    assert "x y: no folder, and no name on the Hub" in said
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        (["--methods", "mkci"], (), "Did you mean 'mcki'"),
        (["--methods", "base"], ["mcki.route_dim=8"], "'mcki' isn't a row. The table's are base."),
        (["--methods", "mcki"], ["mcki.route=8"], "Did you mean 'route_dim'"),
        (["--tasks", "crosscult_singel"], (), "Did you mean 'crosscult_single'"),
        (["--batch-size", "many"], (), "Expected a whole number, or auto"),
        (["--model", "a,b"], (), "has a comma"),
    ],
)
def test_mistakes_are_explained_before_anything_is_loaded(command, tmp_path, capsys, more, options, message):
    assert main(command(*more, options=options)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "table").exists()


def test_a_folder_of_other_settings_is_refused(command, tmp_path, capsys):
    record = tmp_path / "table" / "logs" / "base.json"
    record.parent.mkdir(parents=True)
    for judge, said in (
        (hashlib.sha256(b"lexical").hexdigest()[:16], "with other settings (limit 3, expected 4)"),
        ("another", "the row base was graded by another judge. `culture-tasks rejudge"),
    ):
        record.write_text(json.dumps({"settings": {"limit": 3}, "state": None, "results": "none", "judge": judge}))
        assert main(command("--plan", "--limit", "4", methods="base")) == 1
        assert said in capsys.readouterr().err


def test_the_commands_say_what_was_chosen(tmp_path):
    options = TableOptions(
        out=tmp_path,
        pretrained="one/model",
        model=ModelOptions(dtype="bfloat16", enable_thinking=True, max_patches=6),
        tasks=("crosscult_single",),
        limit=5,
        fit_limit=7,
        batch_size="auto",
        backend="vllm",
        backend_arguments={"tensor_parallel_size": "2"},
        options={"mend": {"layers": "2"}, "finetune": {"steps": "3"}},
    )
    finetune, mend, mcki = rows_of(options, ["finetune", "mend", "mcki"])
    shared = "dtype=bfloat16,enable_thinking=True,max_patches=6"
    arguments = [
        row.evaluation_command[row.evaluation_command.index("--model_args") + 1] for row in (finetune, mend, mcki)
    ]
    assert arguments == [
        f"pretrained=one/model,method=finetune,{shared},steps=3",
        f"pretrained=one/model,method=mend,{shared},state={tmp_path}/states/mend",
        f"pretrained=one/model,method=mcki,{shared},state={tmp_path}/states/mcki,backend=vllm,tensor_parallel_size=2",
    ]
    assert mcki.evaluation_command[-2:] == ["--limit", "5"]
    fit = " ".join(mend.fit_command[3:])
    assert fit == (
        f"insertion fit --method mend --model one/model --output {tmp_path}/states/mend "
        f"--features {tmp_path}/states/features.sqlite3 --batch-size 16 --limit 7 "
        "--dtype bfloat16 --enable-thinking --max-patches 6 --set layers=2"
    )
    assert main([*mend.fit_command[3:], "--device", "cuda:99"]) == 1  # the options are those of fit


def test_an_estimate_is_arithmetic_and_decoding():
    # 1e9 parameters in 10 layers, 100 tokens a request, no cache, hardly any hidden width.
    shape = ModelShape(
        layers=10, text=10**9, vision=0, parameters=10**9, itemsize=2, cache_bytes=0, activation_bytes=0, hidden=0
    )
    device = Device("toy", flops=1e12, float32=1e11, bandwidth=1e15)
    requests = Requests(alone=20, plain=10, after=40, in_scope=20, chains=10, insertions=10, distinct=30, new_tokens=50)
    cases = CaseShape(count=5, requests=15, generality=1, locality=2)
    estimator = RowEstimator(device, PromptSize(tokens=100, patches=0, images=0), requests, cases, batch=4)
    # A pass: 2 x 1e9 x 100 operations at 0.4e12 a second are 0.5 s. 50 tokens of 10 layers of 0.8 ms, four together,
    # are 0.1 s more for an answer.
    base = estimator.row(MethodWork(), {"": shape}, inserts=False)
    assert base.hours * 3600 == pytest.approx(20 * 0.6)
    assert (base.fit_hours, base.gib) == (0, pytest.approx(2e9 / 2**30))
    scoped = MethodWork(fit={"": 7.0}, request={"": 1.0}, leaves_others_alone=True, fit_float32=1e6, trained=2**26)
    row = estimator.row(scoped, {"": shape})
    # 7 passes one after the other, and 2 x 1e6 x 100 operations at 0.4e11 a second.
    assert row.fit_hours * 3600 == pytest.approx(3.5 + 0.005)
    assert row.hours * 3600 == pytest.approx(10 * 0.6 + 20 * 0.6 + 30 * 0.5)
    assert row.fit_gib == pytest.approx(2e9 / 2**30 + 1)  # 16 bytes for each of 2**26 parameters
    editing = MethodWork(insertion={"": 2.0}, chain_bytes=2**30)
    row = estimator.row(editing, {"": shape}, plain_is_stored=True)
    assert row.hours * 3600 == pytest.approx(40 * 0.6 + 10 * 2 * 0.5)
    assert row.gib == pytest.approx(2e9 / 2**30 + 1)  # four requests of one chain in a batch
    slow = replace(estimator, device=device._replace(bandwidth=1e9), requests=requests._replace(alone=1, new_tokens=64))
    # A backend doesn't launch kernels: 64 tokens, each for 64 requests with one reading of 2e9 bytes at 0.6e9 a second.
    row = slow.row(MethodWork(), {"": shape}, inserts=False, backend=True)
    assert row.hours * 3600 == pytest.approx(0.5 + 2 / 0.6)


def test_a_shape_is_that_of_the_model(checkpoint):
    model = without_weights(str(checkpoint))
    shape, decoder = ModelShape.of(model), model.get_decoder()
    assert (shape.parameters, shape.layers) == (model.num_parameters(), 2)
    assert shape.text == sum(weight.numel() for weight in decoder.layers.parameters())
    beside = sum(weight.numel() for weight in decoder.parameters()) + model.get_output_embeddings().weight.numel()
    assert shape.vision == shape.parameters - beside


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A server that answers as the Hub does, by path; anything else is unknown to it."""
    from huggingface_hub import constants

    server, replies = LocalHub(), {}

    def reply(path, *_):
        status, code, body = replies.get(path, (404, "RepoNotFound", {}))
        return status, json.dumps(body).encode(), {"X-Error-Code": code}

    server.reply = reply
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    yield replies
    server.close()


def test_a_model_on_the_hub_is_sized_and_not_downloaded(hub, tmp_path):
    files = {"config.json": 700, "model-1.safetensors": 5000, "model-2.safetensors": 4000, "pytorch_model.bin": 9000}
    siblings = [{"rfilename": name, "size": size} for name, size in files.items()]
    hub["/api/models/one/model/auth-check"] = (200, "", {})
    hub["/api/models/one/model"] = (200, "", {"id": "one/model", "sha": "1", "siblings": siblings})
    assert locate("one/model") == ModelLocation("Hub", 9000)
    hub["/api/models/one/gated/auth-check"] = (403, "GatedRepo", {})
    with pytest.raises(SettingsError, match=r"one/gated: access is granted on request\. Ask for it at"):
        locate("one/gated")
    with pytest.raises(SettingsError, match="one/other: no folder, and the Hub has no model of this name"):
        locate("one/other")
    assert not (tmp_path / "hub").exists()


def test_without_a_connection_the_cache_counts(hub, monkeypatch, tmp_path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(SettingsError, match="one/model: HF_HUB_OFFLINE is set, and the cache"):
        locate("one/model")
    snapshot = tmp_path / "hub" / "models--one--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    (snapshot / "config.json").write_text("{}")
    index = {"weight_map": {"first": "model-1.safetensors", "second": "model-2.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    (snapshot / "model-1.safetensors").write_text("")
    with pytest.raises(SettingsError, match="doesn't hold it"):
        locate("one/model")  # a shard is missing
    (snapshot / "model-2.safetensors").write_text("")
    assert locate("one/model") == ModelLocation("cache")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert locate("one/model") == ModelLocation("cache")
    with pytest.raises(SettingsError, match=r"one/other: not in the cache .* and the Hub can't be reached"):
        locate("one/other")


def test_an_error_without_a_text_is_explained_by_its_kind():
    with pytest.raises(SettingsError, match=r"^x can't be loaded \(OSError\)\. Name another\.$"):  # noqa: SIM117
        with explained("x can't be loaded", "Name another."):
            raise OSError


FIT = "import sys; sys.exit('layers=99, but the model has 2')"


@pytest.fixture
def processes(monkeypatch):
    """Commands that take no time in place of those of rows: all fits fail, finetune has no results.

    Gives the names of the rows that were evaluated.
    """
    evaluated = []

    def evaluation(row):
        evaluated.append(row.name)
        row.results.mkdir(parents=True)
        written = "" if row.name == "finetune" else f"open({str(row.results / 'x_results.json')!r}, 'w').write('{{}}')"
        return [sys.executable, "-c", f"print('insertions ({row.name})'); {written}"]

    monkeypatch.setattr(MethodRow, "fit_command", property(lambda row: [sys.executable, "-c", FIT]))
    monkeypatch.setattr(MethodRow, "evaluation_command", property(evaluation))
    monkeypatch.setattr(table, "CULTURE_TASKS", (sys.executable, "-c", "pass"))
    return evaluated


def test_a_failing_row_stops_no_other_and_nothing_is_done_twice(command, processes, tmp_path, capfd):
    logs, options = tmp_path / "table" / "logs", ["mend.layers=2"]
    assert main(command(methods="mend,finetune,base", options=options)) == 1
    said, errors = capfd.readouterr()
    assert "base: done" in said
    assert f"mend: ended with status 1. See {logs / 'mend.log'}" in errors
    assert f"finetune: the evaluation ended without results. See {logs / 'finetune.log'}" in errors
    assert "layers=99, but the model has 2" in (logs / "mend.log").read_text()
    assert "insertions (base)" in errors  # what a process says is shown
    assert main(command(methods="base")) == 0
    assert processes == ["finetune", "base"]
    assert main(command("--plan", methods="base")) == 0
    assert "base    finished" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_table_that_was_killed_after_a_fit_evaluates_and_reports(command, checkpoint, tmp_path, capfd):
    arguments = command(methods="mcki", options=["mcki.route_dim=8"])
    out = tmp_path / "table"
    options = TableOptions(out=out, pretrained=str(checkpoint), model=ModelOptions(device="cpu"), tasks=())
    [row] = rows_of(replace(options, options={"mcki": {"route_dim": "8"}}), ["mcki"])
    assert main(row.fit_command[3:]) == 0
    left = row.results / "half_results.json"  # of an evaluation that was killed
    left.parent.mkdir(parents=True)
    left.write_text("{")
    fitted = {path: path.stat().st_mtime_ns for path in (out / "states").rglob("*.safetensors")}
    assert main(arguments) == 0
    shown, log = capfd.readouterr()
    assert "mcki: done" in shown
    assert "answers" in log  # progress is shown
    assert fitted == {path: path.stat().st_mtime_ns for path in fitted} != {}
    (results,) = (out / "results" / "mcki").rglob("*_results.json")
    assert json.loads(results.read_text())["insertion_costs"]["answered"] > 0
    assert "MCKI" in (out / "report" / "report.md").read_text()
