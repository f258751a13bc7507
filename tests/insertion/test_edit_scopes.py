"""Scope scores, their loss, and the vectors that they compare, against cases worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from culture_tasks.insertion.core.edit_scopes import (
    StoredVectors,
    in_batches,
    nearest_edit,
    scope_loss,
    squared_distances,
)
from culture_tasks.insertion.core.queries import Insertion, Query
from culture_tasks.insertion.core.scoped_method import shown_after
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.methods.mcki.router import similarities
from culture_tasks.insertion.methods.mscke.method import fused


def edit(answer="yes", question="Is it rude?"):
    return Insertion(Query(question, list), answer)


def loss(distances, in_scope):
    return float(scope_loss(torch.tensor(distances), torch.tensor(in_scope)))


def test_the_loss_is_the_mean_cross_entropy_of_the_scores():
    # s = 1/2 for both: ln 2 on either side
    assert loss([math.log(2), math.log(2)], [True, False]) == pytest.approx(math.log(2))
    # 0, and -ln(1 - exp(-1))
    assert loss([0.0, 1.0], [True, False]) == pytest.approx(-math.log(1 - math.exp(-1)) / 2)


def test_equal_vectors_that_should_differ_cost_much_and_not_infinitely_much():
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
    request = Query("Is it fine?", lambda: [system, {"role": "user", "content": "Is it fine?"}])
    messages = shown_after(edit("yes", "Is it rude?"), request).messages()
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
    match = nearest_edit(memory, torch.tensor(request_), scores)
    assert (match.place, float(match.score)) == (expected[0], pytest.approx(expected[1]))
    assert match.edit.answer == ("first", "second")[match.place]


class Encode:
    """Turns texts into their lengths, and remembers in which batches."""

    def __init__(self):
        self.batches = []

    def __call__(self, texts):
        self.batches.append(list(texts))
        return torch.tensor([[float(len(text))] for text in texts])


def test_vectors_are_computed_in_batches_and_once_for_the_store(tmp_path):
    first, again, other = Encode(), Encode(), Encode()
    for prefix, encode in (("encoder", first), ("encoder", again), ("another", other)):
        vectors = StoredVectors(prefix, str, in_batches(encode))
        vectors.prepare(["a", "bb", "a", "ccc"], ValueStore(tmp_path / "store"), batch_size=2)
        assert vectors.of(["ccc", "a", "dddd"]).tolist() == [[3.0], [1.0], [4.0]]
    assert first.batches == other.batches == [["a", "bb"], ["ccc"], ["dddd"]]
    assert again.batches == [["dddd"]]
