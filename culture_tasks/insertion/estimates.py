"""Hours and memory of insertion methods, estimated from the shapes of models and the number of requests.

No weights are needed. Time is the arithmetic of each pass at a share of what the device can do, and of decoding the
reading of the weights, or the launching of kernels where that takes longer. The shares are assumptions, which
:data:`ASSUMED` says; `speed/insertion.py` sets measurements beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from culture_tasks.insertion.core.device_meter import device_name
from culture_tasks.insertion.core.encoding import Encoding, image_token_ids
from culture_tasks.insertion.core.progress import READERS
from culture_tasks.insertion.core.queries import Query
from culture_tasks.insertion.core.weight_edits import decoder_layers

if TYPE_CHECKING:
    from transformers import PreTrainedModel

EVALUATED = ""
"""The key of the model under evaluation among a method's models; others have the name of the option that names them."""

Models = Mapping[str, Any]
"""Models of transformers without weights, by these keys."""

_GIB = 2**30
_ARITHMETIC, _READING = 0.4, 0.6  # shares of a device's peak
_LAUNCH = 0.0008  # seconds for the kernels of one layer
_PIXELS = 25e-6  # seconds of one core to prepare an image, for each of its tokens (InternVL's processor, measured)
_IN_FLIGHT = 64  # requests that a backend decodes together

ASSUMED = (
    f"{_ARITHMETIC:.0%} of the device's arithmetic and {_READING:.0%} of its memory bandwidth are used; transformers "
    f"takes {1000 * _LAUNCH:g} ms for a layer of a decoding step, a backend none, and it decodes {_IN_FLIGHT} requests "
    f"together; each of {READERS} cores prepares an image in {1e6 * _PIXELS:g} µs for each of its tokens; every "
    "answer has all of its tokens; the requests that should use an insertion do; encoders take no time"
)
"""The assumptions of all estimates."""


@dataclass(frozen=True, slots=True)
class CaseShape:
    """The number of training cases, of their distinct requests, and the mean number of items of a case."""

    count: int
    requests: int
    generality: float
    locality: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodWork:
    """The computation of a method beside the answers themselves, by the model that computes.

    A pass is one forward pass over one request. A backward pass through a share of the layers is as much again for the
    gradients of their inputs, and once more for those of their weights. Encoders of texts and images are left out:
    their passes cost less than a hundredth of the model's.

    Attributes:
        fit: Passes of the whole fit, case by case.
        shared_fit: Names a fit that other methods make too, and that each of them finds once it is made.
        insertion: Passes of one insertion.
        request: Passes of one distinct request, besides its answer.
        fit_float32: Parameters times passes over one request that the fit computes in float32 besides.
        insertion_float32: The same for one insertion.
        shown_tokens: Tokens of text that a request is shown after, maybe with the insertion's image.
        answered_by: The model that answers a request in the scope of an insertion.
        leaves_others_alone: Whether requests out of scope have the plain model's answer.
        chain_bytes: Memory for the edit of each chain of insertions whose requests are in one batch.
        trained: Parameters that the fit trains, in float32 with a gradient and Adam's two moments.
    """

    fit: Mapping[str, float] = field(default_factory=dict)
    shared_fit: str | None = None
    insertion: Mapping[str, float] = field(default_factory=dict)
    request: Mapping[str, float] = field(default_factory=dict)
    fit_float32: float = 0.0
    insertion_float32: float = 0.0
    shown_tokens: int = 0
    shows_image: bool = False
    answered_by: str = EVALUATED
    leaves_others_alone: bool = False
    chain_bytes: float = 0.0
    trained: int = 0


class Device(NamedTuple):
    """A device by its maker's data sheet: dense operations and bytes a second; float32 is without TensorFloat-32."""

    name: str
    flops: float
    float32: float
    bandwidth: float


DEVICES = (
    Device("H200", 989e12, 67e12, 4.8e12),
    Device("H100", 989e12, 67e12, 3.35e12),
    Device("A100", 312e12, 19.5e12, 2.0e12),
)


def device_at_hand() -> Device:
    """Returns this machine's GPU if it is among those that are known, else the first of these."""
    name = device_name(torch.device("cuda")) if torch.cuda.is_available() else ""
    return next((device for device in DEVICES if device.name in name), DEVICES[0])


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The numbers of a model that its time and memory follow from.

    ``text`` are the parameters of the language model's layers, ``vision`` those that images pass through; a token
    leaves ``cache_bytes`` in the cache of a generation, and its widest activations have ``activation_bytes``.
    """

    layers: int
    text: int
    vision: int
    parameters: int
    itemsize: int
    cache_bytes: int
    activation_bytes: int
    hidden: int

    @classmethod
    def of(cls, model: PreTrainedModel) -> ModelShape:
        """Returns the shape of a model of images and text, with or without weights."""
        layers, config = decoder_layers(model), model.config.get_text_config()
        weights = dict(model.named_parameters())
        decoder = layers[0].rpartition(".layers.")[0]
        text = sum(weight.numel() for name, weight in weights.items() if name.startswith(f"{decoder}.layers."))
        head = getattr(model.get_output_embeddings(), "weight", None)
        beside = [
            weight for name, weight in weights.items() if not name.startswith(f"{decoder}.") and weight is not head
        ]
        kinds = getattr(config, "layer_types", None) or ["full_attention"] * len(layers)
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = model.dtype.itemsize
        return cls(
            layers=len(layers),
            text=text,
            vision=sum(weight.numel() for weight in beside),
            parameters=sum(weight.numel() for weight in weights.values()),
            itemsize=size,
            cache_bytes=sum(kind != "linear_attention" for kind in kinds) * 2 * heads * width * size,
            activation_bytes=(4 * config.hidden_size + 3 * getattr(config, "intermediate_size", 0)) * size,
            hidden=config.hidden_size,
        )

    @property
    def gib(self) -> float:
        """Memory of the weights."""
        return self.parameters * self.itemsize / _GIB


class PromptSize(NamedTuple):
    """The mean size of a request: all tokens, patches that the vision model reads, and tokens of images."""

    tokens: float
    patches: float
    images: float

    @classmethod
    def of(cls, encoding: Encoding, model: PreTrainedModel, queries: Sequence[Query]) -> PromptSize:
        """Measures requests as the model's own processor encodes them."""
        vision = getattr(model.config, "vision_config", None)
        side = getattr(vision, "patch_size", 14)
        width, height = side if isinstance(side, list | tuple) else (side, side)
        values = 3 * width * height * getattr(vision, "temporal_patch_size", 1)
        image_tokens = torch.tensor(image_token_ids(model, encoding.processor))
        inputs = [encoding.encode([query.messages()]).inputs for query in queries]
        return cls(
            tokens=mean(batch["input_ids"].numel() for batch in inputs),
            patches=mean(batch["pixel_values"].numel() / values if "pixel_values" in batch else 0 for batch in inputs),
            images=mean(int(torch.isin(batch["input_ids"], image_tokens).sum()) for batch in inputs),
        )


class Requests(NamedTuple):
    """The work of an evaluation, each equal request counted once.

    ``alone`` are requests to the plain model where nothing is inserted, ``plain`` those whose plain answer is compared
    with, ``after`` those after insertions, and ``in_scope`` those of them that an insertion should change. Of
    ``insertions`` the common beginning of two ``chains`` is counted once. ``distinct`` are requests and inserted
    requests, whatever is inserted before. An answer has at most ``new_tokens`` tokens.
    """

    alone: int
    plain: int
    after: int
    in_scope: int
    chains: int
    insertions: int
    distinct: int
    new_tokens: int

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, Any]], new_tokens: int) -> Requests:
        """Counts the requests of documents."""
        alone, plain, after, in_scope, prefixes, inserted = (set[Any]() for _ in range(6))
        for doc in documents:
            request = (doc.get("image_id"), doc.get("language"), doc.get("question"))
            samples, image = doc.get("insertions") or (), doc.get("insertion_image_id")
            chain = tuple((image, sample["partition"], sample["question"], sample["answer"]) for sample in samples)
            alone.add(request)
            if not chain or doc["wants_plain_answer"]:
                plain.add(request)
            if not chain:
                continue
            after.add((chain, request))
            if not doc["wants_plain_answer"]:
                in_scope.add((chain, request))
            prefixes.update(chain[:length] for length in range(1, len(chain) + 1))
            inserted.update(sample[:3] for sample in chain)
        return cls(
            alone=len(alone),
            plain=len(plain),
            after=len(after),
            in_scope=len(in_scope),
            chains=len({chain for chain, _ in after}),
            insertions=len(prefixes),
            distinct=len(alone | inserted),
            new_tokens=new_tokens,
        )


class RowEstimate(NamedTuple):
    """Hours and peak memory of a row's fit, which are 0 hours without one, and of its evaluation."""

    fit_hours: float
    fit_gib: float
    hours: float
    gib: float


@dataclass(frozen=True, slots=True)
class RowEstimator:
    """Estimates rows for one model, device and set of requests; transformers answers ``batch`` of them together."""

    device: Device
    prompt: PromptSize
    requests: Requests
    cases: CaseShape
    batch: int

    def row(
        self,
        work: MethodWork,
        shapes: Mapping[str, ModelShape],
        *,
        inserts: bool = True,
        beside_gib: float = 0.0,
        backend: bool = False,
        plain_is_stored: bool = False,
        fit_is_stored: bool = False,
    ) -> RowEstimate:
        """Estimates the row of a method.

        What is stored was left by earlier rows: the plain model's answers, or the same fit. ``beside_gib`` is the
        memory of encoders; a backend generates for the model under evaluation alone.
        """
        model, counts = shapes[EVALUATED], self.requests
        weights_gib = beside_gib + sum(shape.gib for shape in shapes.values())
        tokens = self.prompt.tokens + work.shown_tokens + self.prompt.images * work.shows_image
        patches = self.prompt.patches * (1 + work.shows_image)
        with_context = replace(self, prompt=self.prompt._replace(tokens=tokens, patches=patches))
        single = replace(self, batch=1)  # kernels are launched for each case
        fit = self._float32(work.fit_float32)
        fit += sum(count * single._pass(shapes[name]) for name, count in work.fit.items())
        seconds = 0.0 if plain_is_stored else counts.plain * self._answer(model, backend=backend)
        edit_bytes = 0.0
        if not inserts:
            seconds = counts.alone * self._answer(model, backend=backend)
        else:
            changed = counts.in_scope if work.leaves_others_alone else counts.after
            engine = backend and work.answered_by == EVALUATED
            seconds += changed * with_context._answer(shapes[work.answered_by], backend=engine)
            seconds += sum(
                counts.insertions * count * self._pass(shapes[name]) for name, count in work.insertion.items()
            )
            seconds += sum(counts.distinct * count * self._pass(shapes[name]) for name, count in work.request.items())
            seconds += counts.insertions * self._float32(work.insertion_float32)
            edit_bytes = work.chain_bytes * max(1.0, self.batch * counts.chains / max(counts.after, 1))
        widest = max(shapes.values(), key=lambda shape: shape.parameters)
        batch_bytes = self.batch * (
            tokens * (widest.cache_bytes + widest.activation_bytes) + counts.new_tokens * widest.cache_bytes
        )
        training_bytes = 16 * work.trained + 2 * self.prompt.tokens * widest.activation_bytes
        return RowEstimate(
            fit_hours=0.0 if fit_is_stored else fit / 3600,
            fit_gib=weights_gib + training_bytes / _GIB,
            hours=seconds / 3600,
            gib=weights_gib + (batch_bytes + edit_bytes) / _GIB,
        )

    def _pass(self, shape: ModelShape) -> float:
        """Returns the seconds of a forward pass over a request."""
        tokens = self.prompt.tokens
        attention = 2 * tokens**2 * shape.hidden * shape.layers
        operations = 2 * (shape.text * tokens + shape.vision * self.prompt.patches) + attention
        peak = self.device.flops if shape.itemsize < 4 else self.device.float32
        computing = max(operations / (_ARITHMETIC * peak), shape.layers * _LAUNCH / self.batch)
        return max(computing, _PIXELS * self.prompt.images / READERS)  # images are prepared while the model computes

    def _float32(self, parameters: float) -> float:
        """Returns the seconds of passes over a request through parameters in float32."""
        return 2 * parameters * self.prompt.tokens / (_ARITHMETIC * self.device.float32)

    def _answer(self, shape: ModelShape, *, backend: bool) -> float:
        """Returns the seconds of an answer in a full batch."""
        batch = _IN_FLIGHT if backend else self.batch
        read = self.device.bandwidth * _READING
        launch_time = 0.0 if backend else shape.layers * _LAUNCH
        step = max(shape.parameters * shape.itemsize / read, launch_time) / batch
        context = self.prompt.tokens * shape.cache_bytes / read
        return self._pass(shape) + self.requests.new_tokens * (step + context)
