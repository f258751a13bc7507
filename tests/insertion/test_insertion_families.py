"""The adapter and MCKI over tiny models of several families: nothing may depend on the family's name."""

from __future__ import annotations

import pytest
import torch
from support.insertion_requests import ask
from support.tiny_families import family
from support.tiny_world import Instance

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.core import adapter
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.encoding import ends_of_generation
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request, image_part, text_part
from culture_tasks.insertion.methods.mcki.method import MckiMethod

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


def with_threshold(model, threshold):
    method = MckiMethod(model)
    method.threshold = threshold
    return method


def out_of_memory(limit, answers=None):
    """A model that answers at most so many requests together."""

    def limited(encoded, decoding):
        if len(encoded.prompts) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return answers(encoded, decoding)

    return limited


class TestBatches:
    def test_answers_and_features_in_a_batch_are_those_on_their_own(self, any_model):
        asked = [PLAIN, *queries(), PLAIN]
        alone = {place: any_model.generate(query, DECODING) for place, query in enumerate(asked)}
        assert joined(any_model.answers(asked, DECODING, 8)) == alone
        shown = asked[1:10]
        together = joined(any_model.features_of(shown, 8))
        assert all(
            torch.allclose(together[place], any_model.features(query), atol=1e-3) for place, query in enumerate(shown)
        )

    def test_a_batch_that_does_not_fit_is_halved_down_to_a_clear_error(self, internvl, monkeypatch):
        asked = queries(9)
        expected = joined(internvl.answers(asked, DECODING, 1))
        monkeypatch.setattr(internvl, "_answers", out_of_memory(2, internvl._answers))
        assert joined(internvl.answers(asked, DECODING, 8)) == expected
        monkeypatch.setattr(internvl, "_answers", out_of_memory(0))
        with pytest.raises(CultureTasksError, match=r"a single request doesn't fit .*max_patches"):
            joined(internvl.answers(asked, DECODING, 2))


class TestEncoding:
    def test_a_conversation_is_encoded_as_the_processor_itself_does_it(self, any_model):
        messages = queries(2)[1].messages
        options = {"tokenize": True, "return_dict": True, "add_generation_prompt": True, "enable_thinking": False}
        expected = any_model.processor.apply_chat_template([messages], **options)["input_ids"][0]
        assert any_model.encoding.encode([messages]).inputs["input_ids"][0].tolist() == [
            int(token) for token in expected
        ]

    def test_a_tokenizer_that_adds_the_token_for_a_template_that_does_not_is_used(self):
        made = family("gemma3")
        template = made.processor.chat_template
        try:
            made.processor.chat_template = template.replace("{{ bos_token }}", "")
            ids = encoded(MultimodalModel(made.model, made.processor), queries(1)).inputs["input_ids"][0].tolist()
        finally:
            made.processor.chat_template = template
        assert ids.count(made.processor.tokenizer.bos_token_id) == 1

    def test_limits_that_a_processor_has_as_sizes_are_set_there(self):
        made = family("qwen2_5_vl")
        model = MultimodalModel(made.model, made.processor, images={"max_pixels": 28 * 28})
        assert encoded(model, queries(1)).inputs["image_grid_thw"].tolist() == [[1, 2, 2], [1, 2, 2]]

    def test_options_of_the_image_processor_are_used_and_told_apart(self):
        made = family("internvl")
        few, many = (MultimodalModel(made.model, made.processor, images={"max_patches": count}) for count in (1, 6))
        wide = Request.about(Instance(0, 0).image().resize((336, 56)), "Is it fine ?")
        lengths = [encoded(model, [wide]).inputs["input_ids"].shape[1] for model in (few, many)]
        assert lengths[0] < lengths[1]
        assert few.identity.weights != many.identity.weights
        with pytest.raises(SettingsError, match=r"no option 'max_patchs'\. Did you mean 'max_patches'"):
            MultimodalModel(made.model, made.processor, images={"max_patchs": 1})


def test_losses_are_the_models_own_whatever_other_pairs_there_are(any_model):
    pairs = list(map(Insertion, queries(4), ("never good", "never good at all", "好", "دائما")))
    tokenizer, ends = any_model.processor.tokenizer, ends_of_generation(any_model.model)
    answered = any_model.encoding.encode_answered([pairs[0].request.messages], [pairs[0].answer], ends)
    with torch.no_grad():
        expected = any_model.model(**any_model._on_device(answered.inputs)).loss
        scored = any_model.answer_scorer(pairs[:1])()
        together = any_model.answer_scorer(pairs)().losses()
        alone = torch.cat([any_model.answer_scorer([pair])().losses() for pair in pairs])
    assert torch.allclose(scored.losses().mean(), expected, atol=1e-5)
    assert tokenizer.decode(scored.tokens[0]) == f"never good{tokenizer.eos_token}"
    assert scored.logits.shape == (1, scored.tokens.shape[1], scored.logits.shape[-1])
    assert torch.allclose(together, alone, atol=1e-3)


def test_answers_that_mcki_does_not_activate_are_the_plain_models_with_one_prefill(model):
    method = with_threshold(model, 2.0)
    method.insert(Insertion(ask(), "never"))
    lengths = []

    def note(_module, positional, named):
        ids = positional[0] if positional else named.get("input_ids")
        lengths.append(named["inputs_embeds"].shape[1] if ids is None else ids.shape[1])

    for query in (ask(), ask(1, 1, "zh"), ask(2, 2, "ar")):
        with model.model.base_model.register_forward_pre_hook(note, with_kwargs=True):
            answer = method.generate(query, DECODING)
        assert (answer.text, answer.activated) == (model.generate(query, DECODING).text, None)
        assert sum(length > 1 for length in lengths) == 1
        assert len(lengths) == answer.new_tokens
        lengths.clear()


@pytest.mark.parametrize("language", ["en", "zh", "ar"])
def test_features_are_means_of_the_last_layer_over_question_and_image_tokens(model, language):
    query = ask(3, 1, language)
    inputs = encoded(model, [query], with_spans=True)
    question, visual = model._masks(inputs, [query])[0]
    ids, tokenizer = inputs.inputs["input_ids"][0], model.processor.tokenizer
    assert tokenizer.decode(ids[question]).strip() == query.question
    shown = set(tokenizer.convert_ids_to_tokens(ids[visual].tolist()))
    assert len(shown) == 1
    assert shown <= set(tokenizer.all_special_tokens)
    assert not (question & visual).any()
    with torch.no_grad():
        last = model.model(**inputs.inputs, output_hidden_states=True).hidden_states[-1][0].float()
    features = model.features(query)
    assert torch.allclose(features, torch.stack([last[question].mean(0), last[visual].mean(0)]), atol=1e-4)
    assert features.shape == (2, last.shape[1])


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
        internvl.features(Request(question, [{"role": "user", "content": content}]))


def test_identity_is_that_of_weights_and_version_and_survives_saving(tmp_path, monkeypatch):
    made = family("internvl")

    def identity():
        return MultimodalModel(made.model, made.processor).identity

    before = identity()
    made.model.save_pretrained(tmp_path)
    made.processor.save_pretrained(tmp_path)
    assert identity().weights == MultimodalModel.load(str(tmp_path)).identity.weights == before.weights
    weight = next(made.model.parameters()).data.view(-1)
    first = weight[0].clone()
    weight[0] += 1.0
    other = identity()
    weight[0] = first  # to the bit: the toy model is one for the process
    assert other.weights != before.weights
    assert other.run != before.run
    monkeypatch.setattr(adapter, "ANSWERS_VERSION", adapter.ANSWERS_VERSION + 1)
    later = identity()
    assert later.weights == before.weights
    assert later.run != before.run
