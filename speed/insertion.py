r"""What knowledge insertion costs, measured with random weights.

Without options tiny models are measured on the CPU; ``--shape`` has random weights of that shape saved to disk once::

    python speed/insertion.py
    python speed/insertion.py --shape internvl3.5-8b --folder /disk/random --device cuda --dtype bfloat16 \
        --image 1328 --limit 20 --cases 400

Two parts, one or both (``--part``):

* ``measure``: fits and evaluations of the methods, each in a process, at each size of a batch: seconds of loading and
  of the fingerprint, milliseconds of fitting, inserting and a request, peak memory. A request's time is that of
  answering alone, without starting and loading.
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
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from culture_tasks.insertion.core.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.core.devices import device_name
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.state import read
from culture_tasks.insertion.methods import labels, paper_rows
from culture_tasks.text_tables import as_text

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]

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


def prepared(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Saves models with random weights and a world of cases, once, and returns the options of each method."""
    from support.tiny_world import write_release

    folder = Path(options.folder)
    saved = {name: folder / options.shape / name for name in ("model", "replacement", "sentences", "images")}
    if not (saved["images"] / "config.json").exists():
        for name, place in saved.items():
            save(options.shape, name, place)
    world = folder / f"world-{options.image}"
    if not world.exists():
        write_release(world, range(6), range(options.raw_cases), tests=(2, 3, 4, 5))
        for file in world.rglob("*.png"):
            Image.open(file).resize((options.image, options.image)).save(file)
    os.environ |= {"CULTURE_TASKS_DATA": str(world), "CULTURE_JUDGE": "lexical", "HF_HUB_OFFLINE": "1"}
    method_options = {name: {"encoder": str(saved[encoder])} for name, encoder in _ENCODERS.items()}
    for name in ("serac", "mscke"):
        method_options[name]["replacement"] = str(saved["replacement"])
    if options.shape == "tiny":
        method_options |= {"mend": {"layers": "2", "rank": "4"}, "finetune": {"steps": "2"}, "mcki": {"route_dim": "8"}}
    return method_options


def save(shape: str, name: str, folder: Path) -> None:
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
    """Prints the costs of each method at each size of a batch."""
    method_options, folder = prepared(options), Path(options.folder) / options.shape
    loading = ModelOptions(device=options.device, dtype=options.dtype)
    start = time.perf_counter()
    model = MultimodalModel.load(str(folder / "model"), loading)
    loaded = time.perf_counter()
    MultimodalModel(model.model, model.processor, str(folder / "model"))
    print(f"loading {loaded - start:.1f} s, of that the fingerprint {time.perf_counter() - loaded:.1f} s")
    device = device_name(model.device)
    del model
    torch.cuda.empty_cache()
    lines = []
    for size in options.batches.split(","):
        for name in _names(options):
            out = folder / f"batches of {size}"
            given, state = method_options.get(name, {}), out / "states" / name
            if method_class(name).needs_state:
                subprocess.run(_fit_command(options, name, given, state, size), check=True)
            else:
                state = None
            results = out / "results" / name
            subprocess.run(_evaluation_command(options, name, given, state, size, results), check=True)
            lines.append((labels()[name], size, *_costs(results)))
    head = ("MEASURED", "batch", "train/case ms", "GiB", "insert ms", "request ms", "requests/s", "GiB", "B")
    print(as_text(head, lines))
    print(f"{options.shape} on {device}, {options.dtype}, images of {options.image} x {options.image}\n")


def _names(options: argparse.Namespace) -> Sequence[str]:
    return paper_rows() if options.methods == "all" else options.methods.split(",")


def _fit_command(
    options: argparse.Namespace, name: str, method_options: Mapping[str, str], state: Path, size: str
) -> list[str]:
    """Returns the command that fits a method."""
    model = str(Path(options.folder) / options.shape / "model")
    command = [sys.executable, "-m", "culture_tasks.cli.main", "insertion", "fit", "--method", name, "--model", model]
    command += ["--output", str(state), "--batch-size", size, "--limit", str(options.cases)]
    command += ["--device", options.device, "--dtype", options.dtype]
    return command + [text for option, value in method_options.items() for text in ("--set", f"{option}={value}")]


def _evaluation_command(
    options: argparse.Namespace,
    name: str,
    method_options: Mapping[str, str],
    state: Path | None,
    size: str,
    results: Path,
) -> list[str]:
    """Returns the command that evaluates a method, whose plain answers those of the same size share."""
    arguments = {"pretrained": str(Path(options.folder) / options.shape / "model"), "method": name}
    arguments |= {"device": options.device, "dtype": options.dtype}
    arguments |= {"answers": str(results.parent / "answers.sqlite3")}
    arguments |= method_options if state is None else {"state": str(state)}
    listed = ",".join(f"{argument}={value}" for argument, value in arguments.items())
    command = [sys.executable, "-m", "lmms_eval", "--model", "knowledge_insertion", "--model_args", listed]
    command += ["--tasks", "crosscult_single", "--limit", str(options.limit), "--batch_size", size]
    return [*command, "--log_samples", "--output_path", str(results)]


def _costs(results: Path) -> list[str]:
    """Returns what a result file says of its costs."""
    file = max(results.rglob("*_results.json"), key=lambda path: path.stat().st_mtime)
    costs = json.loads(file.read_text(encoding="utf-8"))["insertion_costs"]
    a_second = None if not costs["request_ms"] else 1000 / costs["request_ms"]
    names = ("train_ms", "train_gib", "insert_ms", "request_ms", "", "peak_gib", "parameters")
    return ["-" if (value := costs.get(name, a_second)) is None else f"{value:.2f}" for name in names]


def resume(options: argparse.Namespace) -> None:
    """Prints whether fits that were killed and continued are those without a break."""
    method_options, lines = prepared(options), []
    for name in (name for name in ("mend", "serac") if name in _names(options)):
        digests = []
        for kind in ("whole", "killed"):
            state = Path(options.folder) / options.shape / kind / name
            command = [*_fit_command(options, name, method_options[name], state, "16"), "--overwrite", *_CHECKPOINTS]
            if kind == "killed":
                _kill_at_checkpoint(command, state / "training.safetensors")
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            description, _ = read(state)
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
    parts = {"measure": measure, "resume": resume}
    parser.add_argument("--part", choices=["all", *parts], default="all")
    parser.add_argument("--shape", choices=["tiny", *SHAPES], default="tiny", help="random weights of this shape")
    parser.add_argument("--folder", default="build/random-models", help="where models, states and results are kept")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--image", type=int, default=112, help="side of the images")
    parser.add_argument("--raw-cases", type=int, default=20, help="raw cases of each of six scenarios")
    parser.add_argument("--limit", type=int, default=8, help="documents of each of four roles")
    parser.add_argument("--cases", type=int, default=40, help="training cases; MEND makes a step of two")
    parser.add_argument("--batches", default="1,8,32", help="sizes of a batch")
    parser.add_argument("--methods", default="all", help="methods to measure, and to kill the fits of")
    options = parser.parse_args()
    for name, part in parts.items():
        if options.part in ("all", name):
            part(options)


if __name__ == "__main__":
    main()
