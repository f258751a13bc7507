"""The tasks of a result file of either harness as runs: the model, the settings, and the harness's numbers."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from culture_tasks.harness.model_costs import ModelCosts
from culture_tasks.harness.records import OWN_DATA
from culture_tasks.harness.results import COMMITS
from culture_tasks.harness.subsets import Subset
from culture_tasks.results.finding import Harness, UnusedFile
from culture_tasks.results.run_files import SAMPLED, RunFiles
from culture_tasks.results.runs import Run, RunSettings, RunUsage
from culture_tasks.secret_texts import arguments_of, is_secret_name, shown_text, shown_value

_EXECUTION = frozenset(
    (
        *("pretrained", "model", "device", "device_map", "device_map_option", "batch_size", "max_batch_size"),
        *("num_concurrent", "max_retries", "timeout", "tokenized_requests", "trust_remote_code", "parallelize"),
        *("tensor_parallel_size", "data_parallel_size", "gpu_memory_utilization", "max_cpu_memory", "offload_folder"),
        *("attn_implementation", "use_cache", "answers", "paper_latency", "seed"),
        *("base_url", "api_base", "api_type", "azure_endpoint", "azure_openai", "endpoint", "host", "port"),
        *("ca_cert_path", "verify_certificate"),
        *("enforce_eager", "max_num_seqs", "swap_space"),
    )
)
"""Arguments of a model on where and how fast it runs, not on which model it is."""

_ADAPTERS = ("peft", "lora_local_path")
"""Arguments that name an adapter: of lm-eval's hf, and of its vllm."""

_DEFINITION = (
    *("filter_list", "metric_list", "process_results", "process_docs", "output_type", "dataset_name", "test_split"),
    *("validation_split", "description", "doc_to_text", "doc_to_target", "doc_to_choice", "target_delimiter"),
)
"""Entries of a task's configuration that decide what its number means: another filter reads other answers."""

_OPTION_ORDER = "option_order"
"""Entry of the metadata of tasks whose options an older version had shuffled."""

_LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_SAMPLING = ("temperature", "top_p", "top_k", "num_beams", "repetition_penalty")
_NEUTRAL: Mapping[str, object] = {"temperature": 1.0, "top_p": 1.0, "top_k": None, "num_beams": 1}


def task_results(run: RunFiles) -> list[Run] | UnusedFile:
    """Returns the tasks and groups of a result file, or says why it can't be used."""
    if not run.content["results"]:
        return UnusedFile(str(run.result_file), "empty", "its 'results' have no task")
    try:
        return list(_tasks(run))
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError, OSError) as error:
        reason = f"not laid out as a harness does ({type(error).__name__}: {error})"
        return UnusedFile(str(run.result_file), "damaged", reason)


def _tasks(run: RunFiles) -> Iterator[Run]:
    content = run.content
    config, configs = content.get("config") or {}, content.get("configs") or ()
    args = _model_args(config.get("model_args"))
    name = shown_text(str(_model_name(run, args) or args.get("pretrained") or config.get("model") or "unknown model"))
    seconds = _number(content.get("total_evaluation_time_seconds"))  # a text in both harnesses
    shared: dict[str, Any] = {
        "harness": run.harness,
        "path": run.result_file,
        "model": name,
        "model_name": name,
        "arguments": tuple(
            sorted(
                (name, value)
                for name, value in args.items()
                if name not in _EXECUTION and not is_secret_name(name) and not re.match(r"\w+://", value)
            )
        ),
        "pretrained": args.get("pretrained") or args.get("model") or "",
        "adapter": next((args[name] for name in _ADAPTERS if args.get(name)), ""),
        "date": _date(run),
        "graded_from": run.graded_from,
        "together": frozenset(configs),
        "seconds": seconds if type(seconds) in (int, float) and 0.0 <= seconds < math.inf else None,
        "costs": ModelCosts.read(content),
    }
    for task, values in content["results"].items():
        if not isinstance(values, dict):
            raise TypeError(f"found {type(values).__name__} as the results of {task}")
        metrics, errors = _numbers(values)
        yield Run(
            **shared,
            task=task,
            settings=_settings(task, run),
            own_data="; ".join(": ".join(pair) for pair in _pairs(_entry(content, "configs", task), OWN_DATA)),
            expected=run.counts(task)[1],
            original=run.counts(task)[0],
            is_first=bool(config.get("limit")) and not config.get("offset"),
            metrics=metrics,
            errors=errors,
            higher_is_better={
                name: better for name, better in _entry(content, "higher_is_better", task).items() if better is not None
            },
            members=tuple(_entry(content, "group_subtasks", task)),
            samples_file=run.samples_file(task),
            usage=_spent((content.get("efficiency") or {}).get("by_task"), task),
            subset=Subset.read(_entry(content, "configs", task).get("metadata")),
        )


def _model_name(run: RunFiles, args: Mapping[str, str]) -> Any:
    """Returns the model's name in the harness, or None: lm-eval makes one up where the arguments name none."""
    name = run.content.get("model_name")
    # Eight random letters and digits.
    if run.harness == "lm_eval" and re.fullmatch("[a-z0-9]{8}", str(name)) and name not in args.values():
        return None
    return name


def _spent(by_task: Any, task: str) -> RunUsage | None:
    """Returns the tokens that lmms-eval has counted, if it has those of every document; it writes 0 for none."""
    counts = (by_task or {}).get(task) or {}
    if not counts.get("docs") or counts["docs"] != counts.get("docs_with_token_counts"):
        return None
    tokens_in, tokens_out = (_number(counts.get(f"total_{name}_tokens")) or None for name in ("input", "output"))
    return RunUsage(tokens_in=tokens_in, tokens_out=tokens_out)


def _model_args(arguments: Any) -> dict[str, str]:
    """Returns the arguments of a model, without secrets."""
    if not isinstance(arguments, dict):
        parts = arguments_of(str(arguments or ""))
        arguments = {name.strip(): value.strip() for name, _, value in parts}
    return {shown_text(str(name)): str(shown_value(str(name), value)) for name, value in arguments.items() if str(name)}


def _date(run: RunFiles) -> str:
    """When the run was, in UTC where the file says enough: lmms-eval names its files by the time of a chosen zone."""
    date = run.content.get("date")
    if isinstance(date, (int, float)) and not isinstance(date, bool):
        return datetime.fromtimestamp(date, UTC).isoformat(timespec="seconds")
    if run.harness == "lm_eval":
        day, _, time = run.stamp.partition("T")
        return f"{day}T{time.replace('-', ':')}"
    return (run.time.replace(tzinfo=run.zone).astimezone(UTC) if run.zone else run.time).isoformat()


def _entry(content: Mapping[str, Any], part: str, task: str) -> Any:
    """Returns a task's entry in a part of a result file; an empty mapping without one."""
    return (content.get(part) or {}).get(task) or {}


def _settings(task: str, run: RunFiles) -> RunSettings:
    content, harness = run.content, run.harness
    config = _entry(content, "configs", task)
    original, effective = run.counts(task)
    subset = Subset.read(config.get("metadata"))
    is_sample = subset is not None and SAMPLED in (content.get("config") or {})
    seed = 0 if subset is None or is_sample else subset.seed  # a sample of a run's responses is no draw of questions
    items = subset.of_documents if subset is not None and is_sample else effective  # that the number is of
    shots = _entry(content, "n-shot", task)
    template = _chat_template(content, harness)
    version = _number((content.get("versions") or {}).get(task))
    metadata = config.get("metadata")
    order = metadata.get(_OPTION_ORDER) if isinstance(metadata, dict) else None
    parts = [
        f"options {str(order)[:20]}" if order else "",
        f"{shots} shots" if shots else "",
        "examples as turns" if shots and template not in ("", "none") and content.get("fewshot_as_multiturn") else "",
        f"system instruction {str(system)[:12]}" if (system := content.get("system_instruction_sha")) else "",
    ]
    return RunSettings(
        task_version="" if version in (None, "N/A") else str(version),
        prompt=", ".join(part for part in parts if part),
        commits=_pairs(config, COMMITS),
        decoding=_decoding(config, (content.get("config") or {}).get("gen_kwargs")),
        chat_template=template,
        limit=items if items is not None and original is not None and items < original else None,
        subset=f"{subset}, seed {seed}" if seed else str(subset or ""),
        seed=seed,
        definition=(
            ("harness", harness),
            *((name, _hash(config[name])) for name in _DEFINITION if config.get(name)),
        ),
    )


def _hash(value: Any) -> str:
    """Returns a short hash of a value; a function that is written with its address in memory is ``unknown``."""
    text = " ".join(json.dumps(value, sort_keys=True).replace("\\n", " ").split())
    return "unknown" if " at 0x" in text else hashlib.sha256(text.encode()).hexdigest()[:12]


def _pairs(config: Mapping[str, Any], entry: str) -> tuple[tuple[str, str], ...]:
    """Returns an entry of a task's metadata that has a text by data set or file, as pairs."""
    metadata = config.get("metadata")
    names = metadata.get(entry) if isinstance(metadata, dict) else None
    return tuple(sorted((str(name), str(value)) for name, value in (names or {}).items()))


def _chat_template(content: Mapping[str, Any], harness: Harness) -> str:
    """Returns the chat template that was applied. lmms-eval's models have defaults where none is named."""
    if content.get("chat_template", "") is None:
        return "none" if harness == "lm_eval" else ""
    sha = content.get("chat_template_sha")
    return str(sha)[:12] if sha else "the endpoint's" if "chat_template" in content else ""


def _decoding(config: Mapping[str, Any], override: Any) -> str:
    """Generation settings in one spelling for both harnesses, as canonical JSON."""
    if config.get("output_type") not in (None, "generate_until"):
        return ""
    options = dict(config.get("generation_kwargs") or {})
    options.update(override if isinstance(override, dict) else _model_args(override))
    if not options:
        return ""
    decoding: dict[str, Any] = {"repeats": config.get("repeats") or 1}
    for name in _LENGTHS:
        if options.get(name) is not None:
            decoding["max_tokens"] = _number(options[name])
    if until := options.get("until"):
        decoding["until"] = sorted(map(str, until if isinstance(until, list) else [until]))
    temperature = _number(options.get("temperature"))
    names: tuple[str, ...] = _SAMPLING
    if str(options.get("do_sample")).lower() == "false" or temperature == 0:
        decoding["greedy"] = True
        names = ("num_beams", "repetition_penalty")
    for name in names:
        value = _number(options.get(name))
        if value is not None and value != _NEUTRAL.get(name):
            decoding[name] = value
    return json.dumps(decoding, sort_keys=True)


def _number(value: Any) -> Any:
    """Returns a number, whole where it can be, of a number or a text; any other text as it is."""
    try:
        number = None if value is None else float(value)
    except (TypeError, ValueError):
        return str(value)
    return int(number) if number is not None and number.is_integer() else number


def _numbers(values: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Returns the metrics and their standard errors by name."""
    metrics: dict[str, float] = {}
    errors: dict[str, float] = {}
    for key, value in values.items():
        name, _, label = key.partition(",")
        metric, is_error, kind = name.partition("_stderr")
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if label and is_number and not kind:  # lmms-eval has further errors, as acc_stderr_clt
            (errors if is_error else metrics)[metric if label == "none" else f"{metric},{label}"] = float(value)
    return metrics, errors
