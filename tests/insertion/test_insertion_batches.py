"""Requests in batches: the same answers, one begin-of-text token, and no more memory than a batch needs."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from support.tiny_families import family
from support.tiny_world import Instance

from culture_tasks.errors import CultureTasksError, SettingsError
from culture_tasks.insertion.core.adapter import MultimodalModel, check_room
from culture_tasks.insertion.core.decoding import Decoding
from culture_tasks.insertion.core.encoding import ends_of_generation
from culture_tasks.insertion.core.queries import Query, image_part, text_part

DECODING = Decoding(max_new_tokens=12)


def queries(count=18):
    """Requests of many lengths: with wide images, with a second image, and with a text before them."""
    asked = []
    for number in range(count):
        instance, language = Instance(number % 8, number), ("en", "zh", "ar")[number % 3]
        image = instance.image().resize((112, 56)) if number % 4 == 0 else instance.image()
        query = Query.about(image, instance.question(language), "请用一句话简单回答。")
        if number % 5 == 0:
            other = Query.about(Instance(1, number).image(), "another")
            parts = [*map(image_part, other.pictures()), text_part(f"Reference: {instance.answer(language)}\n")]
            query = query.preceded_by(parts)
        asked.append(query)
    return asked


def test_answers_in_a_batch_are_those_on_their_own(model):
    asked = queries()
    alone = {place: model.generate(query, DECODING) for place, query in enumerate(asked)}
    assert dict(model.answers(asked, DECODING, 16)) == alone
    assert dict(model.answers(asked, DECODING, 1)) == alone


def test_features_in_a_batch_are_those_on_their_own(model):
    asked = queries(9)
    together = dict(model.features_of(asked, 8))
    for place, query in enumerate(asked):
        alone = model.features(query)
        assert torch.allclose(together[place], alone, atol=1e-3)


def test_requests_without_images_are_answered_beside_the_others(internvl):
    plain = Query("Why ?", lambda: [{"role": "user", "content": [text_part("Why ?")]}])
    asked = [plain, *queries(3), plain]
    assert dict(internvl.answers(asked, DECODING, 4)) == {
        place: internvl.generate(query, DECODING) for place, query in enumerate(asked)
    }


def test_a_tokenizer_that_adds_the_token_for_a_template_that_does_not_is_used():
    made = family("gemma3")
    template = made.processor.chat_template
    try:
        made.processor.chat_template = template.replace("{{ bos_token }}", "")
        model = MultimodalModel(made.model, made.processor)
        ids = model._encoded(queries(1)).inputs["input_ids"][0].tolist()
    finally:
        made.processor.chat_template = template
    assert ids.count(made.processor.tokenizer.bos_token_id) == 1


def test_a_conversation_is_encoded_as_the_processor_itself_does_it(model):
    messages = queries(2)[1].messages()
    chosen = model.processor.apply_chat_template(
        [messages], tokenize=True, return_dict=True, add_generation_prompt=True, enable_thinking=False
    )
    assert model._encoding.encode([messages]).inputs["input_ids"][0].tolist() == [
        int(token) for token in chosen["input_ids"][0]
    ]


def test_options_of_the_image_processor_are_used_and_told_apart():
    made = family("internvl")
    few, many = (MultimodalModel(made.model, made.processor, images={"max_patches": count}) for count in (1, 6))
    wide = Query.about(Instance(0, 0).image().resize((336, 56)), "Is it fine ?")
    lengths = [model._encoded([wide]).inputs["input_ids"].shape[1] for model in (few, many)]
    assert lengths[0] < lengths[1]
    assert few.identity.weights != many.identity.weights
    with pytest.raises(SettingsError, match=r"no option 'max_patchs'\. Did you mean 'max_patches'"):
        MultimodalModel(made.model, made.processor, images={"max_patchs": 1})


def test_images_are_kept_no_longer_than_their_batch(internvl):
    alive, most = [], []

    def asked(number):
        def load():
            most.append(len(alive))
            image = Instance(0, number).image()
            alive.append(number)
            weakref.finalize(image, alive.remove, number)
            return Query.about(image, f"Is it fine ? {number}").messages()

        return Query("Is it fine ?", load)

    everything = [asked(number) for number in range(40)]
    for query in everything:
        assert query.key
    for _ in internvl.answers(everything, Decoding(max_new_tokens=1), 4):
        pass
    gc.collect()
    assert len(most) == 80
    assert max(most) <= 4 * 4  # the batch that is answered, two that are read ahead, and one in the making
    assert not alive


class TestMemory:
    def test_a_batch_that_does_not_fit_is_halved(self, internvl, monkeypatch):
        asked, sizes = queries(9), []
        expected = dict(internvl.answers(asked, DECODING, 1))
        answers = internvl._answers

        def limited(encoded, decoding):
            sizes.append(len(encoded.prompts))
            if len(encoded.prompts) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
            return answers(encoded, decoding)

        monkeypatch.setattr(internvl, "_answers", limited)
        assert dict(internvl.answers(asked, DECODING, 8)) == expected
        assert 8 in sizes
        assert 4 in sizes

    def test_a_request_that_does_not_fit_alone_is_a_clear_error(self, internvl, monkeypatch):
        def never(encoded, decoding):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

        monkeypatch.setattr(internvl, "_answers", never)
        with pytest.raises(CultureTasksError, match=r"a single request doesn't fit .*max_patches"):
            dict(internvl.answers(queries(2), DECODING, 2))

    def test_a_gpu_that_is_too_small_is_refused_with_what_is_needed(self):
        config = family("internvl").model.config
        size = 2 * family("internvl").model.num_parameters()
        check_room("big", config, "bfloat16", free=size)
        for dtype, free in (("bfloat16", size - 1), ("float32", size)):
            with pytest.raises(SettingsError, match=r"the weights of 'big' need .*GPU has .*free.*device_map=auto"):
                check_room("big", config, dtype, free=free)


class TestAnswers:
    def test_the_loss_is_the_models_own(self, model):
        query, answer = queries(1)[0], "never good"
        end = model._encoding.end_of_answer(ends_of_generation(model.model))
        assert end == model.processor.tokenizer.eos_token_id
        encoded = model._encoding.encode_answered([query.messages()], [answer], end)
        with torch.no_grad():
            own = model.model(**model._placed(encoded.inputs)).loss
            ours = model.answer_loss([(query, answer)])
        assert torch.allclose(ours, own, atol=1e-5)

    def test_the_tokens_are_the_answers_with_the_end_of_the_turn(self, model):
        tokenizer = model.processor.tokenizer
        found = model.answer_scorer([(queries(1)[0], "never good")])()
        assert tokenizer.decode(found.tokens[0]) == f"never good{tokenizer.eos_token}"
        assert found.logits.shape == (1, found.tokens.shape[1], found.logits.shape[-1])

    def test_pairs_of_other_lengths_do_not_change_a_loss(self, model):
        pairs = list(zip(queries(4), ("good", "never good at all", "好", "دائما"), strict=True))
        with torch.no_grad():
            together = model.answer_scorer(pairs)().losses()
            alone = torch.cat([model.answer_scorer([pair])().losses() for pair in pairs])
        assert torch.allclose(together, alone, atol=1e-3)

    def test_gradients_reach_what_wants_them(self, internvl):
        weight = internvl.model.get_output_embeddings().weight
        weight.requires_grad_(requires_grad=True)
        internvl.answer_loss([(queries(1)[0], "good")]).backward()
        assert weight.grad is not None
        assert float(weight.grad.abs().sum()) > 0
        weight.requires_grad_(requires_grad=False)
        weight.grad = None
