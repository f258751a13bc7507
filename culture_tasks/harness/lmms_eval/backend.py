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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from lmms_eval.api.instance import GenerationResult, Instance

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.harness.lmms_eval.hooks import Conversation
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.queries import Query
from culture_tasks.insertion.runner import Reply

_log = logging.getLogger(__name__)

_TASK, _SPLIT = "prompts", "test"
_CHUNK = 256  # requests whose answers are stored together; a class that batches more gets more
_PREFIX = "backend_"
_CHECKPOINT = ("pretrained", "model", "model_version")
_ENGINES = ("vllm", "sglang", "transformers")


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

    It is made when it is first asked, after :attr:`make_room` was called: until then another model may have the
    memory.

    Args:
        name: What ``--model`` calls the class.
        arguments: Its arguments.
        pretrained: The checkpoint, which it is given under its own name for it.
        shared: Arguments that are given only where the class has them.
        model: Fingerprint of the model.
        make_room: Called before the class is made.

    Raises:
        SettingsError: If there is no such class, it takes no conversations, or lacks an argument.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        pretrained: str,
        shared: Mapping[str, Any],
        model: str,
        make_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._class = _class_named(name)
        self._arguments = _arguments_of(name, self._class, arguments, pretrained, shared)
        self._make_room = make_room
        self._prompts = _Prompts()
        self._made: Any = None
        self.identity = _identity(name, self._class, self._arguments, model)

    def answers(self, queries: Sequence[Query], decodings: Sequence[Decoding]) -> Iterator[tuple[int, Reply]]:
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
            self._make_room()
            try:
                self._made = self._class(**self._arguments)
            except (TypeError, AssertionError, ImportError, ValueError) as error:
                raise SettingsError(
                    f"knowledge_insertion: the backend {self._class.__name__} can't be made "
                    f"({type(error).__name__}: {str(error).strip()[:300]}). Correct its arguments: those with the "
                    f"prefix {_PREFIX} and all that knowledge_insertion itself doesn't have go to it."
                ) from error
            self._made.task_dict = {_TASK: {_SPLIT: self._prompts}}
        return self._made

    def _instance(self, place: int, decoding: Decoding) -> Instance:
        return Instance(
            request_type="generate_until",
            # Some classes write into the decoding settings: each request has its own.
            arguments=("", _messages, _generation(decoding), place, _TASK, _SPLIT),
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


def _generation(decoding: Decoding) -> dict[str, Any]:
    settings = {**decoding.as_dict(), "do_sample": decoding.samples, "until": []}
    return {name: value for name, value in settings.items() if value is not None}


def _reply(answer: Any) -> Reply:
    counts = answer.token_counts if isinstance(answer, GenerationResult) else None
    text = answer.text if isinstance(answer, GenerationResult) else str(answer)
    return Reply(text.strip(), getattr(counts, "input_tokens", None), getattr(counts, "output_tokens", None))


def _class_named(name: str) -> type:
    from lmms_eval.models import MODEL_REGISTRY_V2

    known = MODEL_REGISTRY_V2.list_model_names()
    if name not in known:
        raise SettingsError(
            f"knowledge_insertion: unknown backend {name!r}.{nearest(name, known)} Name a chat model of lmms-eval, "
            "such as vllm or sglang."
        )
    found: type = MODEL_REGISTRY_V2.get_model_class(name)
    if getattr(found, "is_simple", True):
        raise SettingsError(
            f"knowledge_insertion: backend={name} takes no conversations. Name a chat model of lmms-eval, such as "
            "vllm or sglang."
        )
    return found


def _arguments_of(
    name: str, model: type, arguments: Mapping[str, Any], pretrained: str, shared: Mapping[str, Any]
) -> dict[str, Any]:
    parameters = inspect.signature(model).parameters
    given = {key.removeprefix(_PREFIX): value for key, value in arguments.items()}
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        unknown = sorted(set(given) - set(parameters))
        if unknown:
            raise SettingsError(
                f"knowledge_insertion: backend={name} has no argument {unknown[0]!r}."
                f"{nearest(unknown[0], parameters)} Known are {', '.join(parameters)}."
            )
    checkpoint = next((each for each in _CHECKPOINT if each in parameters), None)
    if checkpoint is None:
        raise SettingsError(f"knowledge_insertion: backend={name} takes no checkpoint. Choose another, such as vllm.")
    own = {key: value for key, value in shared.items() if key in parameters and value is not None}
    return {checkpoint: pretrained, **own, **given}


def _identity(name: str, model: type, arguments: Mapping[str, Any], weights: str) -> str:
    """Returns a hash of all that can change an answer; addresses, keys and the size of a batch don't."""
    relevant = {
        key: value
        for key, value in arguments.items()
        if key not in ("batch_size", "device", *_CHECKPOINT) and "key" not in key and "url" not in key
    }
    versions = [_version("lmms_eval"), *(_version(each) for each in _ENGINES)]
    described = [name, f"{model.__module__}.{model.__qualname__}", relevant, weights, versions]
    return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()[:32]


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
