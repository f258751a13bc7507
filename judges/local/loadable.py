"""Finding out before any inference whether a model can be loaded here as a judge.

It is looked at without its weights: the evaluated model may fill the GPU by the time that the judge is needed, so the
judge is loaded after it. Some things can be known before: whether the backend's package is installed, the GPUs are
there, configuration and tokenizer load, and a local folder holds all weights.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from culture_tasks.errors import JudgeUnreachableError, nearest
from culture_tasks.judges.endpoint.readiness import OTHERWISE
from culture_tasks.judges.endpoint.redaction import Secrets
from culture_tasks.judges.local.local_model import model_options

_SERVING: Mapping[str, str] = {"vllm": "vllm", "vllm-vlm": "vllm", "sglang": "sglang"}
"""Backends that serve a model on GPUs, and the package that each imports when a model of it is made."""

_LOCAL = frozenset(("hf", "hf-auto", "huggingface", *_SERVING))
_FOR_CONFIG = ("revision", "subfolder", "token", "gguf_file", "trust_remote_code")
_OTHER_HUBS = ("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")


def check_model(backend: str, arguments: str, secrets: Secrets) -> bool:
    """Makes sure that a judge can be loaded, as far as that can be known without its weights.

    Returns:
        Whether the model is behind an API, so that loading it costs nothing and shows the rest.

    Raises:
        JudgeUnreachableError: If it can't.
    """
    cls = _class_of(backend)
    options = model_options(arguments)
    for problem in _problems(backend, options) if backend in _LOCAL else ():
        raise JudgeUnreachableError(secrets.hidden(f"judge lm_eval:{backend}: {problem} {OTHERWISE}"))
    from lm_eval.models.api_models import TemplateAPI

    return isinstance(cls, type) and issubclass(cls, TemplateAPI)


def _class_of(backend: str) -> Any:
    import lm_eval.models  # noqa: F401  # fills the registry
    from lm_eval.api import registry

    if backend not in registry.model_registry:
        known = sorted(registry.model_registry.keys())
        raise JudgeUnreachableError(
            f"judge lm_eval:{backend}: lm-eval has no backend {backend!r}.{nearest(backend, known)} "
            f"Known are {', '.join(known)}. Write CULTURE_JUDGE=lm_eval:<backend>,<model args>."
        )
    package = _SERVING.get(backend)
    try:
        if package is not None and find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}")
        return registry.get_model(backend)
    except ImportError as error:
        raise JudgeUnreachableError(
            f"judge lm_eval:{backend}: the backend can't be imported here ({error}). Install the package, or name "
            f"another backend, such as lm_eval:hf. {OTHERWISE}"
        ) from error


def _problems(backend: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields reasons why a model can't be loaded, each in a sentence with what to do."""
    pretrained = options.get("pretrained")
    if not isinstance(pretrained, str):
        yield "it needs the argument pretrained=…, as in lm_eval:hf,pretrained=Qwen/Qwen3-8B."
        return
    yield from _missing_gpus(backend, options)
    yield from _missing_weights(Path(pretrained) / str(options.get("subfolder", "")))
    elsewhere = "://" in pretrained or any(os.environ.get(name) for name in _OTHER_HUBS)
    if not elsewhere and "mistral" not in (options.get("config_format"), options.get("tokenizer_mode")):
        yield from _unreadable_model(pretrained, options)


def _missing_gpus(backend: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Finds GPUs that aren't there; without an argument lm-eval takes ``cuda``, whatever the machine has."""
    import torch

    kind, _, number = str(options.get("device", "cuda")).partition(":")
    needed: Any = int(number) + 1 if number.isdigit() else 1
    others_choose = bool(options.get("parallelize") or options.get("tp_plan") or os.environ.get("WORLD_SIZE"))
    if package := _SERVING.get(backend):
        needed = options.get("tensor_parallel_size", options.get("tp_size", 1))
        others = any(hasattr(torch, name) and getattr(torch, name).is_available() for name in ("xpu", "npu", "hpu"))
        others_choose = others or bool(find_spec(package) and "cpu" in importlib.metadata.version(package))
    count = torch.cuda.device_count()
    if kind == "cuda" and not others_choose and isinstance(needed, int) and needed > count:
        yield (
            f"it needs {needed} CUDA GPUs, and this machine has {count}. Correct the number, or name another judge or "
            "device, such as lm_eval:hf with device=cpu."
        )


def _missing_weights(folder: Path) -> Iterator[str]:
    if not folder.is_dir():
        return
    for index in sorted(folder.glob("*.index.json")):
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            yield f"{index} can't be read ({type(error).__name__}). Copy the model again."
            continue
        missing = sorted(shard for shard in shards if not (folder / str(shard)).exists())
        if missing:
            yield f"{folder} holds {len(shards) - len(missing)} of {len(shards)} weight files: {missing[0]} is missing."
    if not any(file.suffix in _WEIGHTS for file in folder.iterdir()):
        yield f"{folder} holds no weights ({', '.join(_WEIGHTS)}). Correct the path, or copy the model again."


def _unreadable_model(pretrained: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Loads configuration and tokenizer as the backend will; the model's code runs only if the user says so."""
    from transformers import AutoConfig, AutoTokenizer

    settings = {name: options[name] for name in _FOR_CONFIG if options.get(name) is not None}
    settings["trust_remote_code"] = bool(settings.get("trust_remote_code", False))
    tokenizer = options.get("tokenizer") or options.get("tokenizer_path") or pretrained
    for part, source, load in (
        ("configuration", pretrained, AutoConfig.from_pretrained),
        ("tokenizer", str(tokenizer), AutoTokenizer.from_pretrained),
    ):
        try:
            load(source, **settings)
        except Exception as error:  # noqa: BLE001  # transformers and the model's own code may raise anything
            message = " ".join(str(error).split())
            advice = "Correct the path or name, or load it into this machine's cache."
            if "trust_remote_code" in message:
                advice = "Add trust_remote_code=True if you trust the code that comes with it."
            yield f"the {part} of {source} can't be loaded ({type(error).__name__}: {message[:300]}). {advice}"
