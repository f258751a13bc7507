"""The adapter and MCKI over tiny models of several families: nothing may depend on the family's name."""

from __future__ import annotations

import pytest
import torch
from support.insertion_requests import ask
from support.tiny_families import family

from culture_tasks.errors import DataError
from culture_tasks.insertion.core import adapter
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.decoding import Decoding
from culture_tasks.insertion.core.queries import Insertion, Query, image_part, text_part
from culture_tasks.insertion.methods.mcki.method import MckiMethod

DECODING = Decoding(max_new_tokens=12)


def queries():
    return [
        ask(scenario, number, language) for scenario, number, language in [(0, 0, "en"), (1, 1, "zh"), (2, 2, "ar")]
    ]


def with_threshold(model, threshold):
    method = MckiMethod(model)
    method.threshold = threshold
    return method


def masked(model, query):
    encoded = model._encoded([query], with_spans=True)
    return encoded.inputs, *model._masks(encoded, [query])[0]


def test_not_activated_answers_are_the_plain_models_token_by_token(model):
    method = with_threshold(model, 2.0)
    method.insert(Insertion(ask(), "never"))
    for query in queries():
        answer = method.generate(query, DECODING)
        assert answer.text == model.generate(query, DECODING).text
        assert answer.activated is None


def test_a_request_not_activated_has_one_prefill(model):
    method = with_threshold(model, 2.0)
    method.insert(Insertion(ask(), "never"))
    lengths = []

    def note(_module, _positional, named):
        ids = named.get("input_ids")
        lengths.append(named["inputs_embeds"].shape[1] if ids is None else ids.shape[1])

    handle = model.model.base_model.register_forward_pre_hook(note, with_kwargs=True)
    answer = method.generate(queries()[0], DECODING)
    handle.remove()
    assert sum(length > 1 for length in lengths) == 1
    assert len(lengths) == answer.new_tokens


def test_activated_answers_are_those_to_the_augmented_request(model):
    method = with_threshold(model, -1.0)
    inserted = Insertion(ask(1, 5, "zh"), "never good")
    method.insert(inserted)
    query = queries()[0]
    answer = method.generate(query, DECODING)
    augmented = query.preceded_by(method._wrapped(inserted))
    assert len(augmented.images()) == 2
    assert answer.text == model.generate(augmented, DECODING).text
    assert answer.activated == 0


@pytest.mark.parametrize("language", ["en", "zh", "ar"])
def test_question_and_image_tokens_are_found(model, language):
    query = ask(3, 1, language)
    inputs, question, visual = masked(model, query)
    tokenizer = model.processor.tokenizer
    assert tokenizer.decode(inputs["input_ids"][0][question]).strip() == query.question
    shown = set(tokenizer.convert_ids_to_tokens(inputs["input_ids"][0][visual].tolist()))
    assert len(shown) == 1
    assert shown <= set(tokenizer.all_special_tokens)
    assert not (question & visual).any()


def test_features_are_means_of_the_last_layer(model):
    query = ask(1, 2, "ar")
    features = model.features(query)
    inputs, question, visual = masked(model, query)
    with torch.no_grad():
        last = model.model(**inputs, output_hidden_states=True).hidden_states[-1][0].float()
    assert torch.allclose(features[0], last[question].mean(0), atol=1e-4)
    assert torch.allclose(features[1], last[visual].mean(0), atol=1e-4)
    assert features.shape == (2, model.hidden_size)


def test_a_request_without_image_has_no_features(model):
    query = Query("Why ?", lambda: [{"role": "user", "content": [text_part("Why ?")]}])
    assert model.generate(query, DECODING).new_tokens
    with pytest.raises(DataError, match="has no image"):
        model.features(query)


@pytest.mark.parametrize(
    ("question", "parts", "message"),
    [
        ("another question", ["image", "Is it fine ?"], "isn't in the prompt"),
        ("Is it fine ?", ["Is it fine ?", "image"], "an image comes after 'Is it fine"),
    ],
)
def test_a_question_that_is_not_found_is_refused(internvl, question, parts, message):
    image = image_part(ask().images()[0])
    content = [image if part == "image" else text_part(part) for part in parts]
    with pytest.raises(DataError, match=message):
        internvl.features(Query(question, lambda: [{"role": "user", "content": content}]))


def test_another_version_of_the_adapter_is_another_run_of_the_same_weights(monkeypatch):
    made = family("internvl")
    identity = MultimodalModel(made.model, made.processor).identity
    monkeypatch.setattr(adapter, "ANSWERS_VERSION", adapter.ANSWERS_VERSION + 1)
    again = MultimodalModel(made.model, made.processor).identity
    assert again.weights == identity.weights
    assert again.run != identity.run


def test_identity_tells_weights_apart():
    made = family("internvl")
    model = MultimodalModel(made.model, made.processor)
    again = MultimodalModel(made.model, made.processor)
    assert model.identity.weights == again.identity.weights
    weight = next(made.model.parameters()).data.view(-1)
    before = weight[0].clone()
    weight[0] += 1.0
    other = MultimodalModel(made.model, made.processor).identity
    weight[0] = before  # to the bit: the toy model is one for the process
    assert other.weights != model.identity.weights
    assert other.run != model.identity.run


def test_saving_a_model_does_not_change_its_identity(tmp_path):
    made = family("internvl")
    before = MultimodalModel(made.model, made.processor).identity
    made.model.save_pretrained(tmp_path)
    made.processor.save_pretrained(tmp_path)
    assert MultimodalModel(made.model, made.processor).identity.weights == before.weights
    assert MultimodalModel.load(str(tmp_path)).identity.weights == before.weights
