"""Finding out before any inference whether lm-eval can load a judge here, without loading its weights.

The evaluated model may fill the GPU by the time that the judge is needed, so the judge is loaded after it. What can be
known before is: whether the backend's package is installed, the arguments are ones that it takes, the device exists,
configuration and tokenizer load, and the weights of a local folder are there.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from culture_tasks.errors import JudgeUnreachableError, nearest
from culture_tasks.judges.checking import OTHERWISE
from culture_tasks.judges.local_model import model_options
from culture_tasks.judges.redaction import Secrets

_PACKAGES: Mapping[str, str] = {
    "vllm": "vllm",
    "vllm-vlm": "vllm",
    "sglang": "sglang",
    "mamba_ssm": "mamba_ssm",
    "openvino": "optimum",
    "ipex": "optimum",
    "litellm": "litellm",
    "litellm-chat": "litellm",
    "litellm-chat-completions": "litellm",
}
"""The package that a backend asks for when a model of it is made."""

_TRANSFORMERS = ("hf", "hf-auto", "huggingface")
_SERVING = ("vllm", "sglang")
_PATHS = ("pretrained", "model", "tokenizer", "tokenizer_path", "peft", "delta", "lora_local_path")
_FOR_CONFIG = ("revision", "subfolder", "token", "gguf_file", "trust_remote_code")
_OTHER_HUBS = ("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")


def check_model(backend: str, arguments: str, secrets: Secrets) -> bool:
    """Makes sure that a judge can be loaded, as far as that can be known without its weights.

    Args:
        backend: Name in lm-eval's registry.
        arguments: Model arguments.
        secrets: What errors must not show.

    Returns:
        Whether the model is behind an API, so that loading it costs nothing and shows the rest.

    Raises:
        JudgeUnreachableError: If it can't.
    """
    cls = _class_of(backend)
    options = model_options(arguments)
    for problem in _problems(backend, cls, options):
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
    package = _PACKAGES.get(backend)
    try:
        if package is not None and find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}")
        return registry.get_model(backend)
    except ImportError as error:
        raise JudgeUnreachableError(
            f"judge lm_eval:{backend}: the backend can't be imported here ({error}). Install the package, or name "
            f"another backend, such as lm_eval:hf. {OTHERWISE}"
        ) from error


def _problems(backend: str, cls: Any, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields what stands in the way of loading, each in a sentence with what to do."""
    yield from _wrong_names(cls, options)
    yield from _missing_paths(options)
    if backend in _TRANSFORMERS:
        yield from _missing_device(options)
    elif backend in _SERVING:
        yield from _missing_gpus(backend, options)
    pretrained = options.get("pretrained")
    if backend not in _TRANSFORMERS + _SERVING or not isinstance(pretrained, str):
        return
    yield from _missing_weights(Path(pretrained) / str(options.get("subfolder", "")))
    elsewhere = "://" in pretrained or any(os.environ.get(name) for name in _OTHER_HUBS)
    if not elsewhere and "mistral" not in (options.get("config_format"), options.get("tokenizer_mode")):
        yield from _unreadable_model(pretrained, options)


def _wrong_names(cls: Any, options: Mapping[str, Any]) -> Iterator[str]:
    parameters = inspect.signature(cls.__init__).parameters
    known = [name for name in parameters if name != "self"]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    for name in options:
        if not takes_any and name not in known:
            yield f"it takes no argument {name!r}.{nearest(name, known)} Known are {', '.join(known)}."
    for name, each in parameters.items():
        named = each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        if name != "self" and named and each.default is each.empty and name not in options:
            yield f"it needs the argument {name}=…, as in lm_eval:hf,pretrained=Qwen/Qwen3-8B."


def _missing_paths(options: Mapping[str, Any]) -> Iterator[str]:
    for name in _PATHS:
        path = options.get(name)
        if isinstance(path, str) and path.startswith(("/", "./", "../", "~")) and not Path(path).exists():
            yield f"there is no model at {name}={path}. Correct the path; a leading ~ is not resolved."


def _missing_device(options: Mapping[str, Any]) -> Iterator[str]:
    """Finds a device that isn't there; without an argument lm-eval takes ``cuda``, whatever the machine has."""
    import torch

    if options.get("parallelize") or options.get("tp_plan") or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return  # others choose the devices
    device = options.get("device", "cuda")
    kind, _, number = str(device).partition(":")
    if kind == "cpu":
        return
    if kind == "cuda":
        count = torch.cuda.device_count()
        if count == 0:
            given = f"device={device}" if "device" in options else "the default device, cuda,"
            yield f"{given} needs a CUDA GPU, and there is none here. Add device=cpu, or name another judge."
        elif number.isdigit() and int(number) >= count:
            yield f"there is no device={device}: this machine has {count}, from cuda:0 on. Correct the device."
        elif number and not number.isdigit():
            yield f"device={device} is no device. Write cuda:<number>."
        return
    module = torch.backends.mps if kind == "mps" else getattr(torch, kind, None)
    if not (kind in ("mps", "npu", "xpu", "hpu") and module is not None and module.is_available()):
        yield f"there is no device={device} here. Allowed are cpu, cuda, cuda:<number>, mps, npu, xpu and hpu."


def _missing_gpus(backend: str, options: Mapping[str, Any]) -> Iterator[str]:
    import torch

    version = importlib.metadata.version(_PACKAGES[backend]) if find_spec(_PACKAGES[backend]) else ""
    others = [kind for kind in ("xpu", "npu", "hpu") if hasattr(torch, kind) and getattr(torch, kind).is_available()]
    if "cpu" in version or others:
        return
    count = torch.cuda.device_count()
    needed = options.get("tensor_parallel_size", options.get("tp_size", 1))
    if count == 0:
        yield "it needs a GPU, and there is none here. Name another judge, such as lm_eval:hf with device=cpu."
    elif isinstance(needed, int) and needed > count:
        yield f"it is to use {needed} GPUs, and there are {count}. Correct the number."


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
    """Loads configuration and tokenizer as the backend will; code of the model's own runs only if the user says so."""
    from transformers import AutoConfig, AutoTokenizer

    given = {name: options[name] for name in _FOR_CONFIG if options.get(name) is not None}
    given["trust_remote_code"] = bool(given.get("trust_remote_code", False))
    tokenizer = options.get("tokenizer") or options.get("tokenizer_path") or pretrained
    for part, source, load in (
        ("configuration", pretrained, AutoConfig.from_pretrained),
        ("tokenizer", str(tokenizer), AutoTokenizer.from_pretrained),
    ):
        try:
            load(source, **given)
        except Exception as error:  # noqa: BLE001  # transformers and the model's own code may raise anything
            said = " ".join(str(error).split())
            advice = "Correct the path or name, or load it into this machine's cache."
            if "trust_remote_code" in said:
                advice = "Add trust_remote_code=True if you trust the code that comes with it."
            yield f"the {part} of {source} can't be loaded ({type(error).__name__}: {said[:300]}). {advice}"
