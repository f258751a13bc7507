"""The lmms-eval model ``knowledge_insertion``: a multimodal model under one insertion method.

A document with ``insertions`` is answered after these, and nothing else, were inserted; one that says
``wants_plain_answer`` is answered with ``[answer, answer of the plain model]``. Documents of other tasks have no
insertions and are answered by the plain model. The task phrases what the model is asked, an insertion's own question
too.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import platformdirs
import torch
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms

from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.harness.lmms_eval.plugin import one_message
from culture_tasks.insertion import state
from culture_tasks.insertion.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.insertion_method import InsertionMethod, Item, progress_bar
from culture_tasks.insertion.method_registry import method_class, method_names
from culture_tasks.insertion.queries import Insertion, Message, Query
from culture_tasks.insertion.runner import Job, Outcome, Runner
from culture_tasks.insertion.value_store import ValueStore

NAME = "knowledge_insertion"
"""What ``--model`` calls the model."""

_NO_ANSWERS_FILE = "off"
_NEEDED = ("question", "insertions", "insertion_image", "wants_plain_answer")
_CACHE_MARK = "_culture_tasks_identity"
_FINGERPRINTS = ("data", "draw")

Messages = Callable[[Mapping[str, Any]], Sequence[Message]]


class KnowledgeInsertion(lmms):  # type: ignore[misc]  # lmms-eval has no types
    """``--model knowledge_insertion --model_args pretrained=…,method=…,state=DIR``.

    Args:
        pretrained: The multimodal model, on the Hub or in a folder.
        method: The insertion method.
        state: What ``culture-tasks insertion fit`` wrote, for methods that need it.
        answers: File that keeps answers for later runs; ``off`` keeps none. Default: in the user's cache folder.
        revision: Branch, tag or commit on the Hub.
        dtype: Data type; ``auto`` takes the checkpoint's.
        device: Where the model runs; on several ranks each takes its own GPU.
        device_map: Spreads one model over several GPUs.
        attn_implementation: Attention kernels.
        trust_remote_code: Whether code of the checkpoint is run.
        enable_thinking: Whether a reasoning model reasons; off unless asked for, since answers have 64 tokens.
        batch_size: 1: an edited model answers one request at a time.
        max_batch_size: Not used.
        unknown: Refused, with the nearest known name.

    Raises:
        CultureTasksError: If an argument can't be used, before any inference.
    """

    is_simple = False
    registered_name = NAME

    @one_message()
    def __init__(
        self,
        pretrained: str = "",
        method: str = "base",
        state: str | None = None,
        answers: str | None = None,
        revision: str | None = None,
        dtype: str = "auto",
        device: str | None = None,
        device_map: str | None = None,
        attn_implementation: str | None = None,
        trust_remote_code: bool = False,
        enable_thinking: bool = False,
        batch_size: int | str = 1,
        max_batch_size: int | str | None = None,  # noqa: ARG002 - lmms-eval passes it to every model
        **unknown: Any,
    ) -> None:
        super().__init__()
        _check_arguments(
            type(self), pretrained=pretrained, method=method, state=state, batch_size=batch_size, unknown=unknown
        )
        self._join_ranks(device)
        options = ModelOptions(
            revision=revision,
            dtype=dtype,
            device=str(self._device),
            device_map=device_map if self._world_size == 1 else None,
            attn_implementation=attn_implementation,
            trust_remote_code=_is_true(trust_remote_code),
            template={"enable_thinking": _is_true(enable_thinking)},
        )
        self._state = None if state is None else Path(str(state)).expanduser()
        model = MultimodalModel.load(str(pretrained), options)
        self._method: InsertionMethod | None = _ready(method, model, self._state)
        self._runner: Runner | None = Runner(self._method, ValueStore(_answers_file(answers)))
        self._made: dict[tuple[str, ...], Query] = {}
        _identify_in_cache(NAME, self._runner.identity)

    @property
    def device(self) -> torch.device:
        """Where this rank computes; the harness gathers counts on it."""
        return self._device

    @property
    def batch_size(self) -> int:
        """Requests answered together."""
        return 1

    @one_message()
    def generate_until(self, requests: list[Instance]) -> list[str | list[str]]:
        """Answers requests, those of one case together.

        Raises:
            DataError: If a document or an image can't be used, before any inference.
            StateError: If the method was fitted on other data, or on an evaluated scenario.
        """
        assert self._runner is not None
        documents = [self._document(request) for request in requests]
        self._check_data(documents)
        jobs = [self._job(request, doc) for request, doc in zip(requests, documents, strict=True)]
        return [_response(outcome) for outcome in self._runner.run(jobs, self._progress)]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Is not offered."""
        raise SettingsError(f"{NAME}: {len(requests)} requests ask for likelihoods. Use it with tasks that generate.")

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        """Is not offered."""
        raise SettingsError(f"{NAME}: {len(requests)} requests have several rounds. Use it with tasks of one round.")

    def clean(self) -> None:
        """Gives the model's memory back, before judges run."""
        self._method = self._runner = None
        self._made.clear()
        super().clean()

    def _join_ranks(self, device: str | None) -> None:
        from accelerate import Accelerator
        from accelerate.utils import InitProcessGroupKwargs

        self.accelerator = Accelerator(kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(weeks=4))])
        self._rank, self._world_size = self.accelerator.process_index, self.accelerator.num_processes
        alone = self._world_size == 1 and device is not None
        self._device = torch.device(device) if alone else self.accelerator.device

    def _document(self, request: Instance) -> Mapping[str, Any]:
        _, _, _, doc_id, task, split = request.args
        document: Mapping[str, Any] = self.task_dict[task][split][doc_id]
        return document

    def _check_data(self, documents: Iterable[Mapping[str, Any]]) -> None:
        assert self._method is not None
        facts = self._method.data
        inserted = [doc for doc in documents if doc.get("insertions")]
        if facts is None or self._state is None or not inserted:
            return
        scenarios = frozenset(str(doc.get("scenario", "")) for doc in inserted)
        for raw in {str(doc.get("data", "")) for doc in inserted}:
            state.check_data(self._state, facts, raw, scenarios)

    def _job(self, request: Instance, doc: Mapping[str, Any]) -> Job:
        _, to_messages, gen_kwargs, doc_id, task, split = request.args
        decoding = Decoding.from_request(gen_kwargs)
        asked = self._query(
            _identity(doc, "image_id", "language", "question"),
            str(doc.get("question", "")),
            lambda: to_messages(self.task_dict[task][split][doc_id]),
        )
        if not doc.get("insertions"):
            return Job(asked, decoding)
        _check_document(doc, task)
        inserted = tuple(self._insertion(doc, sample, to_messages) for sample in doc["insertions"])
        return Job(asked, decoding, inserted, compare=doc["wants_plain_answer"])

    def _insertion(self, doc: Mapping[str, Any], sample: Mapping[str, str], to_messages: Messages) -> Insertion:
        """Makes an insertion whose question is phrased as the task phrases a request."""
        asked = {"language": sample["partition"], "question": sample["question"]}

        def load() -> Sequence[Message]:
            return to_messages({**doc, **asked, "image": _image(doc["insertion_image"])})

        identity = _identity({**doc, **asked}, "insertion_image_id", "language", "question")
        return Insertion(self._query(identity, sample["question"], load), sample["answer"])

    def _query(self, identity: tuple[str, ...] | None, question: str, load: Callable[[], Sequence[Message]]) -> Query:
        """Makes a query, the same object for what the data say is the same: its image is read for its key but once."""
        query = Query(question, load)
        return query if identity is None else self._made.setdefault(identity, query)

    def _progress(self, items: Sequence[Item], description: str) -> Iterable[Item]:
        return progress_bar(items, description, hidden=self._rank != 0)


def _ready(method: str, model: MultimodalModel, folder: Path | None) -> InsertionMethod:
    made = method_class(method)(model)
    if folder is not None:
        made.load(folder)
    return made


def _identity(doc: Mapping[str, Any], *fields: str) -> tuple[str, ...] | None:
    """Returns what a query about a document is known by; None where the document doesn't say which image it is."""
    if not all(doc.get(field) for field in ("data", *fields)):
        return None
    return tuple(str(doc[field]) for field in ("data", *fields))


def _check_document(doc: Mapping[str, Any], task: str) -> None:
    missing = [field for field in _NEEDED if field not in doc]
    if missing:
        raise DataError(
            f"{NAME}: a document of {task} has insertions and no field {missing[0]!r}. Needed are {', '.join(_NEEDED)}."
        )
    for sample in doc["insertions"]:
        lacking = [field for field in ("partition", "question", "answer") if not sample.get(field)]
        if lacking:
            raise DataError(f"{NAME}: an insertion of {task}, document {doc.get('id')}, has no {lacking[0]!r}.")


def _image(value: Any) -> Any:
    """Returns an image column's cell as an image, whether the data set decodes it or not."""
    from PIL import Image

    if not isinstance(value, Mapping):
        return value
    with Image.open(value["path"]) as image:
        return image.convert("RGB")


def _response(outcome: Outcome) -> str | list[str]:
    return outcome.text if outcome.base is None else [outcome.text, outcome.base]


def _check_arguments(
    model: type,
    *,
    pretrained: str,
    method: str,
    state: str | None,
    batch_size: int | str,
    unknown: Mapping[str, Any],
) -> None:
    """Makes sure that the model arguments can be used, before anything is loaded.

    Raises:
        SettingsError: For the first one that can't.
    """
    if unknown:
        known = [name for name in inspect.signature(model).parameters if name != "unknown"]
        name = sorted(unknown)[0]
        raise SettingsError(
            f"{NAME}: unknown model argument {name!r}.{nearest(name, known)} Known are {', '.join(known)}. "
            "Options of a method are chosen when it is fitted."
        )
    if not pretrained:
        raise SettingsError(f"{NAME}: no model. Add pretrained=… to --model_args: a Hub name or a folder.")
    if str(batch_size) not in ("1", "auto"):
        raise SettingsError(f"{NAME}: batch_size={batch_size}. An edited model answers one request at a time: use 1.")
    needs_state = method_class(method).needs_state
    if needs_state and state is None:
        raise SettingsError(
            f"{NAME}: method={method} needs state=DIR. Make one: culture-tasks insertion fit --method {method} …"
        )
    if state is not None and not needs_state:
        fitted = ", ".join(name for name in method_names() if method_class(name).needs_state)
        raise SettingsError(f"{NAME}: method={method} takes no state. Leave it out, or choose one of {fitted}.")


def _answers_file(answers: str | None) -> Path | None:
    """Returns the file that keeps answers, or None where none are kept; by default it is in the user's cache folder."""
    if answers == _NO_ANSWERS_FILE:
        return None
    return platformdirs.user_cache_path("culture-tasks") / "answers.sqlite3" if answers is None else Path(answers)


def _is_true(value: bool | str) -> bool:
    """Reads a yes or no of ``--model_args``, which lmms-eval passes on as text or not."""
    return value if isinstance(value, bool) else str(value).strip().lower() in ("true", "1", "yes", "on")


def _identify_in_cache(model_name: str, identity: str) -> None:
    """Makes lmms-eval's ``--use_cache`` tell apart what it takes for the same model; safe to call again.

    lmms-eval finds kept responses by the command line's model arguments. A retrained state at the same path, or other
    weights in the same folder, would hit the responses of the old ones. So from now on a fingerprint of the model and
    of the documents takes the place of those arguments, whether lmms-eval is given the model's name or the model.

    Args:
        model_name: What ``--model`` calls it.
        identity: Hash of all that can change an answer.
    """
    from lmms_eval.caching.response_cache import ResponseCache

    known: dict[str, str] | None = getattr(ResponseCache, _CACHE_MARK, None)
    if known is None:
        known = {}
        setattr(ResponseCache, _CACHE_MARK, known)
        ResponseCache.create = classmethod(_with_identity(ResponseCache.create.__func__, known))
    known[model_name] = identity


def _with_identity(original: Callable[..., Any], known: Mapping[str, str]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create(
        cls: Any, cache_root: str, *, model: Any = "", model_args: Any = "", task_dict: Any = None, **rest: Any
    ) -> Any:
        name = model if isinstance(model, str) else str(getattr(model, "registered_name", ""))
        if name in known:
            documents = sorted(_document_fingerprints(task_dict or {}))
            model, model_args = name, json.dumps({"identity": known[name], "documents": documents})
        return original(cls, cache_root, model=model, model_args=model_args, task_dict=task_dict, **rest)

    return create


def _document_fingerprints(tasks: Mapping[Any, Any]) -> Iterator[list[str]]:
    """Yields name and fingerprints of each task whose documents carry some."""
    for name, task in tasks.items():
        if isinstance(task, Mapping):
            yield from _document_fingerprints(task)
            continue
        docs = getattr(task, "eval_docs_no_media", None)
        if docs is not None and len(docs) and all(field in docs.column_names for field in _FINGERPRINTS):
            yield [str(name), *(str(docs[0][field]) for field in _FINGERPRINTS)]
