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

OPTIONS = {
    "mcki": {"route_dim": 16},
    "ike": {"encoder": "lexical", "demonstrations": 3},
    "mend": {"layers": 2, "rank": 4},
}


def made(name, model, data, store=None, **options):
    """A fitted method."""
    method = insertion_requests.made(name, model, **{**OPTIONS.get(name, {}), **options})
    method.fit(data, Store(None) if store is None else store)
    return method


@pytest.fixture(params=sorted([*OPTIONS, "mscke", "serac"]), scope="module")
def fitted(request, internvl, data, folders):
    encoders = {"serac": "lexical", "mscke": str(folders["mscke"])}
    models = {"replacement": str(folders["replacement"]), "encoder": encoders.get(request.param)}
    return made(request.param, internvl, data, **(models if request.param in encoders else {}))


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


class TestFitting:
    def test_a_killed_fit_goes_on_computes_features_once_a_request_and_is_timed_when_whole(
        self, internvl, data, monkeypatch, tmp_path
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
        store.put({"of another method": b"1"})
        again = made("mcki", internvl, data, store)
        assert (store.hits, len(store)) == (4, whole.report["requests"] + 1)
        assert (again.fingerprint, again.report["seconds"]) == (whole.fingerprint, None)


class TestSavingAndLoading:
    def test_a_loaded_method_answers_alike_from_json_and_safetensors(self, fitted, internvl, tmp_path):
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

    def test_answers_and_scores_are_the_same_at_every_size_of_a_batch(self, fitted):
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

    def test_another_model_other_options_and_other_data_are_refused(self, fitted, internvl, tmp_path):
        description = fitted.save(tmp_path)
        with pytest.raises(
            state.StateError,
            match=r"fitted with the model 'tiny internvl'.*'tiny llava' \(fingerprint .*; class 'LlavaFor.*', expected "
            r"'InternVLFor.*; weights .*; configuration .*; processor ",
        ):
            method_class(fitted.name)(adapted("llava")).load(tmp_path)
        images, template = {"max_patches": 2}, internvl.encoding.settings["template"]
        other = MultimodalModel(internvl.model, internvl.processor, "tiny internvl", template, images)
        with pytest.raises(state.StateError, match=r"; images \{'max_patches': 2\}, expected \{\}\)\. Load that model"):
            method_class(fitted.name)(other).load(tmp_path)
        state.check_data(tmp_path, description.data, description.data.raw, frozenset(["scenario 9"]))
        with pytest.raises(state.StateError, match="fitted on data with fingerprint"):
            state.check_data(tmp_path, description.data, "another", frozenset())
        with pytest.raises(state.StateError, match="1 evaluated scenarios were trained on, such as 'scenario 1'"):
            state.check_data(tmp_path, description.data, "", frozenset(["scenario 1", "scenario 9"]))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": 99}, "it has format 99, and this version reads 2"),
            ({"more": 1}, "holds no state that can be read"),
            ({"method": "ike"}, "fitted by version 2 of 'ike', and this is version 2 of 'mend'"),
            ({"version": None}, "fitted by version 1 of 'mend', and this is version 2"),  # not recorded
            ({"config": {"rank": 5}}, "the state doesn't fit its own options"),
            (
                {"config": {"weights": "mlp.gate_proj+mlp.down_proj"}},
                r"it is of .*up_proj.*, but the options name .*gate",
            ),
            ({"tensors": "another"}, r"doesn't belong to state\.json"),
        ],
    )
    def test_a_changed_description_is_refused(self, mend_state, internvl, tmp_path, change, message):
        folder = shutil.copytree(mend_state, tmp_path / "state")
        description = json.loads((folder / "state.json").read_text())
        changed = {**description, **change, "config": {**description["config"], **change.get("config", {})}}
        if changed["version"] is None:
            del changed["version"]
        (folder / "state.json").write_text(json.dumps(changed))
        with pytest.raises(state.StateError, match=message):
            method_class("mend")(internvl).load(folder)

    def test_missing_and_broken_files_are_refused(self, mend_state, internvl, tmp_path):
        method = method_class("mend")(internvl)
        with pytest.raises(state.StateError, match=r"holds no state that can be read .*No such file"):
            method.load(tmp_path)
        folder = shutil.copytree(mend_state, tmp_path / "state")
        (folder / "state.safetensors").write_bytes(b"no tensors")
        with pytest.raises(state.StateError, match="holds no state that can be read"):
            method.load(folder)
        with pytest.raises(CultureTasksError, match="was not fitted"):
            method.save(tmp_path)


class TestIke:
    def test_shows_the_nearest_demonstrations_last_then_all_insertions(self, internvl, data, caplog):
        method = made("ike", internvl, data)
        assert "counts words instead of the paper's sentence embeddings" in caplog.text
        assert method.generate(ask(), AnswerDecoding(6)) == internvl.generate(
            ask(), AnswerDecoding(6)
        )  # nothing inserted
        case = data.cases[0]
        fact = f"{case.insertion.request.question} {case.insertion.answer}"
        texts = demonstrations_of([case])
        assert len(texts) == 4
        assert texts[0] == f"New Fact: {fact}\nPrompt: {fact}\n\n"
        assert all(text.startswith(f"New Fact: {fact}\nPrompt: ") for text in texts)
        assert texts[1].endswith(f"{case.generality[0].request.question} {case.generality[0].answer}\n\n")

        inserted = [case.insertion, data.cases[2].insertion]
        for sample in inserted:
            method.insert(sample)
        shown = method.retrieved()
        assert len(shown) == 3
        assert set(shown[-2:]) == {copying(sample) for sample in inserted}
        context = context_of(shown, inserted)
        facts = [context.rindex(f"New Fact: {edit_text(sample)}\n") for sample in inserted]
        assert facts == sorted(facts)
        assert context.endswith("Prompt: ")

    def test_means_of_a_transformer_are_normalised_and_its_state_knows_it(self, internvl, data, tmp_path):
        method = made("ike", internvl, data, encoder=str(save_tiny_bert(tmp_path / "bert")))
        alone, beside = method._encode(["hat"])[0], method._encode(["hat", "is this hat fine here"])[0]
        assert torch.allclose(alone, beside, atol=1e-5)  # padding is ignored
        assert float(alone.norm()) == pytest.approx(1.0, abs=1e-5)
        assert method.parameter_count() > 0
        method.save(tmp_path / "state")
        save_tiny_bert(tmp_path / "bert", seed=1)
        with pytest.raises(state.StateError, match="is not the encoder"):
            method_class("ike")(internvl).load(tmp_path / "state")
