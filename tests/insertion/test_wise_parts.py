"""WISE's routing activation, margin loss and merging, against numbers made by hand."""

from __future__ import annotations

import pytest
import torch

from culture_tasks.insertion.core.method_registry import method_config
from culture_tasks.insertion.methods.wise.method import margin_loss, routing_activations, ties_merged


def test_an_activation_is_the_mean_norm_over_the_prompts_tokens():
    delta = torch.tensor([[3.0, 0.0], [4.0, 0.0], [0.0, 1.0]])
    inputs = torch.tensor([[[9.0, 9.0], [1.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [0.0, 2.0], [7.0, 7.0]]])
    prompts = torch.tensor([[False, True, True], [True, True, False]])
    # First request: |(3, 4, 0)| = 5 and |(6, 8, 0)| = 10, mean 7.5. Second: 5 and |(0, 0, 2)| = 2, mean 3.5.
    assert routing_activations(delta, inputs, prompts).tolist() == [7.5, 3.5]
    assert routing_activations(0 * delta, inputs, prompts).tolist() == [0.0, 0.0]


def test_an_untrained_memory_has_an_activation_of_zero_and_a_gradient_that_is_a_number():
    delta = torch.zeros(3, 2, requires_grad=True)
    routing_activations(delta, torch.ones(1, 4, 2), torch.ones(1, 4, dtype=torch.bool)).sum().backward()
    assert torch.equal(delta.grad, torch.zeros(3, 2))


@pytest.mark.parametrize(
    ("edit", "irrelevant", "expected"),
    [
        (25.0, 5.0, 0.0),  # 25 >= 20, 5 <= 5, 25 - 5 >= 10
        (12.0, 7.0, (7 - 5) + (20 - 12) + (10 - 5)),
        (0.0, 0.0, 0 + 20 + 10),
        (22.0, 14.0, (14 - 5) + 0 + (10 - 8)),
        (18.0, 3.0, 0 + 2 + 0),
    ],
)
def test_the_margin_loss_by_hand(edit, irrelevant, expected):
    numbers = torch.tensor([edit], requires_grad=True), torch.tensor([irrelevant], requires_grad=True)
    loss = margin_loss(*numbers, method_config("wise", {}))
    assert loss.tolist() == [expected]
    if expected:
        loss.sum().backward()
        assert numbers[0].grad <= 0 <= numbers[1].grad


def test_shards_are_trimmed_agree_on_signs_and_are_averaged():
    # Half of the entries stay: |-4| and |3|; |5| and |-2|; |2| and |6|.
    shards = [[-4.0, 1.0, 0.5, 3.0], [1.0, 5.0, 0.5, -2.0], [2.0, -1.0, 6.0, 0.0]]
    # Trimmed: (-4, 0, 0, 3), (0, 5, 0, -2), (2, 0, 6, 0). Signs of the sums (-2, 5, 6, 1): minus, plus, plus, plus.
    merged = ties_merged([torch.tensor([row]) for row in shards], 0.5)
    assert merged.tolist() == [[-4.0, 5.0, 6.0, 3.0]]
    assert ties_merged([torch.tensor([[1.0, 3.0]]), torch.tensor([[3.0, -3.0]])], 1.0).tolist() == [[2.0, 3.0]]
    assert ties_merged([torch.tensor([[1.0, 0.1, 0.2]])], 0.01).tolist() == [[1.0, 0.0, 0.0]]
