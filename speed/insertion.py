r"""What the papers' table of knowledge insertion costs: estimated at real shapes, measured with random weights.

Without options tiny models are measured on the CPU; ``--shape`` has random weights of that shape saved to disk once::

    python speed/insertion.py
    python speed/insertion.py --shape internvl3.5-8b --folder /disk/random --device cuda --dtype bfloat16 \
        --image 1328 --limit 20 --cases 400 --backend vllm

Three parts, one or all (``--part``):

* ``estimate``: hours and memory of all rows of Tables 2 and 3 and of their fits, for both models of the papers, from
  shapes alone (the meta device) and the numbers of requests of the full release.
* ``measure``: the commands of ``culture-tasks insertion table``, each in a process, at each size of a batch and with
  the backend: seconds of loading and of the fingerprint, milliseconds of fitting, inserting and a request, peak memory.
* ``resume``: fits of MEND and SERAC that are killed at their first checkpoint and started again, beside whole ones.

Every answer has all of its tokens: the end token is switched off.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc, load_release
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.vocabulary import SEQUENTIAL_ROLES, SINGLE_ROLES
from culture_tasks.insertion.core.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.core.device_meter import device_name
from culture_tasks.insertion.core.encoding import Encoding
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.queries import Query
from culture_tasks.insertion.core.state import read
from culture_tasks.insertion.core.training_data import load_training_data
from culture_tasks.insertion.estimates import ASSUMED, DEVICES, EVALUATED, CaseShape, PromptSize, Requests, RowEstimator
from culture_tasks.insertion.methods import labels, paper_rows
from culture_tasks.insertion.table import ALL, MethodRow, TableOptions, estimate, rows_of
from culture_tasks.text_tables import as_text

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]

_QUESTION = "Would wearing a hat of this color be considered a common fashion choice?"
_LARGE = 1328  # side of the largest images of CrossCult-KIBench, in pixels
_SMALL = 112
_SCENARIOS = {"train": 29, "single": 10, "sequential": 10}  # of the full release, with 200 raw cases each
_SHORT = ("base", "ike", "mcki")  # the rows without a fit by gradients and without edited weights
_CHECKPOINTS = ("--checkpoint-minutes", "0")

_INTERN_VIT = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": [448, 448],
    "patch_size": [14, 14],
}

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
        "vision_config": _INTERN_VIT,
        "replacement": "internvl3.5-1b",
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
        "replacement": "qwen3.5-0.8b",
    },
    "internvl3.5-1b": {
        "family": "internvl",
        "text_config": {
            "model_type": "qwen3",
            "vocab_size": 151_936,
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 40_960,
            "tie_word_embeddings": False,
        },
        "vision_config": _INTERN_VIT,
    },
    "qwen3.5-0.8b": {
        "family": "qwen3_5",
        "text_config": {
            "vocab_size": 248_320,
            "hidden_size": 1024,
            "intermediate_size": 3584,
            "num_hidden_layers": 24,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": 256,
            "linear_key_head_dim": 128,
            "linear_value_head_dim": 128,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": 16,
            "max_position_embeddings": 40_960,
            "tie_word_embeddings": True,
        },
        "vision_config": {
            "depth": 12,
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_heads": 12,
            "out_hidden_size": 1024,
            "patch_size": 16,
            "num_position_embeddings": 2304,
        },
    },
}
"""Shapes by name; with a replacement model those of the papers, whose parameters Table 4 gives."""


def shaped(shape: str) -> tuple[type, Any, Any]:
    """Returns the class of a shape, its configuration, and a processor with images of real size."""
    from support.tiny_families import family
    from transformers import Qwen2VLImageProcessorPil

    described = SHAPES[shape]
    tiny = family(described["family"])
    values = tiny.model.config.to_dict()
    for part in ("text_config", "vision_config"):
        values[part] = {**_set_by_hand(values[part]), **described[part]}
    values.update(image_seq_length=256, tie_word_embeddings=described["text_config"]["tie_word_embeddings"])
    config = type(tiny.model.config)(**values)
    processor = copy.deepcopy(tiny.processor)
    if described["family"] == "internvl":
        processor.image_processor.size = {"height": 448, "width": 448}
        processor.image_seq_length = 256
    else:
        processor.image_processor = Qwen2VLImageProcessorPil(
            patch_size=16, merge_size=2, temporal_patch_size=2, min_pixels=65_536, max_pixels=16_777_216
        )
    return type(tiny.model), config, processor


def _set_by_hand(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a tiny part's settings without those that follow from its number of layers."""
    return {name: value for name, value in values.items() if name not in ("layer_types", "deepstack_visual_indexes")}


def meta(shape: str) -> Any:
    """Returns a model of a shape without weights, as bfloat16."""
    kind, config, _ = shaped(shape)
    with torch.device("meta"):
        return kind(config).to(torch.bfloat16)


def encoder(name: str) -> Any:
    """Returns an encoder of real shape: of sentences (all-MiniLM-L6-v2), or of images (clip-vit-large-patch14)."""
    from transformers import BertConfig, BertModel, CLIPConfig, CLIPModel

    if name == "sentences":
        layers = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
        return BertModel(BertConfig(**layers))
    text = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    vision = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    config = CLIPConfig(
        text_config={**text, "projection_dim": 768},
        vision_config={**vision, "patch_size": 14, "projection_dim": 768},
        projection_dim=768,
    )
    return CLIPModel(config)


_ENCODERS = {"ike": "sentences", "serac": "sentences", "mscke": "images"}
"""The encoder of each method that has one."""


# Estimates.


def estimates(options: argparse.Namespace) -> None:
    """Prints the hours and memory of all rows, for both models of the papers."""
    (tables, cases), side = full_release(), options.image or _LARGE
    for shape in (name for name, described in SHAPES.items() if "replacement" in described):
        _, _, processor = shaped(shape)
        model = meta(shape)
        query = Query.about(Image.new("RGB", (side, side)), _QUESTION)
        prompt = PromptSize.of(Encoding(processor, {}), model, [query])
        lines, totals = [], {"all rows": 0.0, "base, IKE and MCKI": 0.0}
        stores: list[set[str]] = [set() for _ in tables]  # what a row of a table leaves for the next rows
        for name in paper_rows():
            method, models = method_class(name), {EVALUATED: model}
            with torch.device("meta"):
                for option in method.other_models:
                    models[option] = encoder(_ENCODERS[name]) if option == "encoder" else None
            if "replacement" in models:
                models["replacement"] = meta(SHAPES[shape]["replacement"])
            rows = [
                estimate(
                    method,
                    method_class(name).read_config({}),
                    models,
                    RowEstimator(DEVICES[0], prompt, requests, cases, batch=options.batch),
                    stored=stored,
                )
                for requests, stored in zip(tables, stores, strict=True)
            ]
            single, sequential = (row for row in rows if row is not None)
            totals["all rows"] += single.fit_hours + single.hours
            totals["base, IKE and MCKI"] += (single.fit_hours + single.hours) * (name in _SHORT)
            gib = max(single.gib, sequential.gib)
            numbers = (single.fit_hours, single.fit_gib, single.hours, sequential.hours, gib)
            lines.append((labels()[name], *(f"{number:.1f}" for number in numbers)))
        print(f"{shape}, {model.num_parameters() / 1e9:.2f} B parameters, {prompt.tokens:.0f} tokens a request")
        head = ("ESTIMATED", "fit, hours", "GiB", "Table 2, hours", "Table 3, hours", "GiB")
        print(as_text(head, lines))
        print("; ".join(f"Table 2, {name}: {hours:.1f} hours" for name, hours in totals.items()))
    print(f"For one {DEVICES[0].name}, batches of {options.batch}, images of {side} x {side}. Assumed: {ASSUMED}.\n")


def full_release() -> tuple[tuple[Requests, Requests], CaseShape]:
    """Returns the requests of Tables 2 and 3 and the training cases, counted in a release of the full size."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "crosscult"
        place.mkdir()
        (place / "cases.jsonl").write_text("\n".join(map(json.dumps, _raw_rows())), encoding="utf-8")
        release = load_release(Path(folder))
    training = [list(release.single(role, train=True)) for role in SINGLE_ROLES]
    trained = Requests.of([doc for docs in training for doc in docs], 0)
    cases = CaseShape(count=len(training[0]), requests=trained.distinct, generality=1, locality=2)
    single: list[CrossCultDoc] = [doc for role in SINGLE_ROLES for doc in release.single(role)]
    steps = product(SEQUENTIAL_ROLES, PAPER.orders[0])
    sequential = [doc for role, partition in steps for doc in release.sequential(role, partition)]
    return (Requests.of(single, 64), Requests.of(sequential, 64)), cases


def _raw_rows() -> Iterator[dict[str, str]]:
    parts = [part for part, count in _SCENARIOS.items() for _ in range(count)]
    for scenario, number in product(range(len(parts)), range(200)):
        name = f"{scenario}-{number}"
        texts = {f"question_{language}": f"{language} {name} ?" for language in ("en", "zh", "ar")}
        texts |= {f"answer_{culture}": f"{culture} {name}" for culture in ("us_en", "china_zh", "arab_ar")}
        facts = {"scenario": f"scenario {scenario}", "topic": "Social Values", "split": parts[scenario]}
        yield {"id": name, "image": f"{name}.png", **facts, **texts}


# Measurements.


def table_options(options: argparse.Namespace) -> TableOptions:
    """Saves models with random weights and a world of cases, once, and returns the settings of a table of these."""
    from support.tiny_world import write_release

    folder, side = Path(options.folder), options.image or _SMALL
    saved = {name: folder / options.shape / name for name in ("model", "replacement", "sentences", "images")}
    if not (saved["images"] / "config.json").exists():
        for name, place in saved.items():
            _save(options.shape, name, place)
    world = folder / f"world-{side}"
    if not world.exists():
        write_release(world, range(6), range(options.raw_cases), tests=(2, 3, 4, 5))
        for file in world.rglob("*.png"):
            Image.open(file).resize((side, side)).save(file)
    os.environ |= {"CULTURE_TASKS_DATA": str(world), "CULTURE_JUDGE": "lexical", "HF_HUB_OFFLINE": "1"}
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    method_options = {name: {"encoder": str(saved[encoder])} for name, encoder in _ENCODERS.items()}
    for name in ("serac", "mscke"):
        method_options[name]["replacement"] = str(saved["replacement"])
    if options.shape == "tiny":
        method_options |= {"mend": {"layers": "2", "rank": "4"}, "finetune": {"steps": "2"}, "mcki": {"route_dim": "8"}}
    return TableOptions(
        out=folder / options.shape / "table",
        pretrained=str(saved["model"]),
        model=ModelOptions(device=options.device, dtype=options.dtype),
        tasks=("crosscult_single",),
        limit=options.limit,
        fit_limit=options.cases,
        options=method_options,
    )


def _save(shape: str, name: str, folder: Path) -> None:
    """Saves a model with random weights, whose answers have no end, or an encoder."""
    import tiny_models
    from support.tiny_encoders import save_tiny_bert, save_tiny_clip

    if name in _ENCODERS.values():
        (save_tiny_bert if name == "sentences" else save_tiny_clip)(folder)
        if shape != "tiny":  # a tiny tokenizer and processor do for a model of real shape
            encoder(name).save_pretrained(folder)
        return
    if shape == "tiny":
        tiny_models.make_tiny_vlm(folder)
    else:
        kind, config, processor = shaped(SHAPES[shape]["replacement"] if name == "replacement" else shape)
        torch.set_default_dtype(torch.bfloat16)
        kind(config).save_pretrained(folder)
        torch.set_default_dtype(torch.float32)
        processor.save_pretrained(folder)
    settings = folder / "generation_config.json"
    content = json.loads(settings.read_text(encoding="utf-8")) if settings.exists() else {}
    settings.write_text(json.dumps({**content, "eos_token_id": None}), encoding="utf-8")


def measure(options: argparse.Namespace) -> None:
    """Prints the costs of each row, at each size of a batch and with the backend."""
    base, side = table_options(options), options.image or _SMALL
    start = time.perf_counter()
    model = MultimodalModel.load(base.pretrained, base.model)
    loaded = time.perf_counter()
    MultimodalModel(model.model, model.processor, base.pretrained)
    print(f"loading {loaded - start:.1f} s, of that the fingerprint {time.perf_counter() - loaded:.1f} s")
    device = device_name(model.device)
    model.release()
    del model
    data, lines = load_training_data(Path(os.environ["CULTURE_TASKS_DATA"]), options.cases), []
    engines = [(size, None) for size in options.batches.split(",")]
    engines += [(engines[-1][0], options.backend)] if options.backend else []
    for size, backend in engines:
        table = replace(base, batch_size=size, backend=backend, out=base.out / f"{size}-{backend or 'transformers'}")
        for row in _rows(table, options.methods.split(",")):
            if backend is None or row.backend:
                row.run(data)
                lines.append((labels()[row.name], row.backend or "transformers", size, *_costs(row)))
    head = ("MEASURED", "by", "batch", "train/case ms", "GiB", "insert ms", "request ms", "requests/s", "GiB", "B")
    print(as_text(head, lines))
    print(f"{options.shape} on {device}, {options.dtype}, images of {side} x {side}\n")


def _rows(options: TableOptions, names: Sequence[str]) -> list[MethodRow]:
    """Returns the rows of methods, with the options of these alone."""
    selection = {name: values for name, values in options.options.items() if name in names or ALL in names}
    return rows_of(replace(options, options=selection), names)


def _costs(row: MethodRow) -> list[str]:
    """Returns what the result file of a row says of its costs."""
    file = sorted(row.results.rglob("*_results.json"))[-1]
    costs = json.loads(file.read_text(encoding="utf-8"))["insertion_costs"]
    a_second = None if not costs["request_ms"] else 1000 / costs["request_ms"]
    names = ("train_ms", "train_gib", "insert_ms", "request_ms", "", "peak_gib", "parameters")
    return ["-" if (value := costs.get(name, a_second)) is None else f"{value:.2f}" for name in names]


def resume(options: argparse.Namespace) -> None:
    """Prints whether fits that were killed and continued are those without a break."""
    base, lines = table_options(options), []
    names = options.methods.split(",")
    for name in (name for name in ("mend", "serac") if name in names or ALL in names):
        digests = []
        for kind in ("whole", "killed"):
            (row,) = _rows(replace(base, out=base.out / kind), [name])
            command = [*row.fit_command, "--overwrite", *_CHECKPOINTS]
            if kind == "killed":
                _kill_at_checkpoint(command, row.state / "training.safetensors")
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            description, _ = read(row.state)
            digests.append(description.tensors)
            lines.append((name, kind, str(description.data.count), f"{time.perf_counter() - start:.1f}"))
        lines.append((name, "same state" if len(set(digests)) == 1 else "NOT the same state", "", ""))
    print(as_text(("MEASURED", "fit", "cases", "seconds to its end"), lines))


def _kill_at_checkpoint(command: Sequence[str], checkpoint: Path) -> None:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)


def main() -> None:
    """Prints what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"estimate": estimates, "measure": measure, "resume": resume}
    parser.add_argument("--part", choices=["all", *parts], default="all")
    parser.add_argument("--shape", choices=["tiny", *SHAPES], default="tiny", help="random weights of this shape")
    parser.add_argument("--folder", default="build/random-models", help="where models, states and results are kept")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument(
        "--image", type=int, help=f"side of the images (estimated: {_LARGE}, measured: {_SMALL} pixels)"
    )
    parser.add_argument("--raw-cases", type=int, default=20, help="raw cases of each of six scenarios")
    parser.add_argument("--limit", type=int, default=8, help="documents of each of four roles")
    parser.add_argument("--cases", type=int, default=40, help="training cases; MEND makes a step of two")
    parser.add_argument("--batch", type=int, default=32, help="size of a batch in estimates")
    parser.add_argument("--batches", default="1,8,32", help="sizes of a batch")
    parser.add_argument("--backend", help="engine to measure beside transformers, such as vllm")
    parser.add_argument("--methods", default="all", help="methods to measure, and to kill the fits of")
    options = parser.parse_args()
    for name, part in parts.items():
        if options.part in ("all", name):
            part(options)


if __name__ == "__main__":
    main()
