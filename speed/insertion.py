"""What knowledge insertion costs: requests a second in batches, latency as in the paper's Table 4, and host memory.

Weights may be random; without options a tiny model is measured on the CPU::

    python speed/insertion.py
    python speed/insertion.py --shape internvl3.5-8b --device cuda --dtype bfloat16 --cases 100 --image 896
    python speed/insertion.py --pretrained OpenGVLab/InternVL3_5-8B-HF --device cuda --dtype bfloat16 --cases 100

Three parts, one or all (``--part``):

* ``throughput``: requests a second by the size of a batch, and the hours that Table 2 would take at these rates. Rounds
  of all sizes alternate, and the median round counts. It says whether the answers in batches are those of one at a
  time, which in float32 they are.
* ``latency``: one request at a time, each method in a process of its own, as in Table 4. In turn with each request
  the plain model answers the same one, with nothing inserted; the ratio is the median over requests.
* ``memory``: the peak of the host's memory for 20 and for 240 requests with large images, through lmms-eval's model and
  for fitting.

Every answer has all of its tokens: the end token is switched off.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from culture_tasks.insertion.core.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.core.decoding import Decoding
from culture_tasks.insertion.core.device_meter import forget_peak, now, peak_gib
from culture_tasks.insertion.core.insertion_method import InsertionMethod
from culture_tasks.insertion.core.method_registry import method_class, method_config, method_names
from culture_tasks.insertion.core.queries import Insertion, Negative, Query, TrainingCase
from culture_tasks.insertion.core.state import DataFacts
from culture_tasks.insertion.core.training_data import TrainingData
from culture_tasks.insertion.core.value_store import ValueStore

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]

_QUESTIONS = (
    "Would wearing a hat of this color be considered a common fashion choice?",
    "戴这种颜色的帽子会被视为一种常见的时尚选择吗？",
    "هل يعتبر ارتداء قبعة بهذا اللون أمرا شائعا؟",
)
_ANSWER = "No, people here would rather not wear it, since it has another meaning."
_LARGE = 1328  # side of the largest images of CrossCult-KIBench, in pixels
_FEW, _MANY = 20, 240

SHAPES: Mapping[str, Mapping[str, Any]] = {
    # The language model is Qwen3-8B's, the vision model InternViT-300M's: 8.53 billion parameters, as in Table 4.
    "internvl3.5-8b": {
        "family": "internvl",
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
    # 9.41 billion parameters, as in Table 4; three of four layers are linear attention.
    "qwen3.5-9b": {
        "family": "qwen3_5",
        "text_config": {
            "vocab_size": 248_320,
            "hidden_size": 4096,
            "intermediate_size": 12_288,
            "num_hidden_layers": 32,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "linear_key_head_dim": 128,
            "linear_value_head_dim": 128,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": 32,
            "max_position_embeddings": 40_960,
            "tie_word_embeddings": False,
        },
        "vision_config": {
            "depth": 27,
            "hidden_size": 1152,
            "intermediate_size": 4304,
            "num_heads": 16,
            "out_hidden_size": 4096,
            "patch_size": 16,
            "num_position_embeddings": 2304,
        },
    },
}

VARIANTS: Mapping[str, Mapping[str, float]] = {
    "mcki": {"not activated": 2.0, "activated": -1.0},
    "serac": {"not activated": 1.0, "activated": 1e-9},
    "mscke": {"not activated": 1.0, "activated": 1e-9},
}
"""Thresholds that no request and that every request reaches."""

TABLE_2 = {"plain": 4_755, "base": 5_490, "after": 16_000, "activated": 8_000, "features": 9_180}
"""Requests of Table 2 at full size, counted from the documents of the full release (9,800 rows): distinct plain answers
beside a method and alone, requests after insertions, at most so many that MCKI activates, and distinct prefills."""


def make_model(options: argparse.Namespace) -> MultimodalModel:
    """Loads the model, or makes one of random weights."""
    if options.pretrained:
        model = MultimodalModel.load(options.pretrained, ModelOptions(dtype=options.dtype, device=options.device))
    elif options.shape == "tiny":
        import tiny_models

        with tempfile.TemporaryDirectory() as folder:
            tiny_models.make_tiny_vlm(folder)
            model = MultimodalModel.load(folder, ModelOptions(dtype=options.dtype, device=options.device))
    else:
        model = _random_model(options.shape, options.device, options.dtype)
    model.model.generation_config.eos_token_id = None
    return model


def _random_model(shape: str, device: str, dtype: str) -> MultimodalModel:
    kind, config, processor = shaped(shape)
    default = torch.get_default_dtype()
    torch.set_default_dtype(default if dtype == "auto" else getattr(torch, dtype))
    try:
        with torch.device(device):
            model = kind(config)
    finally:
        torch.set_default_dtype(default)
    return MultimodalModel(model, processor, shape)


def shaped(shape: str) -> tuple[type, Any, Any]:
    """Returns the class of a shape, its configuration, and a processor with images of real size."""
    from support.tiny_families import family
    from transformers import Qwen2VLImageProcessorPil

    described = SHAPES[shape]
    tiny = family(described["family"])
    values = tiny.model.config.to_dict()
    for part in ("text_config", "vision_config"):
        values[part] = {**_set_by_hand(values[part]), **described[part]}
    values.update(image_seq_length=256, tie_word_embeddings=False)
    config = type(tiny.model.config)(**values)
    processor = copy.deepcopy(tiny.processor)
    if described["family"] == "internvl":
        processor.image_processor.size = {"height": 448, "width": 448}
        processor.image_seq_length = 256
    else:
        processor.image_processor = Qwen2VLImageProcessorPil(patch_size=16, merge_size=2, temporal_patch_size=2)
    return type(tiny.model), config, processor


def _set_by_hand(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a tiny part's settings without those that follow from its number of layers."""
    return {name: value for name, value in values.items() if name not in ("layer_types", "deepstack_visual_indexes")}


def make_cases(count: int, side: int) -> list[TrainingCase]:
    """Returns cases of drawn noise, each with a generality item and two locality items."""

    def ask(number: int, language: int) -> Query:
        def load() -> list[Any]:
            return Query.about(picture(number, side), f"{_QUESTIONS[language]} ({number})").messages()

        return Query(f"{_QUESTIONS[language]} ({number})", load)

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


def picture(number: int, side: int) -> Image.Image:
    """Returns an image of coarse noise."""
    coarse = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((side, side))


def fitted(
    model: MultimodalModel, name: str, options: Mapping[str, object], cases: Sequence[TrainingCase]
) -> InsertionMethod:
    """Makes a method, and fits it where it can be."""
    method = method_class(name)(model, method_config(name, dict(options)))
    if method.needs_state:
        method.fit(
            TrainingData(cases, DataFacts(raw="", cases="noise", count=len(cases), scenarios=())), ValueStore(None)
        )
    return method


class Clock:
    """Times work on a device, and reads its memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def milliseconds(self, work: Callable[[], object]) -> float:
        """Returns how long the work takes, to its end on the device."""
        start = now(self._device)
        work()
        return 1000 * (now(self._device) - start)

    def peak(self) -> float:
        """Returns the peak in GiB since the last call: of the device, or of the process from its start."""
        peak = peak_gib(self._device)
        forget_peak()
        return float("nan") if peak is None else peak


# Throughput.


def throughput(options: argparse.Namespace) -> None:
    """Prints requests a second, and the hours of Table 2."""
    model = make_model(options)
    cases = make_cases(max(options.requests, 2), options.image)
    work = dict(_kinds(model, cases, options))
    sizes = [int(size) for size in options.batches.split(",")]
    rates: dict[tuple[str, int], list[float]] = {}
    clock = Clock(model.device)
    for kind, ask in work.items():
        ask(sizes[0], 2)  # warms up
        texts: dict[int, Any] = {}
        for _ in range(options.rounds):
            for size in sizes:
                spent = clock.milliseconds(
                    lambda ask=ask, size=size, texts=texts: texts.update({size: ask(size, None)})
                )
                rates.setdefault((kind, size), []).append(1000 * options.requests / spent)
        if kind != "features":
            same = all(texts[size] == texts[sizes[0]] for size in sizes)
            print(f"{kind}: texts at all batch sizes are {'the same' if same else 'NOT the same'}")
    medians = {key: statistics.median(each) for key, each in rates.items()}
    rows = [("requests/s", *(f"batch {size}" for size in sizes), "best to batch 1")]
    for kind in work:
        found = [medians[kind, size] for size in sizes]
        rows.append((kind, *(f"{rate:.2f}" for rate in found), f"{max(found) / found[0]:.1f}"))
    print_table(rows)
    print_table(_hours(medians, sizes))


def _kinds(
    model: MultimodalModel, cases: Sequence[TrainingCase], options: argparse.Namespace
) -> Iterator[tuple[str, Callable[[int, int | None], Any]]]:
    """Yields what is timed: plain requests, requests as IKE and an activated MCKI wrap them, and features."""
    asked = [case.generality[0].query for case in cases][: options.requests]
    prompts = {"plain": asked}
    for name in ("ike", "mcki"):
        method = fitted(model, name, options.sets.get(name, {}), cases[:16])
        if name in VARIANTS:
            method.threshold = VARIANTS[name]["activated"]
        wrapped = []
        for case, query in zip(cases, asked, strict=False):
            method.reset()
            method.insert(case.insertion)
            wrapped.append(method.ask(query).query)
        prompts[f"as {name} asks"] = wrapped
    for queries in prompts.values():
        for query in queries:
            _ = query.key
    for kind, queries in prompts.items():

        def answer(size: int, count: int | None, queries: Sequence[Query] = queries) -> dict[int, str]:
            return {place: found.text for place, found in model.answers(queries[:count], Decoding(), size)}

        yield kind, answer
    yield "features", lambda size, count: len(list(model.features_of(asked[:count], size)))


def _hours(rates: Mapping[tuple[str, int], float], sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Returns the hours that a row of Table 2 takes at full size, for each size of a batch."""

    def hours(size: int, **counts: int) -> float:
        return sum(count / rates[kind.replace("_", " "), size] for kind, count in counts.items()) / 3600

    rows = {
        "base": {"plain": TABLE_2["base"]},
        "IKE": {"plain": TABLE_2["plain"], "as_ike_asks": TABLE_2["after"]},
        "MCKI": {
            "plain": TABLE_2["plain"],
            "as_mcki_asks": TABLE_2["activated"],
            "features": TABLE_2["features"],
        },
    }
    head = ("hours for a row of Table 2", *(f"batch {size}" for size in sizes))
    return [head, *((name, *(f"{hours(size, **counts):.2f}" for size in sizes)) for name, counts in rows.items())]


# Latency.


def latency(options: argparse.Namespace) -> None:
    """Prints the table of all methods, each measured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        sets = {**tiny_parts(Path(folder)), **options.sets} if options.shape == "tiny" else options.sets
        rows = [
            ("method", "train/case ms", "insert ms", "request ms", "to the plain model"),
        ]
        rows[0] = (*rows[0], "train GiB", "eval GiB", "parameters B")
        for name in options.methods.split(",") if options.methods else method_names():
            for variant in VARIANTS.get(name, {"": None}):
                found = in_another_process(options, "one-latency", method=name, variant=variant, sets=sets)
                rows.append((f"{name}, {variant}" if variant else name, *found))
                print(*rows[-1], sep="  ", file=sys.stderr)
    print_table(rows)


def tiny_parts(folder: Path) -> dict[str, dict[str, object]]:
    """Makes the tiny models that methods need beside the one under evaluation, and returns options that fit it."""
    import tiny_models
    from support.tiny_encoders import save_tiny_bert, save_tiny_clip

    replacement = str(tiny_models.make_tiny_vlm(folder / "replacement"))
    return {
        "ike": {"encoder": "lexical"},
        "mend": {"layers": 2},
        "serac": {"replacement": replacement, "encoder": str(save_tiny_bert(folder / "bert"))},
        "mscke": {"replacement": replacement, "encoder": str(save_tiny_clip(folder / "clip"))},
    }


def one_latency(options: argparse.Namespace) -> list[str]:
    """Measures one method: fits it, then inserts each case's sample and asks its generality item."""
    model = make_model(options)
    cases, clock, decoding = make_cases(options.cases, options.image), Clock(model.device), Decoding()
    name, chosen = options.method, dict(options.sets.get(options.method, {}))
    needs_state = method_class(name).needs_state
    threshold = VARIANTS.get(name, {}).get(options.variant)
    if threshold is not None and "threshold" in method_class(name).config_class.model_fields:
        chosen["threshold"] = threshold
    clock.peak()
    method: list[InsertionMethod] = []
    spent = clock.milliseconds(lambda: method.append(fitted(model, name, chosen, cases)))
    trained = clock.peak()
    if hasattr(method[0], "threshold") and threshold is not None:
        method[0].threshold = threshold
    inserts, requests, ratios = [], [], []
    for number, case in enumerate([cases[0], *cases]):
        query = case.generality[0].query
        method[0].reset()
        plain = clock.milliseconds(lambda query=query: model.generate(query, decoding))
        insert = clock.milliseconds(lambda case=case: method[0].insert(case.insertion))
        request = clock.milliseconds(lambda query=query: method[0].generate(query, decoding))
        if number:  # the first round warms up
            inserts.append(insert)
            requests.append(request)
            ratios.append(request / plain)
    parameters = model.model.num_parameters() + method[0].parameter_count()
    return [
        f"{spent / len(cases):.1f}" if needs_state else "-",
        f"{statistics.mean(inserts):.2f}" if method[0].inserts else "-",
        f"{statistics.mean(requests):.1f}",
        f"{statistics.median(ratios):.3f}",
        f"{trained:.2f}" if needs_state else "-",
        f"{clock.peak():.2f}",
        f"{parameters / 1e9:.4f}",
    ]


# Memory.


def memory(options: argparse.Namespace) -> None:
    """Prints the peak of the host's memory for few and for many requests."""
    rows = [("host memory, MiB", f"{_FEW} requests", f"{_MANY} requests", "more")]
    for kind in ("answering", "fitting"):
        few, many = (
            float(in_another_process(options, "one-memory", method=kind, variant=str(count), sets={})[0])
            for count in (_FEW, _MANY)
        )
        rows.append((kind, f"{few:.0f}", f"{many:.0f}", f"{many - few:.0f}"))
    print_table(rows)


def one_memory(options: argparse.Namespace) -> list[str]:
    """Answers requests, or fits MCKI on as many, and returns the peak in MiB."""
    count = int(options.variant)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            picture(number, _LARGE).save(Path(folder) / f"{number}.png")
        if options.method == "answering":
            _answer_through_lmms_eval(options, Path(folder), count)
        else:
            model = make_model(options)
            fitted(model, "mcki", {"route_dim": 16}, _cases_of_files(Path(folder), count))
    return [str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)]


def _cases_of_files(folder: Path, count: int) -> list[TrainingCase]:
    def ask(number: int, question: str) -> Query:
        def load() -> list[Any]:
            with Image.open(folder / f"{number}.png") as image:
                return Query.about(image.convert("RGB"), question).messages()

        return Query(question, load)

    return [
        TrainingCase(
            case_id=str(number),
            scenario=str(number),
            insertion=Insertion(ask(number, _QUESTIONS[1]), _ANSWER),
            generality=(),
            locality=(Negative(ask(number, _QUESTIONS[0]), _ANSWER, "cross_language_locality"),),
        )
        for number in range(0, count, 2)
    ]


def _answer_through_lmms_eval(options: argparse.Namespace, folder: Path, count: int) -> None:
    import datasets
    import tiny_models
    from lmms_eval.api.instance import Instance

    from culture_tasks.harness.lmms_eval.knowledge_insertion import KnowledgeInsertion

    files = [str(folder / f"{number}.png") for number in range(count)]
    rows = {"image": files, "question": [f"{_QUESTIONS[0]} ({number})" for number in range(count)]}
    documents = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    checkpoint = options.pretrained or str(tiny_models.make_tiny_vlm(folder / "model"))
    model = KnowledgeInsertion(pretrained=checkpoint, answers="off", batch_size=8, device=options.device)
    model.task_dict = {"task": {"test": documents}}

    def to_messages(doc: Mapping[str, Any]) -> list[dict[str, Any]]:
        content = [{"type": "image", "url": doc["image"]}, {"type": "text", "text": doc["question"]}]
        return [{"role": "user", "content": content}]

    requests = [
        Instance(
            request_type="generate_until",
            arguments=("", to_messages, {"max_new_tokens": 4}, place, "task", "test"),
            idx=0,
            metadata={"task": "task", "doc_id": place, "repeats": 1},
        )
        for place in range(count)
    ]
    model.generate_until(requests)


# The command.


def in_another_process(
    options: argparse.Namespace, part: str, *, method: str, variant: str, sets: Mapping[str, Mapping[str, object]]
) -> list[str]:
    """Runs one measurement in a process of its own, and returns what it printed last."""
    given = {
        "shape": options.shape,
        "pretrained": options.pretrained,
        "device": options.device,
        "dtype": options.dtype,
        "cases": options.cases,
        "image": options.image,
        "method": method,
        "variant": variant,
    }
    flags = [text for name, value in given.items() if value is not None for text in (f"--{name}", str(value))]
    chosen = [
        text
        for each, values in sets.items()
        for name, value in values.items()
        for text in ("--set", f"{each}.{name}={value}")
    ]
    run = subprocess.run(
        [sys.executable, __file__, "--part", part, *flags, *chosen], stdout=subprocess.PIPE, text=True, check=True
    )
    found: list[str] = json.loads(run.stdout.splitlines()[-1])
    return found


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints a table with its columns aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    print()


def _sets(given: Sequence[str]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {"ike": {"encoder": "lexical"}}
    for each in given:
        option, _, value = each.partition("=")
        method, _, name = option.partition(".")
        found.setdefault(method, {})[name] = value
    return found


def main() -> None:
    """Measures what is asked for, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    single = {"one-latency": one_latency, "one-memory": one_memory}
    parts = {"throughput": throughput, "latency": latency, "memory": memory}
    parser.add_argument("--part", choices=["all", *parts, *single], default="all")
    parser.add_argument("--pretrained", help="a model by name or folder")
    parser.add_argument("--shape", choices=["tiny", *SHAPES], default="tiny", help="random weights of this shape")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--cases", type=int, default=10, help="cases to train on, and to evaluate")
    parser.add_argument("--image", type=int, default=112, help="side of the images, in pixels")
    parser.add_argument("--requests", type=int, default=64, help="requests of a round of throughput")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of throughput")
    parser.add_argument("--batches", default="1,8,16,32", help="sizes of a batch")
    parser.add_argument("--methods", help="methods whose latency is measured (default: all)")
    parser.add_argument("--set", action="append", default=[], metavar="METHOD.OPTION=VALUE", help="an option")
    parser.add_argument("--method", help=argparse.SUPPRESS)
    parser.add_argument("--variant", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.sets = _sets(options.set)
    if options.part in single:
        print(json.dumps(single[options.part](options)))
        return
    for name, part in parts.items():
        if options.part in ("all", name):
            part(options)


if __name__ == "__main__":
    main()
