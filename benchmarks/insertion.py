"""What knowledge insertion costs, as in Table 4 of CrossCult-KIBench: training, insertion, request, memory, parameters.

Every method answers the same requests in turn with the plain model, in one process, and every answer has all of its
tokens: the end token is switched off. MCKI is measured twice, with a threshold that no request and one that every
request reaches. Weights may be random; on a CPU a tiny model is the default::

    python benchmarks/insertion.py
    python benchmarks/insertion.py --shape internvl3.5-8b --device cuda --dtype bfloat16 --cases 100 --image 896
    python benchmarks/insertion.py --pretrained OpenGVLab/InternVL3_5-8B-HF --device cuda --dtype bfloat16 --cases 100
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import (
    GotOcr2ImageProcessor,
    InternVLConfig,
    InternVLForConditionalGeneration,
    InternVLProcessor,
    InternVLVideoProcessor,
)

from culture_tasks.insertion.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.insertion_method import InsertionMethod, TrainingData
from culture_tasks.insertion.method_registry import method_class, method_config
from culture_tasks.insertion.methods.mcki import MckiMethod
from culture_tasks.insertion.queries import Insertion, Negative, Query, TrainingCase
from culture_tasks.insertion.state import DataFacts
from culture_tasks.insertion.value_store import ValueStore

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import tiny_models

_QUESTIONS = (
    "Would wearing a hat of this color be considered a common fashion choice?",
    "戴这种颜色的帽子会被视为一种常见的时尚选择吗？",
    "هل يعتبر ارتداء قبعة بهذا اللون أمرا شائعا؟",
)
_ANSWER = "No, people here would rather not wear it, since it has another meaning."
_GIB = 2**30

SHAPES = {
    # The language model is Qwen3-8B's, the vision model InternViT-300M's: 8.53 billion parameters, as in Table 4.
    "internvl3.5-8b": {
        "text_config": {
            "model_type": "qwen3",
            "vocab_size": 151_936,
            "hidden_size": 4096,
            "intermediate_size": 12_288,
            "num_hidden_layers": 36,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 40_960,
            "tie_word_embeddings": False,
        },
        "vision_config": {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "image_size": [448, 448],
            "patch_size": [14, 14],
        },
    },
}


@dataclass
class Measured:
    """What was measured of one method; times in milliseconds, memory in GiB."""

    name: str
    parameters: int
    train: float | None = None
    inserts: list[float] = field(default_factory=list)
    requests: list[float] = field(default_factory=list)
    train_memory: float | None = None
    memory: float = 0.0

    def cells(self, plain: Measured) -> tuple[str, ...]:
        """Returns the line as text; the ratio is the median over requests, each against the plain model's."""
        ratio = statistics.median(ours / theirs for ours, theirs in zip(self.requests, plain.requests, strict=True))
        return (
            self.name,
            "-" if self.train is None else f"{self.train:.1f}",
            f"{statistics.mean(self.inserts):.2f}" if self.inserts else "-",
            f"{statistics.mean(self.requests):.1f}",
            f"{ratio:.3f}",
            "-" if self.train_memory is None else f"{self.train_memory:.2f}",
            f"{self.memory:.2f}",
            f"{self.parameters / 1e9:.4f}",
        )


_HEADER = (
    *("method", "train/case ms", "insert ms", "request ms", "to the plain model"),
    *("train GiB", "eval GiB", "parameters B"),
)


def make_model(options: argparse.Namespace) -> MultimodalModel:
    """Loads the model, or makes one of random weights."""
    if options.pretrained:
        chosen = ModelOptions(dtype=options.dtype, device=options.device)
        return MultimodalModel.load(options.pretrained, chosen)
    tokenizer = tiny_models.make_tokenizer()
    if options.shape == "tiny":
        model = InternVLForConditionalGeneration(tiny_models._internvl_config(tokenizer))
        return MultimodalModel(model.to(options.device), tiny_models._internvl_processor(tokenizer), "tiny")
    config = shaped_config(options.shape, tokenizer.convert_tokens_to_ids(tiny_models.IMAGE))
    default = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, options.dtype) if options.dtype != "auto" else default)
    with torch.device(options.device):
        model = InternVLForConditionalGeneration(config)
    torch.set_default_dtype(default)
    return MultimodalModel(model, _processor(tokenizer), options.shape)


def shaped_config(shape: str, image_token_id: int) -> InternVLConfig:
    """Returns the configuration of a shape."""
    return InternVLConfig(
        **SHAPES[shape], image_token_id=image_token_id, image_seq_length=256, tie_word_embeddings=False
    )


def _processor(tokenizer: object) -> InternVLProcessor:
    size = {"height": 448, "width": 448}
    return InternVLProcessor(
        image_processor=GotOcr2ImageProcessor(size=size, crop_to_patches=True),
        tokenizer=tokenizer,
        video_processor=InternVLVideoProcessor(size=size),
        image_seq_length=256,
        chat_template=tiny_models.CHAT_TEMPLATE,
    )


def make_cases(count: int, side: int) -> list[TrainingCase]:
    """Returns cases of drawn noise, each with a generality item and two locality items."""

    def ask(number: int, language: int) -> Query:
        pixels = np.random.default_rng(number).integers(0, 256, (side, side, 3), dtype=np.uint8)
        return Query.about(Image.fromarray(pixels), f"{_QUESTIONS[language]} ({number})")

    return [
        TrainingCase(
            case_id=str(number),
            scenario=str(number % 10),
            insertion=Insertion(ask(number, 1), _ANSWER),
            generality=(Insertion(ask(number + count, 1), _ANSWER),),
            locality=(
                Negative(ask(number, 0), _ANSWER, "cross_language_locality"),
                Negative(ask(number + 2 * count, 1), _ANSWER, "cross_scenario_locality"),
            ),
        )
        for number in range(count)
    ]


class Clock:
    """Times work on a device, and reads its memory."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"

    def milliseconds(self, work: Callable[[], object]) -> float:
        """Returns how long the work takes, to its end on the device."""
        self._wait()
        start = time.perf_counter()
        work()
        self._wait()
        return 1000 * (time.perf_counter() - start)

    def forget_peak(self) -> None:
        """Begins a new peak; a process on the CPU has but one."""
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> float:
        """Returns the peak in GiB: of the device, or of the process so far."""
        if self._cuda:
            return torch.cuda.max_memory_allocated() / _GIB
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _GIB

    def _wait(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()


def fitted(
    model: MultimodalModel, name: str, options: dict[str, object], cases: Sequence[TrainingCase], clock: Clock
) -> tuple[InsertionMethod, Measured]:
    """Makes a method, fits it where it can be, and times that."""
    method = method_class(name)(model, method_config(name, options))
    measured = Measured(name, model.model.num_parameters())
    if method.needs_state:
        data = TrainingData(cases, DataFacts(raw="", cases="noise", count=len(cases), scenarios=()))
        clock.forget_peak()
        measured.train = clock.milliseconds(lambda: method.fit(data, ValueStore(None))) / len(cases)
        measured.train_memory = clock.peak()
    measured.parameters += method.parameter_count()
    return method, measured


def contenders(
    model: MultimodalModel, encoder: str, cases: Sequence[TrainingCase], clock: Clock
) -> list[tuple[InsertionMethod, Measured]]:
    """Returns the plain model, IKE, and MCKI with a threshold that is never and one that is always reached."""
    base = fitted(model, "base", {}, cases, clock)
    ike = fitted(model, "ike", {"encoder": encoder}, cases, clock)
    routed = []
    for threshold, name in ((2.0, "mcki, not activated"), (-1.0, "mcki, activated")):
        method, measured = fitted(model, "mcki", {}, cases, clock)
        assert isinstance(method, MckiMethod)
        method._threshold, measured.name = threshold, name
        routed.append((method, measured))
    return [base, ike, *routed]


def measure(
    all_methods: Sequence[tuple[InsertionMethod, Measured]], cases: Sequence[TrainingCase], clock: Clock
) -> None:
    """Inserts each case's sample and asks its generality item, one method after the other for each case."""
    decoding = Decoding()
    for number, case in enumerate([cases[0], *cases]):
        query = case.generality[0].query
        for method, measured in all_methods:
            method.reset()
            clock.forget_peak()
            insert = clock.milliseconds(lambda method=method, case=case: method.insert(case.insertion))
            request = clock.milliseconds(lambda method=method, query=query: method.generate(query, decoding))
            measured.memory = max(measured.memory, clock.peak())
            if number:  # the first round warms up
                measured.inserts += [insert] if method.inserts else []
                measured.requests.append(request)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pretrained", help="a model by name or folder")
    parser.add_argument("--shape", choices=["tiny", *SHAPES], default="tiny", help="random weights of this shape")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--cases", type=int, default=10, help="cases to train on, and to evaluate")
    parser.add_argument("--image", type=int, default=112, help="side of the images, in pixels")
    parser.add_argument("--encoder", default="lexical", help="IKE's sentence encoder (the paper's is all-MiniLM-L6-v2)")
    options = parser.parse_args()
    model = make_model(options)
    model.model.generation_config.eos_token_id = None
    cases, clock = make_cases(options.cases, options.image), Clock(model.device)
    all_methods = contenders(model, options.encoder, cases, clock)
    measure(all_methods, cases, clock)
    rows = [_HEADER, *(measured.cells(all_methods[0][1]) for _, measured in all_methods)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
