"""Generation by a model class of lmms-eval: its engines, its batches, its parallelism.

What is asked becomes one virtual task of that class, whose documents are made when they are asked for. One task and one
way to messages serve all requests, since some classes take those of the first request for a whole batch. Some answer
with an empty text where generating failed: an empty answer is never stored, so that a later run asks again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import json
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lmms_eval.api.instance import GenerationResult, Instance

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.harness.lmms_eval.hooks import Conversation
from culture_tasks.insertion.core.adapter import Answer, ModelOptions, MultimodalModel, load_encoding
from culture_tasks.insertion.core.decoding import Decoding
from culture_tasks.insertion.core.queries import Query

_log = logging.getLogger(__name__)

_TASK, _SPLIT = "prompts", "test"
_CHUNK = 256  # requests whose answers are stored together; a class that batches more gets more
_PREFIX = "backend_"
_CHECKPOINT = ("pretrained", "model", "model_version")
_ENGINES = ("vllm", "sglang", "transformers")
_IMAGES, _TEMPLATE = "image options", "chat template"  # settings that some classes take as one argument
_OWN_NAMES: Mapping[str, Mapping[str, str]] = {
    "lmms_eval.models.chat.vllm": {
        "revision": "revision",
        "dtype": "dtype",
        _IMAGES: "mm_processor_kwargs",
        _TEMPLATE: "chat_template",
    },
    # It reads its processor from the main branch, and opens a template's text as if it were a path.
    "lmms_eval.models.chat.vllm_generate": {"dtype": "dtype", _IMAGES: "mm_processor_kwargs"},
    # It reads configuration and processor from the main branch.
    "lmms_eval.models.chat.sglang": {"dtype": "dtype", _TEMPLATE: "chat_template"},
    # They resize images by qwen-vl-utils: their limits of pixels are those of videos.
    "lmms_eval.models.chat.qwen3_vl": {name: name for name in ("attn_implementation", "enable_thinking")},
    "lmms_eval.models.chat.qwen3_5": {name: name for name in ("attn_implementation", "enable_thinking")},
    "lmms_eval.models.chat.async_openai": {},
    "lmms_eval.models.chat.longvila": {},
}
"""Names of settings in classes whose signature doesn't say them. Their own limits of pixels are those of videos."""
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ONE_AT_A_TIME = ("lmms_eval.models.chat.internvl_hf",)


class _Prompts(Sequence[Query]):
    """The documents of the virtual task."""

    def __init__(self) -> None:
        self.queries: Sequence[Query] = ()

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, place: Any) -> Any:
        return self.queries[place]


class Backend:
    """A chat model class of lmms-eval as an engine.

    The class is made when it is first asked: until then :attr:`model` may have the memory.

    Args:
        name: What ``--model`` calls the class.
        arguments: Its arguments.
        pretrained: The checkpoint, which it is given under its own name for it.
        options: The settings of the method's model, all of which it is given.
        batch_size: Requests that are answered together.

    Attributes:
        model: The method's model on transformers, which gives its memory on a GPU back before the class is made.

    Raises:
        SettingsError: If there is no such class, it takes no conversations, or lacks an argument.
    """

    def __init__(
        self, name: str, arguments: Mapping[str, Any], *, pretrained: str, options: ModelOptions, batch_size: int
    ) -> None:
        self._name = name
        self._class = _class_named(name)
        self._arguments = _arguments_of(name, self._class, arguments, pretrained, options, batch_size)
        self._prompts = _Prompts()
        self._made: Any = None
        self.model: MultimodalModel | None = None

    @property
    def identity(self) -> str:
        """Hash of all that can change an answer, the request and its decoding aside."""
        relevant = {  # addresses, keys and the size of a batch change none
            key: value
            for key, value in self._arguments.items()
            if key not in ("batch_size", "device", *_CHECKPOINT) and "key" not in key and "url" not in key
        }
        weights = "" if self.model is None else self.model.identity.weights
        versions = [_version(package) for package in ("lmms_eval", *_ENGINES)]
        described = [self._name, f"{self._class.__module__}.{self._class.__qualname__}", relevant, weights, versions]
        return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()[:32]

    def answers(self, queries: Sequence[Query], decodings: Sequence[Decoding]) -> Iterator[tuple[int, Answer]]:
        """Yields the place of a request, with its answer, some hundred at a time."""
        made = self._ready()
        self._prompts.queries = queries
        size = max(_CHUNK, int(self._arguments.get("batch_size") or 1))
        rounds = -(-_most_of_all_ranks(len(queries)) // size)
        empty = 0
        for number in range(rounds):
            places = range(number * size, min(len(queries), (number + 1) * size))
            # Ranks that share an engine have to call it equally often, with something to ask each time.
            asked = list(places) or ([0] if queries else [])
            found = made.generate_until([self._instance(place, decodings[place]) for place in asked])
            if len(found) != len(asked):
                raise CultureTasksError(
                    f"knowledge_insertion: the backend answered {len(found)} of {len(asked)} requests."
                )
            for place, answer in zip(places, found, strict=False):
                reply = _reply(answer)
                empty += not reply.text and not reply.new_tokens
                yield place, reply
        if empty:
            _log.warning(
                "knowledge_insertion: %d of %d answers of the backend are empty; if its log shows errors, run again: "
                "these alone will be asked",
                empty,
                len(queries),
            )

    def clean(self) -> None:
        """Gives the memory back."""
        if self._made is not None:
            self._made.clean()
            self._made = None

    def _ready(self) -> Any:
        if self._made is None:
            if self.model is not None and self.model.device.type == "cuda":
                self.model.release()
            try:
                with _template_in_a_file(self._arguments) as arguments:
                    self._made = self._class(**arguments)
            except (TypeError, AssertionError, ImportError, ValueError) as error:
                raise SettingsError(
                    f"knowledge_insertion: the backend {self._class.__name__} can't be made "
                    f"({type(error).__name__}: {str(error).strip()[:300]}). Correct its arguments: those with the "
                    f"prefix {_PREFIX} and all that knowledge_insertion itself doesn't have go to it."
                ) from error
            self._made.task_dict = {_TASK: {_SPLIT: self._prompts}}
        return self._made

    def _instance(self, place: int, decoding: Decoding) -> Instance:
        settings = {**decoding.as_dict(), "do_sample": decoding.samples, "until": []}
        chosen = {name: value for name, value in settings.items() if value is not None}
        return Instance(
            request_type="generate_until",
            # Some classes write into the decoding settings: each request has its own.
            arguments=("", _messages, chosen, place, _TASK, _SPLIT),
            idx=0,
            metadata={"task": _TASK, "doc_id": place, "repeats": 1},
        )


def _messages(query: Query) -> Conversation:
    """Returns a conversation as lmms-eval's chat models take it."""
    return Conversation(
        {
            "role": message["role"],
            "content": [
                {"type": "image", "url": part["image"].convert("RGB")} if part["type"] == "image" else dict(part)
                for part in message["content"]
            ],
        }
        for message in query.messages()
    )


def _reply(answer: Any) -> Answer:
    counts = answer.token_counts if isinstance(answer, GenerationResult) else None
    text = answer.text if isinstance(answer, GenerationResult) else str(answer)
    return Answer(text.strip(), getattr(counts, "input_tokens", None), getattr(counts, "output_tokens", None))


def _class_named(name: str) -> type:
    from lmms_eval.models import MODEL_REGISTRY_V2

    known = MODEL_REGISTRY_V2.list_model_names()
    if name not in known:
        raise SettingsError(
            f"knowledge_insertion: unknown backend {name!r}.{nearest(name, known)} Name a chat model of lmms-eval, "
            "such as vllm or sglang."
        )
    try:
        found: type = MODEL_REGISTRY_V2.get_model_class(name)
    except ImportError as error:
        raise SettingsError(
            f"knowledge_insertion: backend={name} can't be imported ({error}). Install the package that is missing "
            "(decord: pip install 'culture-tasks[video]'), or name another backend."
        ) from error
    if getattr(found, "is_simple", True):
        raise SettingsError(
            f"knowledge_insertion: backend={name} takes no conversations. Name a chat model of lmms-eval, such as "
            "vllm or sglang."
        )
    return found


def _arguments_of(
    name: str, model: type, arguments: Mapping[str, Any], pretrained: str, options: ModelOptions, batch_size: int
) -> dict[str, Any]:
    """Returns the arguments of a class.

    Raises:
        SettingsError: If the class has no such argument, or none for a setting that changes answers.
    """
    parameters = _parameters(model)
    given = {key.removeprefix(_PREFIX): value for key, value in arguments.items()}
    unknown = sorted(set(given) - set(parameters))
    if unknown and not _is_open(inspect.signature(model).parameters):
        raise SettingsError(
            f"knowledge_insertion: backend={name} has no argument {unknown[0]!r}."
            f"{nearest(unknown[0], parameters)} Known are {', '.join(parameters)}."
        )
    checkpoint = next((each for each in _CHECKPOINT if each in parameters), None)
    if checkpoint is None:
        raise SettingsError(f"knowledge_insertion: backend={name} takes no checkpoint. Choose another, such as vllm.")
    if model.__module__ in _ONE_AT_A_TIME and str(given.get("batch_size", batch_size)) != "1":
        raise SettingsError(
            f"knowledge_insertion: backend={name} answers one request at a time. Add {_PREFIX}batch_size=1 to "
            "--model_args, or leave the backend out: transformers answers in batches of batch_size."
        )
    shared = {
        "device": options.device,
        "device_map": options.device_map,
        "batch_size": batch_size,
        "trust_remote_code": options.trust_remote_code,
    }
    encoding = load_encoding(pretrained, options)
    names = _OWN_NAMES.get(model.__module__)
    if names is None:
        names = {key: key for key in parameters} | ({"dtype": "torch_dtype"} if "torch_dtype" in parameters else {})
        shared |= encoding.image_limits()  # a class may have other limits
    settings = _settings(options, encoding.fixed_template(), names)
    for setting, value in settings.items():
        if setting not in names and setting not in given:
            advice = f"Choose {setting}={not value}" if setting in options.template else f"Leave {setting} out"
            raise SettingsError(
                f"knowledge_insertion: backend={name} can't be given {setting}={value}: lmms-eval's class has no "
                f"argument for it. {advice}, name another backend, or none: transformers answers in batches too."
            )
    return {
        checkpoint: pretrained,
        **{key: value for key, value in shared.items() if key in parameters and value is not None},
        **{names[setting]: value for setting, value in settings.items() if setting in names},
        **given,
    }


def _settings(options: ModelOptions, template: str | None, names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the chosen settings that change answers.

    Args:
        options: The settings.
        template: The chat template with its variables set inside; None if they change nothing.
        names: A class's names of settings, which say what it takes as one argument.
    """
    found = {
        "revision": options.revision,
        "dtype": None if options.dtype == "auto" else options.dtype,
        "attn_implementation": options.attn_implementation,
        **({_IMAGES: dict(options.images) or None} if _IMAGES in names else options.images),
        **({_TEMPLATE: template} if _TEMPLATE in names else options.template if template else {}),
    }
    return {setting: value for setting, value in found.items() if value is not None}


def _parameters(model: type) -> dict[str, inspect.Parameter]:
    """Returns the named parameters of a class, and its parents' where it hands on what it doesn't know."""
    found: dict[str, inspect.Parameter] = {}
    for base in model.__mro__:
        if "__init__" in vars(base):
            own = inspect.signature(vars(base)["__init__"]).parameters
            found = {**own, **found}
            if not _is_open(own):
                break
    return {key: each for key, each in found.items() if key != "self" and each.kind in _NAMED}


def _is_open(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())


@contextmanager
def _template_in_a_file(arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Gives arguments whose chat template is a file: lmms-eval's classes take a text with a slash for a path."""
    text = str(arguments.get("chat_template", ""))
    if "{%" not in text:
        yield arguments
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.jinja"
        path.write_text(text, encoding="utf-8")
        yield {**arguments, "chat_template": str(path)}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _most_of_all_ranks(count: int) -> int:
    """Returns the largest of all ranks' numbers."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return count
    counts: list[int] = [0] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(counts, count)
    return max(counts)
