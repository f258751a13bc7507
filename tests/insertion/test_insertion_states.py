"""Fitting, saving, loading, and what is refused."""

from __future__ import annotations

import json
import pickle
import shutil

import pytest
import torch
from support import insertion_requests
from support.insertion_requests import adapted, answered, ask, insertion
from support.tiny_encoders import save_tiny_bert

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import CultureTasksError
from culture_tasks.harness.lmms_eval.task import messages
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.edit_scopes import edit_text
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request, conversation, loaded, size_of
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.methods.ike.method import context_of, copying, demonstrations_of

OPTIONS = {"mcki": {"route_dim": 16}, "ike": {"demonstrations": 3}, "mend": {"layers": 2, "rank": 4}}


def made(name, model, data, store=None, **options):
    """A fitted method."""
    method = insertion_requests.made(name, model, **{**OPTIONS.get(name, {}), **options})
    method.fit(data, Store(None) if store is None else store)
    return method


@pytest.fixture(params=["ike", "mcki", "mend", "mscke", "serac"], scope="module")
def fitted(request, internvl, data, folders):
    options = {"encoder": str(folders[request.param])} if request.param in folders else {}
    if request.param in ("mscke", "serac"):
        options["replacement"] = str(folders["replacement"])
    return made(request.param, internvl, data, **options)


@pytest.fixture(scope="module")
def mend_state(internvl, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mend")
    made("mend", internvl, data).save(folder)
    return folder


def test_cases_are_phrased_as_the_tasks_do_and_equal_requests_are_one_object(data):
    case, asked = data.cases[0], data.cases[0].insertion.request
    assert len(data.cases) == 6 == data.facts.count
    assert data.facts.raw
    assert data.facts.scenarios == ("scenario 0", "scenario 1")
    assert [item.kind for item in case.locality] == ["cross_language_locality", "cross_scenario_locality"]
    assert len(case.generality) == 1
    assert size_of(asked.pictures()[0]) == (56, 56)
    requests = [request for case in data.cases for request in case.requests()]
    assert len({id(request) for request in requests}) == len({request.key for request in requests}) < len(requests)
    language = "zh" if any("一" <= letter <= "鿿" for letter in asked.question) else "ar"
    doc = {"image": loaded(asked.pictures()[0]), "question": asked.question, "language": language}
    of_task = messages(task_named("crosscult_single_reliability"), doc)
    assert Request(asked.question, conversation(of_task)).key == asked.key


def test_a_killed_fit_goes_on_computes_features_once_a_request_and_is_timed_when_whole(
    internvl, data, monkeypatch, tmp_path
):
    compute, computed, file = internvl.features_of, [], tmp_path / "features"

    def features_of(queries, batch_size):
        for found in compute(queries, batch_size):
            if len(computed) == 4:
                raise KeyboardInterrupt
            computed.append(found)
            yield found

    whole = made("mcki", internvl, data)
    assert whole.report["requests"] == len({query.key for case in data.cases for query in case.requests()})
    assert whole.report["seconds"] > 0
    with monkeypatch.context() as patch:
        patch.setattr(internvl, "features_of", features_of)
        with pytest.raises(KeyboardInterrupt):
            made("mcki", internvl, data, Store(file))
    store = Store(file)
    again = made("mcki", internvl, data, store)
    assert (store.hits, len(store)) == (4, whole.report["requests"])
    assert (again.fingerprint, again.report["seconds"]) == (whole.fingerprint, None)


def test_a_loaded_method_answers_alike_from_json_and_safetensors(fitted, internvl, tmp_path):
    fitted.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.json", "state.safetensors"]
    for path in tmp_path.iterdir():
        with pytest.raises((pickle.UnpicklingError, ValueError, KeyError, EOFError, IndexError)):
            pickle.loads(path.read_bytes())
    loaded = method_class(fitted.name)(internvl)
    loaded.load(tmp_path)
    assert (loaded.fingerprint, loaded.config) == (fitted.fingerprint, fitted.config)
    for method in (fitted, loaded):
        method.insert(Insertion(ask(), "never"))
    assert loaded.generate(ask(1, 1), AnswerDecoding(6)) == fitted.generate(ask(1, 1), AnswerDecoding(6))
    fitted.reset()


def test_answers_and_scores_are_the_same_at_every_size_of_a_batch(fitted):
    chains = [(insertion(),), (insertion(), insertion(1, 1, "zh")), ()]
    pairs = [(ask(place % 3, place), chains[place % 3]) for place in range(6)]
    texts, scores = [], []
    for size, is_alone in ((1, False), (4, False), (1, True)):
        fitted.batch_size = size
        answers = answered(fitted, pairs, AnswerDecoding(5), alone=is_alone)
        texts.append([(answer.text, answer.activated) for answer in answers])
        scores.append([answer.similarity or 0.0 for answer in answers])
    assert texts[0] == texts[1] == texts[2]
    assert scores[1] + scores[2] == pytest.approx(scores[0] * 2, abs=1e-4)


def test_another_model_other_options_and_other_data_are_refused(fitted, internvl, tmp_path):
    facts = fitted.save(tmp_path).data
    template = internvl.encoding.settings["template"]
    limited = MultimodalModel(internvl.model, internvl.processor, "tiny internvl", template, {"max_patches": 2})
    for model, message in (
        (
            adapted("llava"),
            r"fitted with the model 'tiny internvl'.*'tiny llava' \(fingerprint .*; class 'LlavaFor.*', expected "
            r"'InternVLFor.*; weights .*; configuration .*; processor ",
        ),
        (limited, r"; images \{'max_patches': 2\}, expected \{\}\)\. Load that model"),
    ):
        with pytest.raises(state.StateError, match=message):
            method_class(fitted.name)(model).load(tmp_path)
    state.check_data(tmp_path, facts, facts.raw, frozenset(["scenario 9"]))
    for raw, scenarios, message in (
        ("another", [], "fitted on data with fingerprint"),
        ("", ["scenario 1", "scenario 9"], "1 evaluated scenarios were trained on, such as 'scenario 1'"),
    ):
        with pytest.raises(state.StateError, match=message):
            state.check_data(tmp_path, facts, raw, frozenset(scenarios))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "it has format 99, and this version reads 2"),
        ({"more": 1}, "holds no state that can be read"),
        ({"method": "ike"}, "fitted by version 2 of 'ike', and this is version 2 of 'mend'"),
        ({"version": None}, "fitted by version 1 of 'mend', and this is version 2"),  # not recorded
        ({"config": {"rank": 5}}, "the state doesn't fit its own options"),
        ({"config": {"weights": "mlp.gate_proj+mlp.down_proj"}}, r"it is of .*up_proj.*, but the options name .*gate"),
        ({"tensors": "another"}, r"doesn't belong to state\.json"),
    ],
)
def test_a_changed_description_is_refused(mend_state, internvl, tmp_path, change, message):
    folder = shutil.copytree(mend_state, tmp_path / "state")
    description = json.loads((folder / "state.json").read_text())
    changed = {**description, **change, "config": {**description["config"], **change.get("config", {})}}
    if changed["version"] is None:
        del changed["version"]
    (folder / "state.json").write_text(json.dumps(changed))
    with pytest.raises(state.StateError, match=message):
        method_class("mend")(internvl).load(folder)


def test_missing_and_broken_files_are_refused(mend_state, internvl, tmp_path):
    method = method_class("mend")(internvl)
    with pytest.raises(state.StateError, match=r"holds no state that can be read .*No such file"):
        method.load(tmp_path)
    folder = shutil.copytree(mend_state, tmp_path / "state")
    (folder / "state.safetensors").write_bytes(b"no tensors")
    with pytest.raises(state.StateError, match="holds no state that can be read"):
        method.load(folder)
    with pytest.raises(CultureTasksError, match="was not fitted"):
        method.save(tmp_path)


def test_ike_shows_the_nearest_demonstrations_last_then_all_insertions(internvl, data, folders):
    method = made("ike", internvl, data, encoder=str(folders["ike"]))
    assert method.prompt(ask()).request.key == ask().key  # nothing inserted
    case = data.cases[0]
    fact = edit_text(case.insertion)
    texts = demonstrations_of([case])
    assert len(texts) == 4
    assert texts[0] == f"New Fact: {fact}\nPrompt: {fact}\n\n"
    assert texts[1] == f"New Fact: {fact}\nPrompt: {edit_text(case.generality[0])}\n\n"
    inserted = [case.insertion, data.cases[2].insertion]
    for sample in inserted:
        method.insert(sample)
    shown = method.retrieved()
    assert len(shown) == 3
    assert set(shown[-2:]) == {copying(sample) for sample in inserted}
    facts = "".join(f"New Fact: {edit_text(sample)}\n" for sample in inserted)
    assert context_of(shown, inserted) == f"{''.join(shown)}{facts}Prompt: "


def test_means_of_a_transformer_are_normalised_and_ikes_state_knows_it(internvl, data, tmp_path):
    method = made("ike", internvl, data, encoder=str(save_tiny_bert(tmp_path / "bert")))
    alone, beside = method._encode(["hat"])[0], method._encode(["hat", "is this hat fine here"])[0]
    assert torch.allclose(alone, beside, atol=1e-5)  # padding is ignored
    assert float(alone.norm()) == pytest.approx(1.0, abs=1e-5)
    assert method.parameter_count() > 0
    method.save(tmp_path / "state")
    save_tiny_bert(tmp_path / "bert", seed=1)
    with pytest.raises(state.StateError, match="is not the encoder"):
        method_class("ike")(internvl).load(tmp_path / "state")
