"""Fitting, saving, loading, and what is refused."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
from support.tiny_encoders import save_tiny_bert, save_tiny_clip
from support.tiny_families import family, save_family
from support.tiny_world import Instance, write_release

from culture_tasks.benchmarks.crosscult.prompts import system_prompt
from culture_tasks.errors import CultureTasksError, SettingsError
from culture_tasks.insertion import state
from culture_tasks.insertion.adapter import MultimodalModel
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.method_registry import FILES, method_class, method_config, method_names, methods
from culture_tasks.insertion.methods.ike import demonstrations
from culture_tasks.insertion.queries import Insertion, Query
from culture_tasks.insertion.training_data import load_training_data
from culture_tasks.insertion.value_store import ValueStore

OPTIONS = {
    "mcki": {"route_dim": 16},
    "ike": {"encoder": "lexical", "demonstrations": 3},
    "mend": {"layers": 2, "rank": 4},
}
CASES = 6


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return load_training_data(write_release(tmp_path_factory.mktemp("world"), range(2), range(4)), limit=CASES)


@pytest.fixture(scope="module")
def model():
    made = family("internvl")
    return MultimodalModel(made.model, made.processor, "tiny internvl")


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Options of all methods that are fitted, some of which name models."""
    root = tmp_path_factory.mktemp("models")
    replacement = str(save_family("internvl", root / "replacement", seed=1))
    return {
        **OPTIONS,
        "serac": {"encoder": "lexical", "replacement": replacement},
        "mscke": {"encoder": str(save_tiny_clip(root / "clip")), "replacement": replacement},
    }


@pytest.fixture(params=sorted([*OPTIONS, "mscke", "serac"]), scope="module")
def fitted(request, model, data, options):
    method = method_class(request.param)(model, method_config(request.param, options[request.param]))
    method.fit(data, ValueStore(None))
    return method


def ask(scenario=0, number=0, language="en"):
    instance = Instance(scenario, number)
    return Query.about(instance.image(), instance.question(language), system_prompt(language))


class CountingFeatures:
    """Counts the requests whose features are computed, and stops after some."""

    def __init__(self, monkeypatch, model, stop_after=10**9):
        self.count = 0
        compute = model.features_of

        def features_of(queries, batch_size):
            for found in compute(queries, batch_size):
                if self.count == stop_after:
                    raise KeyboardInterrupt
                self.count += 1
                yield found

        monkeypatch.setattr(model, "features_of", features_of)


class TestTrainingData:
    def test_a_case_has_its_items(self, data):
        case = data.cases[0]
        assert len(data.cases) == CASES == data.facts.count
        assert [item.kind for item in case.locality] == ["cross_language_locality", "cross_scenario_locality"]
        assert len(case.generality) == 1
        assert case.insertion.query.images()[0].size == (56, 56)

    def test_what_is_the_same_request_is_the_same_object(self, data):
        asked = [query for case in data.cases for query in case.queries()]
        assert len({id(query) for query in asked}) == len({query.key for query in asked}) < len(asked)

    def test_locality_items_keep_the_datas_own_answer(self, data):
        for case in data.cases:
            for item in case.locality:
                assert item.answer

    def test_queries_are_phrased_as_the_tasks_phrase_them(self, data):
        from culture_tasks.harness.lmms_eval import hooks

        messages = hooks.crosscult_single_reliability__messages
        case = data.cases[0]
        asked = case.insertion.query
        language = "zh" if any("一" <= letter <= "鿿" for letter in asked.question) else "ar"
        doc = {"image": asked.images()[0], "question": asked.question, "language": language}
        assert Query(asked.question, lambda: messages(doc)).key == asked.key

    def test_facts_name_the_data(self, data):
        assert data.facts.raw
        assert data.facts.scenarios == ("scenario 0", "scenario 1")


class TestFitting:
    def test_features_are_computed_once_a_request(self, model, data, monkeypatch):
        counting = CountingFeatures(monkeypatch, model)
        method_class("mcki")(model, method_config("mcki", OPTIONS["mcki"])).fit(data, ValueStore(None))
        assert counting.count == len({query.key for case in data.cases for query in case.queries()})

    def test_a_killed_fit_goes_on_and_ends_alike(self, model, data, monkeypatch, tmp_path):
        config = method_config("mcki", OPTIONS["mcki"])
        whole = method_class("mcki")(model, config)
        whole.fit(data, ValueStore(None))
        killed = method_class("mcki")(model, config)
        with monkeypatch.context() as patch:
            CountingFeatures(patch, model, stop_after=4)
            with pytest.raises(KeyboardInterrupt):
                killed.fit(data, ValueStore(tmp_path / "features"))
        counting = CountingFeatures(monkeypatch, model)
        again = method_class("mcki")(model, config)
        again.fit(data, ValueStore(tmp_path / "features"))
        assert counting.count == whole.report["requests"] - 4
        assert again.fingerprint == whole.fingerprint

    def test_training_lowers_the_loss_and_moves_the_threshold(self, model, data):
        once, often = (
            method_class("mcki")(model, method_config("mcki", {**OPTIONS["mcki"], "epochs": epochs}))
            for epochs in (1, 8)
        )
        for method in (once, often):
            method.fit(data, ValueStore(None))
        assert often.report["loss"] < once.report["loss"]
        assert -1.0 <= often.threshold <= 1.0

    def test_the_plain_model_has_nothing_to_fit(self, model, data):
        with pytest.raises(CultureTasksError, match="nothing to fit"):
            method_class("base")(model).fit(data, ValueStore(None))

    def test_what_was_not_fitted_cannot_be_saved(self, model, tmp_path):
        with pytest.raises(CultureTasksError, match="was not fitted"):
            method_class("mcki")(model).save(tmp_path)


class TestSavingAndLoading:
    def test_a_loaded_method_answers_alike(self, fitted, model, tmp_path):
        fitted.save(tmp_path)
        loaded = method_class(fitted.name)(model)
        loaded.load(tmp_path)
        assert loaded.fingerprint == fitted.fingerprint
        assert loaded.config == fitted.config
        for method in (fitted, loaded):
            method.insert(Insertion(ask(), "never"))
        assert loaded.generate(ask(1, 1), Decoding(6)) == fitted.generate(ask(1, 1), Decoding(6))
        fitted.reset()

    def test_only_json_and_safetensors_are_written(self, fitted, tmp_path):
        fitted.save(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["state.json", "state.safetensors"]
        for path in tmp_path.iterdir():
            with pytest.raises((pickle.UnpicklingError, ValueError, KeyError, EOFError, IndexError)):
                pickle.loads(path.read_bytes())

    def test_another_model_is_refused(self, fitted, tmp_path):
        fitted.save(tmp_path)
        made = family("llava")
        other = method_class(fitted.name)(MultimodalModel(made.model, made.processor, "tiny llava"))
        with pytest.raises(
            state.StateError,
            match=r"fitted with the model 'tiny internvl'.*'tiny llava' \(fingerprint .*; class 'LlavaFor.*', expected "
            r"'InternVLFor.*; weights .*; configuration .*; processor ",
        ):
            other.load(tmp_path)

    def test_options_of_images_that_differ_are_named(self, fitted, model, tmp_path):
        fitted.save(tmp_path)
        images = {"max_patches": 2}
        other = MultimodalModel(
            model.model, model.processor, "tiny internvl", model.encoding_options["template"], images
        )
        with pytest.raises(state.StateError, match=r"; images \{'max_patches': 2\}, expected \{\}\)\. Load that model"):
            method_class(fitted.name)(other).load(tmp_path)

    def test_another_version_of_the_method_is_refused(self, fitted, model, tmp_path, monkeypatch):
        fitted.save(tmp_path)
        kind = method_class(fitted.name)
        monkeypatch.setattr(kind, "answers_version", kind.answers_version + 1)
        with pytest.raises(
            state.StateError, match=rf"fitted by version {kind.answers_version - 1} of {kind.name}, and "
        ):
            kind(model).load(tmp_path)

    def test_a_state_without_a_version_is_of_the_first(self, model, data, tmp_path):
        method = method_class("mend")(model, method_config("mend", OPTIONS["mend"]))
        method.fit(data, ValueStore(None))
        method.save(tmp_path)
        path = tmp_path / "state.json"
        description = json.loads(path.read_text())
        path.write_text(json.dumps({name: value for name, value in description.items() if name != "version"}))
        with pytest.raises(state.StateError, match=r"fitted by version 1 of mend, and this is version 2"):
            method_class("mend")(model).load(tmp_path)

    def test_another_method_is_refused(self, fitted, model, tmp_path):
        fitted.save(tmp_path)
        other = "ike" if fitted.name == "mcki" else "mcki"
        with pytest.raises(state.StateError, match=f"holds a state of '{fitted.name}', not of '{other}'"):
            method_class(other)(model).load(tmp_path)

    def test_a_mixture_of_two_states_is_refused(self, fitted, model, tmp_path):
        fitted.save(tmp_path)
        path = tmp_path / "state.safetensors"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(state.StateError, match=r"belong to state\.json"):
            method_class(fitted.name)(model).load(tmp_path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": 99}, "format 99"),
            ({"method": 7}, "not the description of a state"),
            ({"more": 1}, "not the description of a state"),
        ],
    )
    def test_a_strange_description_is_refused(self, fitted, model, tmp_path, change, message):
        fitted.save(tmp_path)
        path = tmp_path / "state.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        with pytest.raises(state.StateError, match=message):
            method_class(fitted.name)(model).load(tmp_path)

    def test_options_of_another_version_are_refused(self, fitted, model, tmp_path):
        fitted.save(tmp_path)
        path = tmp_path / "state.json"
        description = json.loads(path.read_text())
        path.write_text(json.dumps({**description, "config": {**description["config"], "depth": 3}}))
        with pytest.raises(state.StateError, match=f"option depth=3 of {fitted.name}: .* Fit the method again"):
            method_class(fitted.name)(model).load(tmp_path)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"rank": 5}, "mend: the state doesn't fit its own options"),
            (
                {"weights": "mlp.gate_proj+mlp.down_proj"},
                r"mend: the state is of .*up_proj.*, but the options name .*gate",
            ),
        ],
    )
    def test_options_that_were_not_trained_with_are_refused(self, model, data, tmp_path, options, message):
        method = method_class("mend")(model, method_config("mend", OPTIONS["mend"]))
        method.fit(data, ValueStore(None))
        method.save(tmp_path)
        path = tmp_path / "state.json"
        description = json.loads(path.read_text())
        path.write_text(json.dumps({**description, "config": {**description["config"], **options}}))
        with pytest.raises(state.StateError, match=message):
            method_class("mend")(model).load(tmp_path)

    def test_an_empty_folder_is_refused(self, model, tmp_path):
        with pytest.raises(state.StateError, match=r"holds no state\.json"):
            method_class("mcki")(model).load(tmp_path)

    def test_a_retrained_state_has_another_fingerprint(self, model, data):
        fingerprints = set()
        for seed in (0, 1):
            method = method_class("mcki")(model, method_config("mcki", {**OPTIONS["mcki"], "seed": seed}))
            method.fit(data, ValueStore(None))
            fingerprints.add(method.fingerprint)
        assert len(fingerprints) == 2

    def test_other_data_and_trained_scenarios_are_refused(self, fitted, tmp_path):
        description = fitted.save(tmp_path)
        state.check_data(tmp_path, description.data, description.data.raw, frozenset(["scenario 9"]))
        with pytest.raises(state.StateError, match="fitted on data with fingerprint"):
            state.check_data(tmp_path, description.data, "another", frozenset())
        with pytest.raises(state.StateError, match="1 evaluated scenarios were trained on, such as 'scenario 1'"):
            state.check_data(tmp_path, description.data, "", frozenset(["scenario 1", "scenario 9"]))


class TestRegistry:
    def test_every_method_keeps_the_rules(self):
        assert {"base", "ike", "mcki"} <= set(method_names())
        for name in method_names():
            assert method_class(name).name == name

    def test_every_method_has_the_same_files(self):
        from importlib import resources

        for name in method_names():
            folder = resources.files(methods) / name
            assert all((folder / f"{file}.py").is_file() for file in FILES)

    def test_an_unknown_method_names_the_nearest(self):
        with pytest.raises(SettingsError, match=r"unknown method 'mkci'\. Did you mean 'mcki'"):
            method_class("mkci")

    def test_an_unknown_option_names_the_nearest(self):
        with pytest.raises(SettingsError, match="Did you mean 'route_dim'"):
            method_config("mcki", {"route_dims": 3})

    def test_a_value_out_of_range_is_refused(self):
        with pytest.raises(SettingsError, match="option epochs='0' of mcki"):
            method_config("mcki", {"epochs": "0"})


class TestIke:
    def test_demonstrations_are_of_three_kinds(self, data):
        case = data.cases[0]
        fact = f"{case.insertion.query.question} {case.insertion.answer}"
        texts = list(demonstrations.of_case(case))
        assert len(texts) == 4
        assert texts[0] == f"New Fact: {fact}\nPrompt: {fact}\n\n"
        assert all(text.startswith(f"New Fact: {fact}\nPrompt: ") for text in texts)
        assert texts[1].endswith(f"{case.generality[0].query.question} {case.generality[0].answer}\n\n")

    def test_shows_the_nearest_last_then_all_insertions(self, model, data):
        method = method_class("ike")(model, method_config("ike", OPTIONS["ike"]))
        method.fit(data, ValueStore(None))
        inserted = [data.cases[0].insertion, data.cases[2].insertion]
        for sample in inserted:
            method.insert(sample)
        shown = method.retrieved()
        assert len(shown) == 3
        assert set(shown[-2:]) == {demonstrations.copied(sample) for sample in inserted}
        context = demonstrations.prompt(shown, inserted)
        facts = [context.rindex(f"New Fact: {demonstrations.fact(sample)}\n") for sample in inserted]
        assert facts == sorted(facts)
        assert context.endswith("Prompt: ")

    def test_without_insertions_it_is_the_plain_model(self, model, data):
        method = method_class("ike")(model, method_config("ike", OPTIONS["ike"]))
        method.fit(data, ValueStore(None))
        assert method.generate(ask(), Decoding(6)) == model.generate(ask(), Decoding(6))

    def test_says_that_words_are_counted(self, model, data, caplog):
        method_class("ike")(model, method_config("ike", OPTIONS["ike"])).fit(data, ValueStore(None))
        assert "counts words instead of the paper's sentence embeddings" in caplog.text

    def test_an_encoder_that_is_not_there_names_the_ways_out(self, model, data, tmp_path):
        method = method_class("ike")(model, method_config("ike", {"encoder": str(tmp_path / "nothing")}))
        with pytest.raises(SettingsError, match="encoder=DIR, or choose encoder=lexical"):
            method.fit(data, ValueStore(None))

    def test_means_of_a_transformer_are_normalised_and_ignore_padding(self, model, data, tmp_path):
        encoder = method_config("ike", {"encoder": str(save_tiny_bert(tmp_path)), "demonstrations": 2})
        method = method_class("ike")(model, encoder)
        method.fit(data, ValueStore(None))
        alone, beside = method._encode(["hat"])[0], method._encode(["hat", "is this hat fine here"])[0]
        assert torch.allclose(alone, beside, atol=1e-5)
        assert float(alone.norm()) == pytest.approx(1.0, abs=1e-5)
        assert method.parameter_count() > 0

    def test_a_state_with_another_encoder_is_refused(self, model, data, tmp_path):
        method = method_class("ike")(model, method_config("ike", {"encoder": str(save_tiny_bert(tmp_path / "bert"))}))
        method.fit(data, ValueStore(None))
        method.save(tmp_path / "state")
        save_tiny_bert(tmp_path / "bert", seed=1)
        with pytest.raises(state.StateError, match="is not the encoder"):
            method_class("ike")(model).load(tmp_path / "state")
