"""The lmms-eval model ``knowledge_insertion``: a multimodal model under one insertion method.

A document with ``insertions`` is answered after these, and nothing else, were inserted. Its response is a list of three
texts: the answer; the plain model's answer where the document says ``wants_plain_answer``, else the answer again; and
as JSON what is known about the request, such as which insertion was used. Documents of other tasks have no insertions
and are answered by the plain model with one text. The task phrases what the model is asked, an insertion's own question
too.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import platformdirs
import torch
from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts
from lmms_eval.api.model import lmms

from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.harness.lmms_eval.backend import Backend
from culture_tasks.harness.lmms_eval.plugin import one_message
from culture_tasks.harness.model_costs import ModelCosts, combined
from culture_tasks.insertion import state
from culture_tasks.insertion.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.device_meter import devices_of, forget_peak, peak_gib
from culture_tasks.insertion.insertion_method import InsertionMethod
from culture_tasks.insertion.method_registry import method_class, method_config, method_names
from culture_tasks.insertion.progress import Counted, Item, Note, progress_bar
from culture_tasks.insertion.queries import Insertion, Message, Query
from culture_tasks.insertion.runner import Job, Outcome, Runner
from culture_tasks.insertion.value_store import ValueStore

NAME = "knowledge_insertion"
"""What ``--model`` calls the model."""

_NO_ANSWERS_FILE = "off"
_NEEDED = ("question", "insertions", "insertion_image", "wants_plain_answer")
_CACHE_MARK = "_culture_tasks_identity"
_FINGERPRINTS = ("data", "draw")
_FIRST_BATCH = 32

Messages = Callable[[Mapping[str, Any]], Sequence[Message]]


class KnowledgeInsertion(lmms):  # type: ignore[misc]  # lmms-eval has no types
    """``--model knowledge_insertion --model_args pretrained=…,method=…,state=DIR``.

    Args:
        pretrained: The multimodal model, on the Hub or in a folder.
        method: The insertion method.
        state: What ``culture-tasks insertion fit`` wrote, for methods that need it.
        answers: File that keeps answers for later runs; ``off`` keeps none. Default: in the user's cache folder.
        backend: Chat model class of lmms-eval that generates, such as ``vllm``; without it, transformers does. What
            a method looks up in the model itself (features) always comes from transformers. It gets the settings below;
            one that changes answers and that it can't be given is an error.
        paper_latency: Whether one request at a time is answered, as in the paper's Table 4, to measure latency.
        revision: Branch, tag or commit on the Hub.
        dtype: Data type; ``auto`` takes the checkpoint's.
        device: Where the model runs; on several ranks each takes its own GPU.
        device_map: Spreads one model over several GPUs; on several ranks, over a share of them each.
        attn_implementation: Attention kernels.
        trust_remote_code: Whether code of the checkpoint is run.
        enable_thinking: Whether a reasoning model reasons; off unless asked for, since answers have 64 tokens.
        min_patches: Option of the image processor, as lmms-eval's own model classes have it; so are the next three.
        max_patches: See ``min_patches``.
        min_pixels: See ``min_patches``.
        max_pixels: See ``min_patches``.
        batch_size: Requests that are answered together; a batch that doesn't fit into a GPU is halved. ``auto``
            begins with 32.
        max_batch_size: Not used.
        others: Options of a method that needs no state, by their names, and arguments of the backend; one that the
            backend shares with this class has the prefix ``backend_``. What nobody knows is refused.

    Attributes:
        costs: What the run cost, on all ranks together; None before it is over.

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
        backend: str | None = None,
        paper_latency: bool = False,
        revision: str | None = None,
        dtype: str = "auto",
        device: str | None = None,
        device_map: str | None = None,
        attn_implementation: str | None = None,
        trust_remote_code: bool = False,
        enable_thinking: bool = False,
        min_patches: int | None = None,
        max_patches: int | None = None,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        batch_size: int | str = 1,
        max_batch_size: int | str | None = None,  # noqa: ARG002 - lmms-eval passes it to every model
        **others: Any,
    ) -> None:
        super().__init__()
        self._batch_size = _batch_size(batch_size)
        one_at_a_time = _is_true(paper_latency)
        options, rest = _split(type(self), method, others, backend)
        _check_arguments(pretrained, method, state, backend)
        _check_latency(one_at_a_time, self._batch_size, backend)
        self._join_ranks(device)
        images = {
            "min_patches": min_patches,
            "max_patches": max_patches,
            "min_pixels": min_pixels,
            "max_pixels": max_pixels,
        }
        chosen = ModelOptions(
            revision=revision,
            dtype=dtype,
            device=str(self._device),
            device_map=device_map,
            max_memory=_share_of_gpus(self.accelerator, device_map),
            attn_implementation=attn_implementation,
            trust_remote_code=_is_true(trust_remote_code),
            template={"enable_thinking": _is_true(enable_thinking)},
            images={name: int(value) for name, value in images.items() if value is not None},
        )
        self._state = None if state is None else Path(str(state)).expanduser()
        self._backend = None
        if backend is not None:
            self._backend = Backend(
                str(backend), rest, pretrained=str(pretrained), options=chosen, batch_size=self._batch_size
            )
        model = MultimodalModel.load(str(pretrained), chosen)
        self._method: InsertionMethod | None = self._loaded_method(model, method, options)
        if self._backend is not None:
            self._backend.model = model
        self._kept = ValueStore(_answers_file(answers))
        self._runner: Runner | None = Runner(self._method, self._kept, self._backend, one_at_a_time=one_at_a_time)
        self._setup = {
            "device": devices_of(model.model),
            "ranks": self._world_size,
            "batch_size": self._batch_size,
            "one_at_a_time": one_at_a_time,
            "backend": backend,
        }
        self.costs: ModelCosts | None = None
        forget_peak()
        self._made: dict[tuple[str, ...], Query] = {}
        self._without_images: dict[tuple[str, str], Any] = {}
        _identify_in_cache(NAME, self._runner.identity)

    @property
    def device(self) -> torch.device:
        """Where this rank computes; the harness gathers counts on it."""
        return self._device

    @property
    def batch_size(self) -> int:
        """Requests answered together."""
        return self._batch_size

    @one_message()
    def generate_until(self, requests: list[Instance]) -> list[GenerationResult | list[str]]:
        """Answers requests.

        Raises:
            DataError: If a document or an image can't be used, before any inference.
            StateError: If the method was fitted on other data, or on an evaluated scenario.
        """
        assert self._runner is not None
        documents = [self._document(request) for request in requests]
        self._check_data(documents)
        jobs = [self._job(request, doc) for request, doc in zip(requests, documents, strict=True)]
        outcomes = self._runner.run(jobs, self._progress)
        return [_response(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Is not offered."""
        raise SettingsError(f"{NAME}: {len(requests)} requests ask for likelihoods. Use it with tasks that generate.")

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        """Is not offered."""
        raise SettingsError(f"{NAME}: {len(requests)} requests have several rounds. Use it with tasks of one round.")

    def clean(self) -> None:
        """Sums up what the run cost, and gives the model's memory back, before judges run."""
        if self._runner is not None:
            self.costs = _of_all_ranks(self._measured(self._runner))
        if self._backend is not None:
            self._backend.clean()
        self._method = self._runner = self._backend = None
        self._made.clear()
        self._without_images.clear()
        super().clean()

    def _measured(self, runner: Runner) -> ModelCosts:
        """Returns what this rank cost."""
        assert self._method is not None
        costs, report = runner.costs, self._method.report
        is_alone = bool(self._setup["one_at_a_time"])
        requests = len(costs.alone) if is_alone else costs.answered
        seconds = sum(costs.alone) if is_alone else costs.prepared_seconds + costs.seconds
        train_seconds = report.get("seconds")
        parameters = self._method.model.model.num_parameters() + self._method.parameter_count()
        return ModelCosts(
            **self._setup,
            answered=costs.answered,
            found=costs.found,
            requests=requests,
            request_ms=1000 * seconds / requests if requests else None,
            insertions=costs.inserted,
            insert_ms=1000 * costs.insertion_seconds / costs.inserted if costs.inserted else None,
            train_ms=None if train_seconds is None else 1000 * train_seconds / report["cases"],
            train_gib=report.get("peak_gib"),
            # A backend's engine may have memory, or a process, of its own.
            peak_gib=peak_gib(self._device) if self._backend is None else None,
            parameters=parameters / 1e9,
        )

    def _join_ranks(self, device: str | None) -> None:
        from accelerate import Accelerator
        from accelerate.utils import InitProcessGroupKwargs

        self.accelerator = Accelerator(kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(weeks=4))])
        self._rank, self._world_size = self.accelerator.process_index, self.accelerator.num_processes
        alone = self._world_size == 1 and device is not None
        self._device = torch.device(device) if alone else self.accelerator.device

    def _loaded_method(self, model: MultimodalModel, name: str, options: Mapping[str, Any]) -> InsertionMethod:
        method = method_class(name)(model, method_config(name, options))
        method.batch_size = self._batch_size
        if self._state is not None:
            method.load(self._state)
        return method

    def _document(self, request: Instance) -> Mapping[str, Any]:
        """Returns a document without its image, which is loaded when the model is shown it, and not kept."""
        _, _, _, doc_id, task, split = request.args
        documents = self._without_images.get((task, split))
        if documents is None:
            documents = _without_images(self.task_dict[task][split])
            self._without_images[task, split] = documents
        document: Mapping[str, Any] = documents[doc_id]
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

    def _progress(
        self, items: Sequence[Item] | Counted[Item], description: str, note: Note | None = None
    ) -> Iterable[Item]:
        return progress_bar(items, description, note, hidden=self._rank != 0)


def _without_images(documents: Any) -> Any:
    """Returns a data set without the columns whose images are decoded when a row is read."""
    from datasets import Dataset, Image

    if not isinstance(documents, Dataset):
        return documents
    decoded = [
        name for name, kind in documents.features.items() if isinstance(kind, Image) and getattr(kind, "decode", True)
    ]
    return documents.remove_columns(decoded) if decoded else documents


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


def _response(job: Job, outcome: Outcome) -> GenerationResult | list[str]:
    """Returns one text where nothing is inserted, else three: other lists are no response to lmms-eval."""
    reply = outcome.reply
    if not job.insertions:
        return GenerationResult(reply.text, TokenCounts(reply.prompt_tokens, reply.new_tokens))
    facts = asdict(reply)
    text = facts.pop("text")
    # The token counts of a list have no other place, so they have the harness's names for them.
    facts.update(input_tokens=facts.pop("prompt_tokens"), output_tokens=facts.pop("new_tokens"))
    return [text, text if outcome.base is None else outcome.base, json.dumps(facts)]


def _split(
    model: type, method: str, others: Mapping[str, Any], backend: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the options of the method, and what is left for the backend.

    Raises:
        SettingsError: If the method is unknown, or an argument is nobody's.
    """
    kind = method_class(method)
    fields = () if kind.needs_state else tuple(kind.config_class.model_fields)
    options = {name: value for name, value in others.items() if name in fields}
    rest = {name: value for name, value in others.items() if name not in fields}
    if rest and backend is None:
        known = [name for name in inspect.signature(model).parameters if name != "others"] + list(fields)
        name = sorted(rest)[0]
        advice = f" Options of {method} are chosen when it is fitted." if kind.needs_state else ""
        raise SettingsError(
            f"{NAME}: unknown model argument {name!r}.{nearest(name, known)} Known are {', '.join(known)}.{advice}"
        )
    return options, rest


def _check_arguments(pretrained: str, method: str, state: str | None, backend: str | None) -> None:
    """Makes sure that the model arguments can be used, before anything is loaded.

    Raises:
        SettingsError: For the first one that can't.
    """
    if not pretrained:
        raise SettingsError(f"{NAME}: no model. Add pretrained=… to --model_args: a Hub name or a folder.")
    kind = method_class(method)
    if kind.needs_state and state is None:
        raise SettingsError(
            f"{NAME}: method={method} needs state=DIR. Make one: culture-tasks insertion fit --method {method} …"
        )
    if state is not None and not kind.needs_state:
        fitted = ", ".join(name for name in method_names() if method_class(name).needs_state)
        raise SettingsError(f"{NAME}: method={method} takes no state. Leave it out, or choose one of {fitted}.")
    if backend is not None and kind.edits_weights:
        raise SettingsError(
            f"{NAME}: method={method} changes the model's weights, which backend={backend} would not see. Leave the "
            "backend out: transformers answers in batches of batch_size."
        )


def _check_latency(one_at_a_time: bool, batch_size: int, backend: str | None) -> None:
    if one_at_a_time and (batch_size != 1 or backend is not None):
        raise SettingsError(
            f"{NAME}: paper_latency=true answers one request at a time on transformers, as the paper did. Use "
            "batch_size=1 and no backend with it."
        )


def _batch_size(value: int | str) -> int:
    if str(value) == "auto":
        return _FIRST_BATCH
    if not str(value).isdigit() or int(value) < 1:
        raise SettingsError(f"{NAME}: batch_size={value}. Needed is a whole number of at least 1, or auto.")
    return int(value)


def _of_all_ranks(costs: ModelCosts) -> ModelCosts:
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return costs
    found: list[ModelCosts] = [costs] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, costs)
    return combined(found)


def _share_of_gpus(accelerator: Any, device_map: str | None) -> dict[int, int] | None:
    """Returns the memory of the GPUs that this rank's model may use; None where it has all of them."""
    if device_map is None or accelerator.num_processes == 1:
        return None
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", accelerator.num_processes))
    own = share(torch.cuda.device_count(), ranks, accelerator.local_process_index)
    return {
        number: torch.cuda.mem_get_info(number)[0] if number in own else 0
        for number in range(torch.cuda.device_count())
    }


def share(gpus: int, ranks: int, rank: int) -> range:
    """Returns the GPUs of a rank: its own and every ``ranks``-th after it.

    Args:
        gpus: Number of GPUs of the machine.
        ranks: Number of ranks on the machine.
        rank: Number of the rank on the machine, from 0.

    Raises:
        SettingsError: If there are more ranks than GPUs.
    """
    if gpus < ranks:
        raise SettingsError(
            f"{NAME}: {ranks} ranks with device_map on {gpus} GPUs. Start at most as many ranks as there are GPUs."
        )
    return range(rank, gpus, ranks)


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
