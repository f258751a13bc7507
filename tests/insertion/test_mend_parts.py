"""MEND's editors, moments and losses, on cases that are worked out by hand."""

from __future__ import annotations

import functools
import itertools
import math

import pytest
import torch
from torch import nn

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


class TestTokenGradients:
    def test_a_case_by_hand(self):
        linear = nn.Linear(2, 1, bias=False).requires_grad_(requires_grad=False)
        linear.weight.copy_(torch.tensor([[1.0, 2.0]]))
        inputs = torch.tensor([[[3.0, 1.0], [1.0, 0.0], [0.0, 0.0]]])
        # Outputs 5, 1 and 0; of the loss (5 - 4)^2 + (1 - 1)^2 + (0 - 1)^2 the gradients at them are 2, 0 and -2. The
        # second token has no gradient and the third no input, so both are left out.
        [gradients] = token_gradients(
            {"map": linear}, lambda: (linear(inputs) - torch.tensor([[4.0], [1.0], [1.0]])).square().sum((1, 2))
        )
        found = gradients["map"]
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


class TestEditor:
    def test_starts_as_the_identity_and_every_layer_learns(self):
        editor, rows = Editor(5, weights=2, rank=4, hidden_layers=1), torch.randn(5, 5)
        assert all(torch.equal(editor(rows, weight), rows) for weight in (0, 1))
        editor(rows, 0).square().sum().backward()
        assert all(layer.u.grad.abs().sum() > 0 for layer in editor.layers)

    def test_a_layer_by_hand(self):
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


class TestEditors:
    def test_normalized_gradients_are_what_an_untrained_editor_returns(self):
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

    def test_an_edit_is_computed_in_float32(self):
        model = chain(3, 4, dtype=torch.bfloat16)
        editors = editors_of(model, edit_rate=0.5)
        gradients = gradients_of(model, torch.randn(1, 5, 3, dtype=torch.bfloat16), torch.zeros(1))
        before = {"0.weight": model[0].weight}
        edited = editors.edited(editors.transformed(gradients), editors.rates, before)["0.weight"]
        assert torch.equal(edited, model[0].weight.float() - 0.5 * weight_gradient(gradients["0"], 3))
