"""Finding out before any inference whether a judge can grade.

An endpoint gets one real question, graded as all others are.

A model that lm-eval loads here is looked at without its weights: the evaluated model may fill the GPU by the time that
the judge is needed, so the judge is loaded after it. Some things can be known before: whether the backend's package is
installed, the GPUs are there, configuration and tokenizer load, and a local folder holds all weights.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from culture_tasks.errors import WAYS_OUT, JudgeUnreachableError, nearest
from culture_tasks.judges.cache.verdict_cache import CacheThread
from culture_tasks.judges.completions import Problem
from culture_tasks.judges.endpoint.addresses import Address
from culture_tasks.judges.endpoint.asker import Adaptations
from culture_tasks.judges.endpoint.budget import USED_UP
from culture_tasks.judges.endpoint.client import one_line
from culture_tasks.judges.endpoint.engine import Connection
from culture_tasks.judges.endpoint.jobs import Grading, JudgedBy
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.endpoint.redaction import Secrets
from culture_tasks.judges.local.local_model import model_options
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Verdict

logger = logging.getLogger(__name__)

_PATIENCE = Patience(longest=10.0)
_GRADINGS_PER_LOOKUP = 1000
OTHERWISE = "Or set CULTURE_JUDGE=none to record the responses now and grade them later with `culture-tasks rejudge`."
"""What a user can do who has no judge that works now."""

_SERVING: Mapping[str, str] = {"vllm": "vllm", "vllm-vlm": "vllm", "sglang": "sglang"}
"""Backends that serve a model on GPUs, and the package that each imports when a model of it is made."""

_LOCAL = frozenset(("hf", "hf-auto", "huggingface", *_SERVING))
_FOR_CONFIG = ("revision", "subfolder", "token", "gguf_file", "trust_remote_code")
_OTHER_HUBS = ("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")

Expected = Sequence[tuple[Rubric, JudgeItem]]


def check_endpoint(
    connection: Connection, *, address: Address, by: JudgedBy, expected: Expected, responses_known: bool
) -> Verdict | None:
    """Asks for one verdict; once per process, endpoint and model.

    The question is the first one that will be graded, with a reference in place of the response: a judge that gives no
    readable verdict on it gives none on anything. The reply isn't kept. Nothing is asked where the cache holds every
    verdict, which can be told only where the responses are known.

    Returns:
        The verdict; None where nothing was asked, or where a rate limit or a content filter leaves it open.

    Raises:
        JudgeUnreachableError: If key, model or address are wrong, there is no answer, or the reply can't be read.
    """
    with connection.check_lock:
        adaptations = connection.asker.adaptations(by.model)
        if not expected or by.model in connection.checked:
            return None
        if responses_known and is_at_hand(connection.cache, adaptations=adaptations, by=by, expected=expected):
            return None
        who = f"judge {by.model}: {address.shown}"
        if address.is_keyless_openai:
            raise JudgeUnreachableError(f"{who} needs a key. {WAYS_OUT}")
        rubric, item = expected[0]
        result = _probe(connection, by, Grading(by, rubric, replace(item, response=item.references[0])))
        if isinstance(result, Verdict):
            if result.outcome != "scored":
                raise JudgeUnreachableError(unreadable(who, rubric, result))
            connection.checked.add(by.model)
            return result
        if (result.status == 429 and result.retry) or result.refused:
            why = "declines the first question" if result.refused else "limits the rate"
            logger.warning("%s %s (%s): the run goes on", who, why, result.message)
            return None
        raise JudgeUnreachableError(f"{who}: {result.message}. {_advice(address, result)} {OTHERWISE}")


def is_at_hand(cache: CacheThread, *, adaptations: Adaptations, by: JudgedBy, expected: Expected) -> bool:
    """Whether the cache holds a score for each response; takes over what it tells of the endpoint's parameters."""
    for start in range(0, len(expected), _GRADINGS_PER_LOOKUP):
        gradings = [Grading(by, rubric, item) for rubric, item in expected[start : start + _GRADINGS_PER_LOOKUP]]
        while gradings:
            requests = [by.request(grading) for grading in gradings]
            completions = cache.get_many([request.key for request in requests]).result()
            unread: list[Grading] = []
            for grading, request in zip(gradings, requests, strict=True):
                stored = completions.get(request.key)
                if stored is None:
                    return False
                if stored.completion.sampling is not None and stored.completion.sampling != request.sampling:
                    adaptations.adopt(request.sampling, stored.completion.sampling)
                verdict = grading.take(stored.completion, by.model, 0, cached=True)
                if verdict is None:
                    unread.append(grading)
                elif verdict.outcome != "scored":
                    return False
            gradings = unread
    logger.info("judge %s: every verdict is in the cache, so the judge is not asked", by.model)
    return True


def _probe(connection: Connection, by: JudgedBy, grading: Grading) -> Verdict | Problem:
    while True:
        answer = connection.run(connection.asker.ask(by.request(grading), patience=_PATIENCE))
        if isinstance(answer.reply, Problem):
            return answer.reply
        verdict = grading.take(answer.reply, by.model, answer.attempts)
        if verdict is not None:
            return verdict


def unreadable(who: str, rubric: Rubric, verdict: Verdict) -> str:
    """Says that a judge gave no verdict on a reference answer, why that may be, and what to do."""
    return (
        f"{who} was asked to grade a reference answer ({rubric.name}), and "
        f"{verdict.error}: {one_line(verdict.completion or '') or 'an empty reply'!r}. A judge that thinks for long "
        "needs a larger CULTURE_JUDGE_MAX_TOKENS; one that doesn't keep to the format can't grade: name another with "
        f"CULTURE_JUDGE. {OTHERWISE}"
    )


def _advice(address: Address, problem: Problem) -> str:
    where = address.url_variable
    if problem.code == USED_UP:
        return "Raise CULTURE_JUDGE_BUDGET."
    if problem.status in (401, 403):
        return f"Correct the key ({address.key_variable}), or ask for access to the model."
    if problem.says_unknown_model:
        model = "Name a model that it has by CULTURE_JUDGE=openai:<model>"
        if where == "AZURE_OPENAI_ENDPOINT":
            return "Name one of your deployments by CULTURE_JUDGE=openai:<deployment>, or correct OPENAI_API_VERSION."
        return f"{model}, or correct {where}, which usually ends in /v1." if where else f"{model}."
    if problem.code == "insufficient_quota":
        return f"Its account has no credit left: add some, or use another key ({address.key_variable})."
    if problem.status is None:
        reach = "See whether this machine can reach it; HTTPS_PROXY names a proxy."
        return f"Correct {where}, or start the server there." if where else reach
    if 300 <= problem.status < 400 and where:
        return f"Correct {where}."
    return "See what the endpoint says."


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
