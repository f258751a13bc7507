"""Scopes, routers and editors against numbers worked out by hand."""

from __future__ import annotations

import functools
import itertools
import math

import pytest
import torch
from torch import nn

from culture_tasks.insertion.core.edit_scopes import (
    in_batches,
    nearest_edit,
    scope_loss,
    squared_distances,
    stored_vectors,
)
from culture_tasks.insertion.core.requests import Insertion, Request, conversation
from culture_tasks.insertion.core.scoped_method import shown_after
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.methods.mcki.router import calibrate, contrastive_loss, make_router, similarities
from culture_tasks.insertion.methods.mend.editor import (
    Editor,
    Editors,
    MendConfig,
    merged,
    moments_of,
    normalized,
    token_gradients,
    weight_gradient,
)
from culture_tasks.insertion.methods.mscke.method import fused


def edit(answer="yes", question="Is it rude?"):
    return Insertion(Request(question, []), answer)


def test_the_loss_is_the_mean_cross_entropy_of_the_scores_and_never_infinite():
    for distances, in_scope, expected in (
        ([math.log(2), math.log(2)], [True, False], math.log(2)),  # s = 1/2 for both: ln 2 on either side
        ([0.0, 1.0], [True, False], -math.log(1 - math.exp(-1)) / 2),  # 0, and -ln(1 - exp(-1))
    ):
        assert float(scope_loss(torch.tensor(distances), torch.tensor(in_scope))) == pytest.approx(expected)
    distances = torch.tensor([0.0, 0.0], requires_grad=True)
    cost = scope_loss(distances, torch.tensor([False, True]))
    cost.backward()
    assert 10 < float(cost.detach()) < 20
    assert torch.isfinite(distances.grad).all()


def test_images_and_texts_are_fused_by_hand():
    images, texts, half = torch.tensor([[0.6, 0.8]]), torch.tensor([[0.8, -0.6]]), math.sqrt(0.5)
    # (0.48, -0.48), of length 0.48 * sqrt 2
    assert fused(texts, images, "dot")[0].tolist() == pytest.approx([half, -half])
    concatenated = fused(texts, images, "concatenation")[0]  # the image after the text
    assert concatenated.tolist() == pytest.approx([half * value for value in (0.8, -0.6, 0.6, 0.8)])


def test_the_replacement_model_reads_the_edit_before_the_request():
    system = {"role": "system", "content": "Be brief."}
    request = Request("Is it fine?", conversation([system, {"role": "user", "content": "Is it fine?"}]))
    messages = shown_after(edit("yes", "Is it rude?"), request).messages
    assert [message["role"] for message in messages] == ["system", "user"]
    assert [part["text"] for part in messages[1]["content"]] == ["Is it rude? yes\n", "Is it fine?"]


@pytest.mark.parametrize(
    ("scores", "request_", "expected"),
    [
        (similarities, [0.6, 0.8], (1, 0.8)),  # cosines 0.6, 0.8 whatever the lengths
        (lambda edits, request: -squared_distances(edits, request), [0.0, 1.1], (1, -1.0)),  # -10.21, -1
        (similarities, [0.0, -1.0], (0, 0.0)),  # of 0 and -1
    ],
)
def test_the_memory_returns_the_nearest_edit(scores, request_, expected):
    vectors = {"first": [3.0, 0.0], "second": [0.0, 0.1], "again": [0.0, 0.1]}
    memory = [(torch.tensor(vector), edit(answer)) for answer, vector in vectors.items()]
    place, score = nearest_edit(memory, torch.tensor(request_), scores)
    assert (place, float(score)) == (expected[0], pytest.approx(expected[1]))


def test_vectors_are_computed_in_batches_and_once_for_the_store(tmp_path):
    batches = []

    def encode(texts):
        batches.append(list(texts))
        return torch.tensor([[float(len(text))] for text in texts])

    for prefix, texts, expected in (
        ("encoder", ["a", "bb", "ccc"], [["a", "bb"], ["ccc"]]),
        ("encoder", ["ccc", "dddd"], [["dddd"]]),
        ("another", ["a"], [["a"]]),
    ):
        inputs = {text: text for text in texts}
        vectors = stored_vectors(Store(tmp_path / "store"), prefix, inputs, in_batches(encode), 2)
        assert {text: vector.tolist() for text, vector in vectors.items()} == {text: [len(text)] for text in texts}
        assert batches == expected
        batches.clear()


def test_the_routers_vectors_have_length_one_and_its_size_is_that_of_table_4():
    vectors = make_router(8, 16, seed=0)(torch.randn(5, 2, 8))
    assert vectors.shape == (5, 16)
    assert torch.allclose(vectors.norm(dim=-1), torch.ones(5), atol=1e-5)
    # Two norms 2*2*4096, two projections 2*(4096*1024 + 1024), fusion 2048*1024 + 1024: 0.0105 billion, the
    # difference of Table 4 between MCKI (8.54) and the plain InternVL3.5-8B (8.53), both rounded.
    count = sum(parameter.numel() for parameter in make_router(4096, 1024, seed=0).parameters())
    assert count == 4 * 4096 + 2 * (4096 * 1024 + 1024) + 2048 * 1024 + 1024


@pytest.mark.parametrize(
    ("positive", "negative", "weights", "scale", "factor", "expected"),
    [
        # l+ = 2*1 = 2, l- = 2*0.5 + ln 1.5; loss = -2 + ln(e^2 + 1.5 e)
        ([1.0], [0.5], [1.5], 2.0, 1.0, -2 + math.log(math.e**2 + 1.5 * math.e)),
        # The same negatives beside each positive: (-1 + ln(e + 1) - 0 + ln(1 + 1)) / 2
        ([1.0, 0.0], [0.0], [1.0], 1.0, 1.0, (-1 + math.log(math.e + 1) + math.log(2)) / 2),
        ([0.0], [0.0], [1.5], 1.0, 1.0, math.log(2.5)),  # -0 + ln(1 + 1.5)
        ([0.3, 1.0], [], [], 20.0, 1.0, 0.0),
        # -1 + 0.5 ln(e + 1): the factor scales the logarithm alone
        ([1.0], [0.0], [1.0], 1.0, 0.5, -1 + 0.5 * math.log(math.e + 1)),
        # The paper's scale doesn't overflow.
        ([-1.0], [1.0], [1.5], 20.0, 1.0, 40 + math.log(1.5)),
    ],
)
def test_the_loss_by_hand(positive, negative, weights, scale, factor, expected):
    loss = contrastive_loss(*map(torch.tensor, (positive, negative, weights)), scale, factor)
    assert float(loss) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("positive", "negative", "threshold", "accuracy"),
    [
        ([0.8, 1.0], [0.0, 0.4], 0.6, 1.0),  # the middle of the gap
        # 3 of 4 are right for t in (0.1, 0.2] and for t in (0.5, 0.9]: the second is wider.
        ([0.2, 0.9], [0.1, 0.5], 0.7, 0.75),
        # Both (0.0, 0.25] and (0.5, 0.75] get 3 of 4 right, and are of width 0.25 exactly: the highest.
        ([0.25, 0.75], [0.0, 0.5], 0.625, 0.75),
        # t in [-1, 0.5] and t in (0.5, 1] get 1 of 2 right; the first is wider.
        ([0.5], [0.5], -0.25, 0.5),
        ([0.2], [], -0.4, 1.0),  # the middle of [-1, 0.2]
        ([], [0.2], 0.6, 1.0),  # the middle of (0.2, 1]
        ([1.0000001], [-1.0000001], 0.0, 1.0),  # rounding beyond 1 is cut off
        ([1.0, 1.0], [1.0], 0.0, 2 / 3),  # a negative at 1 can't be told from a positive there
    ],
)
def test_the_threshold_by_hand(positive, negative, threshold, accuracy):
    assert calibrate(positive, negative) == pytest.approx((threshold, accuracy))


def chain(*widths, dtype=torch.float32):
    """Linear maps, one after the other, without gradients."""
    torch.manual_seed(0)
    maps = [nn.Linear(first, second, dtype=dtype) for first, second in itertools.pairwise(widths)]
    return nn.Sequential(*maps).requires_grad_(requires_grad=False)


def editors_of(model, **options):
    linears = {str(number): linear for number, linear in enumerate(model)}
    return Editors(linears, MendConfig(rank=2, **options))


def gradients_of(model, inputs, wanted):
    linears = {str(number): linear for number, linear in enumerate(model)}
    [gradients] = token_gradients(linears, lambda: (model(inputs) - wanted).square().sum()[None])
    return gradients


def test_gradients_of_tokens_by_hand():
    [linear] = model = chain(2, 1)
    linear.weight.copy_(torch.tensor([[1.0, 2.0]]))
    linear.bias.zero_()
    # Outputs 5, 1 and 0; of the loss (5 - 4)^2 + (1 - 1)^2 + (0 - 1)^2 the gradients at them are 2, 0 and -2. The
    # second token has no gradient and the third no input, so both are left out.
    inputs, wanted = [[[3.0, 1.0], [1.0, 0.0], [0.0, 0.0]]], [[4.0], [1.0], [1.0]]
    found = gradients_of(model, torch.tensor(inputs), torch.tensor(wanted))["0"]
    assert found.tolist() == [[3.0, 1.0, 2.0]]
    assert weight_gradient(found, 2).tolist() == [[6.0, 2.0]]


def test_moments_by_hand_and_in_parts():
    moments = moments_of(torch.tensor([[1.0, 0.0], [3.0, 0.0]]))
    # Count 2, means 2 and 0, squared deviations 1 + 1 and 0; deviations sqrt(2 / 1) and 0.
    assert moments.tolist() == [2, 2, 0, 2, 0]
    assert normalized(torch.tensor([[4.0, 0.0]]), moments).tolist()[0] == pytest.approx([math.sqrt(2), 0])
    rows = 5 + 3 * torch.randn(20, 4)
    in_parts = functools.reduce(merged, map(moments_of, rows.split([1, 0, 12, 7])))
    assert torch.allclose(in_parts, moments_of(rows))
    for few in (rows[:1], rows[:0]):  # too few to normalise by
        assert torch.equal(normalized(rows, moments_of(few)), rows)


def test_an_editor_starts_as_the_identity_and_every_layer_learns():
    editor, rows = Editor(5, weights=2, rank=4, hidden_layers=1), torch.randn(5, 5)
    assert all(torch.equal(editor(rows, weight), rows) for weight in (0, 1))
    editor(rows, 0).square().sum().backward()
    assert all(layer.u.grad.abs().sum() > 0 for layer in editor.layers)


def test_an_editors_layer_by_hand():
    editor = Editor(2, weights=2, rank=1, hidden_layers=1)
    first, last = editor.layers
    with torch.no_grad():
        first.u.copy_(torch.tensor([[1.0], [-2.0]]))
        first.v.copy_(torch.tensor([[1.0, 1.0]]))
        first.bias.copy_(torch.tensor([0.5, 0.0]))
        first.scale[1] = torch.tensor([2.0, 1.0])
        first.shift[1] = torch.tensor([0.0, 7.0])
    gradients = torch.tensor([[1.0, 2.0]])
    # V x = 3, U V x + bias = (3.5, -6); what is negative is cut off, and x added: (1 + 3.5, 2 + 0). The last layer
    # is still the identity; it cuts off too.
    assert editor(gradients, 0).tolist() == [[4.5, 2.0]]
    # With scale and shift of the second weight: (7, -6 + 7).
    assert editor(gradients, 1).tolist() == [[8.0, 3.0]]
    with torch.no_grad():
        last.bias.copy_(torch.tensor([-10.0, 0.25]))
    assert editor(gradients, 0).tolist() == [[4.5, 2.25]]


def test_normalized_gradients_are_what_an_untrained_editor_returns():
    model = chain(3, 4, 3, 4)
    editors = editors_of(model)
    assert list(editors.of_shape) == ["4x3", "3x4"]
    assert len(editors.of_shape["4x3"].layers[0].scale) == 2
    assert len(editors.rates) == 3
    gradients = gradients_of(model, torch.randn(1, 5, 3), torch.randn(1, 5, 4))
    moments = editors.moments(gradients)
    rows = torch.cat([gradients["0"], gradients["2"]])
    together = (rows - rows.mean(0)) / rows.std(0)
    found = editors.transformed(gradients, moments)
    assert torch.allclose(torch.cat([found["0"], found["2"]]), together, atol=1e-4)
    editors.absorb(moments)
    again = editors.transformed(gradients)
    assert torch.equal(again["0"], found["0"])
    plain = editors_of(model, normalize=False).transformed(gradients, moments)
    assert torch.equal(plain["0"], gradients["0"])
