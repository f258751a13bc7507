"""Changing outputs of linear maps, the tokens that are a prompt's, and the layers that are published."""

from __future__ import annotations

import pytest
from support.insertion_requests import ask

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.layer_outputs import OutputEdits, layer_output, published_layer
from culture_tasks.insertion.core.queries import AnswerDecoding


def test_an_edit_sees_prompts_without_padding_and_without_answers(model):
    _, linear = layer_output(model.model, "mlp.down_proj", -1, method="a method")
    seen = []
    edits = OutputEdits(model.model, {linear: lambda inputs, output, prompts: seen.append((inputs, prompts)) or output})
    queries = [ask(), ask(1, 1, "zh")]
    lengths = [model.generate(query, AnswerDecoding(max_new_tokens=1)).prompt_tokens for query in queries]
    assert lengths[0] != lengths[1]
    edits.start()
    edits.start()
    list(model.answers(queries, AnswerDecoding(max_new_tokens=3), batch_size=2))
    first, *later = seen
    assert sorted(first[1].sum(1).tolist()) == sorted(lengths)
    assert first[1].shape == first[0].shape[:2] == (2, max(lengths))
    assert first[1][:, -1].all()
    assert later
    assert all(prompts is None for _, prompts in later)
    seen.clear()
    pairs = [(query, answer) for query, answer in zip(queries, ("hat", "a long answer"), strict=True)]
    tokens = model.answer_scorer(pairs)().mask.shape[1]
    [(inputs, prompts)] = seen
    assert prompts.sum(1).tolist() == lengths
    assert prompts.shape == inputs.shape[:2] == (2, max(lengths) + tokens)
    assert prompts[:, max(lengths) - 1].all()
    assert not prompts[:, max(lengths) :].any()
    edits.stop()
    seen.clear()
    model.generate(queries[0], AnswerDecoding(max_new_tokens=1))
    assert not seen


@pytest.mark.parametrize(
    ("layers", "expected"),
    # In proportion to the nearest published depth: 18 * 29 / 28 = 18.6, 23 * 48 / 36 = 30.7, 18 * 2 / 28 = 1.3.
    [(36, 23), (32, 18), (28, 18), (29, 18), (48, 30), (2, 1)],
)
def test_layers_are_those_of_published_models(layers, expected):
    assert published_layer({36: 23, 32: 18, 28: 18}, layers) == expected


def test_a_layer_that_is_not_there_is_refused(internvl):
    with pytest.raises(SettingsError, match=r"layer=2 of a method\. The model has layers 0 to 1"):
        layer_output(internvl.model, "mlp.down_proj", 2, method="a method")
