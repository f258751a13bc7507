"""SERAC and MSCKE: who answers what, what is trained and kept, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from support.insertion_requests import adapted, ask, made
from support.tiny_encoders import POSITIONS, save_tiny_bert, save_tiny_clip
from support.tiny_families import save_family
from support.tiny_world import Instance

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.edit_scopes import ScopeEncoder, edit_text
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.requests import Insertion, Request, text_part
from culture_tasks.insertion.core.scoped_method import REPLACEMENTS, load_replacement, shown_after
from culture_tasks.insertion.core.state import ModelIdentity
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.core.training import TrainingData
from culture_tasks.insertion.methods.mscke.method import ClipScopes, MsckeConfig

NAMES = ("mscke", "serac")


def make(name, internvl, folders, **options):
    return made(
        name, internvl, **{"replacement": str(folders["replacement"]), "encoder": str(folders[name]), **options}
    )


def fit(method, data, store=None, **options):
    method.fit(data, Store(None) if store is None else store, **options)
    return method


@pytest.fixture(params=NAMES, scope="module")
def fitted(request, internvl, folders, data):
    return fit(make(request.param, internvl, folders), data)


def about(question, number=0):
    return Request.about(Instance(0, number).image(), question)


def test_the_nearest_edit_is_used_from_the_threshold_on(internvl, folders, data, monkeypatch):
    # exp(-0.83 ** 2) = 0.502 and exp(-0.84 ** 2) = 0.494
    places = {"the first first": 0.0, "the second second": 9.0, "inside": 0.83, "outside": 0.84, "near second": 8.9}
    places |= {edit_text(case.insertion): 0.0 for case in data.cases}
    places |= {query.question: 0.0 for case in data.cases for query in case.requests()}

    class ByHand(ScopeEncoder):
        identity, width, parameters = ModelIdentity(), 1, 0

        def encode(self, subjects, *_):
            return torch.tensor([[places[text]] for _, text in subjects])

    monkeypatch.setattr("culture_tasks.insertion.core.scoped_method.train", lambda *_, **__: {})
    first, second = (Insertion(about(f"the {answer}", 1), answer) for answer in ("first", "second"))
    for threshold, activated in ((0.5, None), (0.45, 0)):
        method = make("serac", internvl, folders, threshold=threshold)
        monkeypatch.setattr(method, "_make_encoder", ByHand)
        fit(method, data)
        method.insert(first)
        method.insert(second)
        inside, outside, near = (method.prompt(about(name)) for name in ("inside", "outside", "near second"))
        assert [inside.notes["similarity"], outside.notes["similarity"]] == pytest.approx([0.502, 0.494], abs=5e-4)
        assert inside.model is near.model is method.parts.replacement
        assert inside.request.key == shown_after(first, about("inside")).key
        assert near.request.key == shown_after(second, about("near second")).key
        assert [prompt.notes.get("activated") for prompt in (inside, outside, near)] == [0, activated, 1]
        assert {prompt.notes["threshold"] for prompt in (inside, outside, near)} == {threshold}
        if activated is None:
            assert (outside.model, outside.request.key) == (None, about("outside").key)
        method.reset()
        assert method.prompt(about("inside")).notes == {}


def test_mscke_tells_images_apart_that_seracs_text_cannot_and_needs_one(fitted):
    fitted.insert(Insertion(about("Is this fine here ?"), "never"))
    red, blue = (
        fitted.prompt(Request.about(Instance(scenario, 5).image(), "Is this fine here ?")) for scenario in (0, 1)
    )
    assert (red.notes == blue.notes) == (fitted.name == "serac")
    for images in (0, 2) if fitted.name == "mscke" else ():
        content = [*[{"type": "image", "image": Instance(0, 0).image()}] * images, text_part("?")]
        with pytest.raises(DataError, match=f"mscke: the request '\\?' has {images} images"):
            fitted.prompt(Request("?", [{"role": "user", "content": content}]))
    fitted.reset()


class TestTraining:
    def test_only_the_classifier_and_one_layer_are_trained_and_kept(self, fitted, folders):
        tensors = fitted._tensors()
        trained = {name.removeprefix("replacement.") for name in tensors if name.startswith("replacement.")}
        assert set(tensors) - {f"replacement.{name}" for name in trained} == {"classifier.projection"}
        loaded = MultimodalModel.load(str(folders["replacement"])).model.state_dict()
        now = fitted.parts.replacement.model.state_dict()
        assert {name for name, weight in loaded.items() if not torch.equal(weight, now[name])} == trained
        last = fitted.parts.replacement.model.config.get_text_config().num_hidden_layers - 1
        assert all(f".layers.{last}." in name for name in trained)
        assert not torch.equal(tensors["classifier.projection"], torch.eye(len(tensors["classifier.projection"])))

    def test_the_first_loss_is_that_of_the_data(self, internvl, folders, data, monkeypatch):
        """One case, by hand: what the classifier and the replacement model say before anything is learned."""
        case = data.cases[0]
        method = fit(make("serac", internvl, folders), TrainingData([case], data.facts))
        encoder = method._make_encoder()
        edit = encoder.vectors([(case.insertion.request, f"{case.insertion.request.question} {case.insertion.answer}")])
        distances = (
            (encoder.vectors([(request, request.question) for request in case.requests()]) - edit).square().sum(-1)
        )
        positives = 1 + len(case.generality)
        costs = [*distances[:positives].tolist(), *(-torch.log(1 - torch.exp(-distances[positives:]))).tolist()]
        assert method.report["classifier"] == pytest.approx(sum(costs) / len(costs), rel=1e-4)
        untrained = MultimodalModel.load(str(folders["replacement"]))
        answered = [case.insertion, *case.generality]
        shown = [Insertion(shown_after(case.insertion, item.request), item.answer) for item in answered]
        nll = sum(float(untrained.answer_scorer([sample])().losses().mean()) for sample in shown) / len(shown)
        assert method.report["replacement"] == pytest.approx(nll, rel=1e-4)

    def test_a_fit_without_locality_items_and_a_method_without_a_fit_are_refused(self, internvl, folders, data):
        cases = [replace(case, locality=()) for case in data.cases]
        method = make("serac", internvl, folders)
        with pytest.raises(DataError, match="serac: no training case has a locality item"):
            fit(method, TrainingData(cases, data.facts))
        with pytest.raises(CultureTasksError, match="serac: was neither fitted nor loaded"):
            method.insert(Insertion(ask(), "never"))


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ("other replacement", r"fitted with the replacement model .*other replacement' .*weights"),
        ("another shape", r"not the weights of the layer that is trained of .*qwen"),
        ("other encoder", " is not the encoder: its weights or settings differ"),
    ],
)
def test_a_state_with_another_model_is_refused(fitted, internvl, folders, tmp_path, role, message):
    fitted.save(tmp_path)
    if role == "other encoder":
        save = {"serac": save_tiny_bert, "mscke": save_tiny_clip}[fitted.name]
        changed = {"encoder": str(save(tmp_path / "encoder", seed=1))}
    elif role == "another shape":
        changed = {"replacement": str(save_family("qwen3_5", tmp_path / "qwen"))}
    else:
        changed = {"replacement": str(folders[role])}
    path = tmp_path / "state.json"
    description = json.loads(path.read_text())
    path.write_text(json.dumps({**description, "config": {**description["config"], **changed}}))
    with pytest.raises(state.StateError, match=message):
        method_class(fitted.name)(internvl).load(tmp_path)


def test_replacement_models_and_encoders_that_cannot_be_used_are_refused(internvl, folders, data, tmp_path):
    assert {adapted(name).model.config.model_type for name in ("internvl", "qwen3_5")} == set(REPLACEMENTS)
    folder, unknown = save_family("internvl", tmp_path / "model"), tmp_path / "unknown"
    (folder / "chat_template.jinja").unlink()
    unknown.mkdir()
    (unknown / "config.json").write_text('{"model_type": "nothing"}')
    for name, message in (
        (None, r"serac: .*'tiny internvl' \(architecture 'internvl'\).*--set replacement="),
        ("no/such/model", r"'no/such/model' can't be loaded.*replacement=MODEL names it"),
        (str(folder), r"serac: the replacement model can't be used\. .*lacks a chat template"),
        (str(unknown), r"serac: the replacement model can't be used\. .*images and text"),
    ):
        with pytest.raises(SettingsError, match=message):
            load_replacement(name, beside=internvl, method="serac")
    for method, options, message in (
        ("serac", {"replacement_layer": 2}, r"layer=2 of replacement_layer, of .* has layers 0 to 1"),
        ("mscke", {"encoder": str(folders["serac"])}, r"mscke: encoder=.* can't be loaded as a CLIP model"),
        ("mscke", {"max_text_length": POSITIONS + 1}, f"length=78, but .* reads at most {POSITIONS} tokens"),
    ):
        with pytest.raises(SettingsError, match=message):
            fit(make(method, internvl, folders, **options), data)


def test_clip_cuts_long_texts_off_and_ignores_padding(folders):
    config = MsckeConfig(encoder=str(folders["mscke"]), max_text_length=POSITIONS)
    encoder, request = ClipScopes(config, torch.device("cpu")), ask()
    long, longer = "红包 " * 200, "红包 " * 200 + "hat"
    assert torch.equal(*encoder.vectors([(request, long), (request, longer)]))
    alone, beside = (
        encoder.vectors([(request, "hat"), *more])[0] for more in ([], [(request, "is this hat fine here")])
    )
    assert torch.allclose(alone, beside, atol=1e-5)
    assert float(alone.norm()) == pytest.approx(1.0, abs=1e-5)
