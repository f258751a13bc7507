"""The adapter over tiny models of all families, of which three go through everything."""

from __future__ import annotations

import pytest
import torch
from support.insertion_requests import ask
from support.tiny_families import family
from support.tiny_world import Instance

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.core import adapter
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.encoding import ends_of_generation, image_token_ids, question_and_image
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request, image_part, text_part
from culture_tasks.insertion.core.weight_edits import decoder_layers, layer_linears, layer_weights

DECODING = AnswerDecoding(max_new_tokens=12)
PLAIN = Request("Why ?", [{"role": "user", "content": [text_part("Why ?")]}])  # without an image


def queries(count=10):
    """Requests of many lengths: with wide images, with a second image, and with a text before them."""
    made = []
    for number in range(count):
        instance, language = Instance(number % 8, number), ("en", "zh", "ar")[number % 3]
        image = instance.image().resize((112, 56)) if number % 4 == 0 else instance.image()
        query = Request.about(image, instance.question(language), "请用一句话简单回答。")
        if number % 5 == 0:
            other = Request.about(Instance(1, number).image(), "another")
            parts = [*map(image_part, other.pictures()), text_part(f"Reference: {instance.answer(language)}\n")]
            query = query.preceded_by(parts)
        made.append(query)
    return made


def joined(batches):
    return {place: result for batch in batches for place, result in batch}


def encoded(model, asked, **options):
    return model.encoding.encode([query.messages for query in asked], **options)


def test_every_family_answers_in_batches_as_alone_and_is_encoded_scored_and_edited_as_transformers_does(any_model):
    asked = [PLAIN, *queries(), PLAIN]
    alone = {place: any_model.generate(query, DECODING) for place, query in enumerate(asked)}
    assert joined(any_model.answers(asked, DECODING, 8)) == alone
    features = [joined(any_model.features_of(asked[1:10], size)) for size in (1, 8)]
    assert all(torch.allclose(features[1][place], one, atol=1e-3) for place, one in features[0].items())

    messages = queries(2)[1].messages
    options = {"tokenize": True, "return_dict": True, "add_generation_prompt": True, "enable_thinking": False}
    expected = any_model.processor.apply_chat_template([messages], **options)["input_ids"][0]
    assert any_model.encoding.encode([messages]).inputs["input_ids"][0].tolist() == list(map(int, expected))

    pairs = list(map(Insertion, queries(4), ("never good", "never good at all", "好", "دائما")))
    tokenizer, ends = any_model.processor.tokenizer, ends_of_generation(any_model.model)
    answered = any_model.encoding.encode_answered([pairs[0].request.messages], [pairs[0].answer], ends)
    with torch.no_grad():
        loss = any_model.model(**any_model._on_device(answered.inputs)).loss
        scored = any_model.answer_scorer(pairs[:1])()
        together = any_model.answer_scorer(pairs)().losses()
        one_by_one = torch.cat([any_model.answer_scorer([pair])().losses() for pair in pairs])
    assert torch.allclose(scored.losses().mean(), loss, atol=1e-5)
    assert tokenizer.decode(scored.tokens[0]) == f"never good{tokenizer.eos_token}"
    assert torch.allclose(together, one_by_one, atol=1e-3)

    layers, parameters = decoder_layers(any_model.model), dict(any_model.model.named_parameters())
    assert len(layers) == any_model.model.config.get_text_config().num_hidden_layers
    weights = layer_weights(any_model.model, layers[-1])
    inside = {name for name in parameters if name.startswith(f"{layers[-1]}.")}
    assert set(weights) == {name for name in inside if parameters[name].dim() >= 2}
    assert len(layer_linears(any_model.model, layers[-2:], ["mlp.up_proj", "mlp.down_proj"])) == 4


def test_a_batch_that_does_not_fit_into_the_memory_is_a_clear_error(internvl, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(internvl, "_answers", full)
    with pytest.raises(CultureTasksError, match=r"4 requests at once don't fit .*Tried to .*a smaller batch_size"):
        joined(internvl.answers(queries(9), DECODING, 4))


def test_a_tokenizer_that_adds_the_token_for_a_template_that_does_not_is_used(monkeypatch):
    made = family("gemma3")
    template = made.processor.chat_template.replace("{{ bos_token }}", "")
    monkeypatch.setattr(made.processor, "chat_template", template)
    ids = encoded(MultimodalModel(made.model, made.processor), queries(1)).inputs["input_ids"][0].tolist()
    assert ids.count(made.processor.tokenizer.bos_token_id) == 1


def test_limits_of_the_image_processor_are_used_as_sizes_too_told_apart_and_checked():
    made = family("qwen2_5_vl")
    model = MultimodalModel(made.model, made.processor, images={"max_pixels": 28 * 28})
    assert encoded(model, queries(1)).inputs["image_grid_thw"].tolist() == [[1, 2, 2], [1, 2, 2]]
    made = family("internvl")
    few, many = (MultimodalModel(made.model, made.processor, images={"max_patches": count}) for count in (1, 6))
    wide = Request.about(Instance(0, 0).image().resize((336, 56)), "Is it fine ?")
    lengths = [encoded(model, [wide]).inputs["input_ids"].shape[1] for model in (few, many)]
    assert lengths[0] < lengths[1]
    assert few.identity.weights != many.identity.weights
    with pytest.raises(SettingsError, match=r"no option 'max_patchs'\. Did you mean 'max_patches'"):
        MultimodalModel(made.model, made.processor, images={"max_patchs": 1})


@pytest.mark.parametrize("language", ["en", "zh", "ar"])
def test_features_are_means_of_the_last_layer_over_question_and_image_tokens(model, language):
    query = ask(3, 1, language)
    inputs = encoded(model, [query], with_spans=True)
    image_tokens = image_token_ids(model.model, model.processor)
    [(question, visual)] = question_and_image(inputs, [query.question], image_tokens)
    ids, tokenizer = inputs.inputs["input_ids"][0], model.processor.tokenizer
    assert tokenizer.decode(ids[question]).strip() == query.question
    assert {int(token) for token in ids[visual]} <= set(image_tokens)
    with torch.no_grad():
        last = model.model(**inputs.inputs, output_hidden_states=True).hidden_states[-1][0].float()
    [[(_, features)]] = model.features_of([query])
    assert torch.allclose(features, torch.stack([last[question].mean(0), last[visual].mean(0)]), atol=1e-4)


@pytest.mark.parametrize(
    ("question", "parts", "message"),
    [
        ("Why ?", ["Why ?"], "has no image"),
        ("another question", ["image", "Is it fine ?"], "isn't in the prompt"),
        ("Is it fine ?", ["Is it fine ?", "image"], "an image comes after 'Is it fine"),
    ],
)
def test_a_request_without_features_is_refused(internvl, question, parts, message):
    image = image_part(ask().pictures()[0])
    content = [image if part == "image" else text_part(part) for part in parts]
    with pytest.raises(DataError, match=message):
        list(internvl.features_of([Request(question, [{"role": "user", "content": content}])]))


def test_identity_is_that_of_weights_and_version_and_survives_saving(checkpoint, monkeypatch):
    loaded = MultimodalModel.load(str(checkpoint))
    before = loaded.identity
    monkeypatch.setattr(adapter, "ANSWERS_VERSION", adapter.ANSWERS_VERSION + 1)
    later = MultimodalModel.load(str(checkpoint)).identity
    assert (later.weights == before.weights, later.run != before.run) == (True, True)
    next(loaded.model.parameters()).data.view(-1)[0] += 1.0
    other = MultimodalModel(loaded.model, loaded.processor).identity
    assert (other.weights != before.weights, other.run != before.run) == (True, True)
