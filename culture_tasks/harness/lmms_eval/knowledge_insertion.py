"""The lmms-eval model ``knowledge_insertion``: a multimodal model under one insertion method.

A document with ``insertions`` is answered after these, and nothing else, were inserted. Its response is a list of three
texts: the answer; the plain model's answer where the document says ``wants_plain_answer``, else the answer again; and
as JSON the facts about the request, such as which insertion was used. Documents of other tasks have no insertions
and are answered by the plain model with one text. The task phrases all requests, an insertion's own question too.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import datasets
import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, gather_object
from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts
from lmms_eval.api.model import lmms
from lmms_eval.caching.response_cache import ResponseCache

from culture_tasks.data.images import read_image
from culture_tasks.errors import SettingsError
from culture_tasks.harness.extending import extend
from culture_tasks.harness.lmms_eval.knowledge_insertion_arguments import NAME, InsertionArguments
from culture_tasks.harness.lmms_eval.plugin import exit_on_error
from culture_tasks.harness.model_costs import ModelCosts, total_costs
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.adapter import Answer, MultimodalModel
from culture_tasks.insertion.core.devices import devices_of, forget_peak, peak_gib, read_ahead, shown
from culture_tasks.insertion.core.insertion_method import InsertionMethod
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request, conversation
from culture_tasks.insertion.core.runner import Case, CaseLoop, Costs
from culture_tasks.insertion.core.state import value_key
from culture_tasks.insertion.core.store import Store

_Asked = tuple[int, Instance, Mapping[str, Any]]  # the number of a request, and its document without an image


class KnowledgeInsertionModel(lmms):  # type: ignore[misc]  # lmms-eval has no types
    """``--model knowledge_insertion --model_args pretrained=…,method=…,state=DIR``.

    ``costs`` are those of the run, on all ranks together; None before it is over. ``identity`` is the latest model's.
    """

    is_simple = False
    registered_name = NAME
    identity: ClassVar[str]

    @exit_on_error()
    def __init__(self, **model_args: Any) -> None:
        super().__init__()
        self._arguments = arguments = InsertionArguments.read(model_args)
        self.accelerator = Accelerator(kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(weeks=4))])
        self._rank, self._world_size = self.accelerator.process_index, self.accelerator.num_processes
        device = arguments.device if self._world_size == 1 else None
        self._device = self.accelerator.device if device is None else torch.device(device)
        if arguments.device_map and self._world_size > 1:
            raise SettingsError(
                f"{NAME}: device_map={arguments.device_map} in {self._world_size} processes, which each need the whole "
                "model on one GPU. Leave device_map out, or start one process."
            )
        options = arguments.model_copy(update={"device": str(self._device)})
        model, kind = MultimodalModel.load(arguments.pretrained, options), method_class(arguments.method)
        method = kind(model, kind.read_config(arguments.method_options))
        method.batch_size = self.batch_size
        if arguments.state_folder is not None:
            method.load(arguments.state_folder)
        self._method: InsertionMethod | None = method
        self._store, self._run_costs, self._latencies = Store(arguments.answers_file), Costs(), list[float]()
        self._devices = devices_of(model.model)
        self.costs: ModelCosts | None = None
        forget_peak()
        self._without_images: dict[tuple[str, str], Any] = {}
        type(self).identity = value_key([model.identity.run, *method.identity])
        extend(ResponseCache, "create", _with_identity)

    @property
    def device(self) -> torch.device:
        """Where this rank computes; the harness gathers counts on it."""
        return self._device

    @property
    def batch_size(self) -> int:
        """Requests answered together."""
        return self._arguments.requests_per_batch

    @exit_on_error()
    def generate_until(self, requests: list[Instance]) -> list[GenerationResult | list[str]]:
        """Answers requests.

        Raises:
            DataError: If a document or an image can't be used, before any inference.
            StateError: If the method was fitted on other data, or on an evaluated scenario.
        """
        asked: list[_Asked] = [(place, request, self._document(request)) for place, request in enumerate(requests)]
        self._check_data([doc for _, _, doc in asked if doc.get("insertions")])
        answers: dict[tuple[int, bool], Answer] = {}
        by_decoding: dict[AnswerDecoding, list[_Asked]] = {}
        for one in asked:
            by_decoding.setdefault(AnswerDecoding.from_request(one[1].args[2]), []).append(one)
        for decoding, same in by_decoding.items():
            answers |= self._answers(same, decoding)
        results: list[GenerationResult | list[str]] = []
        for place, _, doc in asked:
            plain = answers.get((place, True))
            answer = answers.get((place, False)) or answers[place, True]
            self._latencies += [] if answer.seconds is None else [answer.seconds]
            counts = TokenCounts(answer.prompt_tokens, answer.new_tokens)
            has_facts = bool(doc.get("insertions"))
            results.append(_response(answer, plain) if has_facts else GenerationResult(answer.text, counts))
        return results

    def _answers(self, asked: Sequence[_Asked], decoding: AnswerDecoding) -> Iterator[tuple[tuple[int, bool], Answer]]:
        """Yields the answer, and the plain one, to each request by its place."""
        assert self._method is not None
        chains: dict[tuple[str, ...], list[_Asked]] = {}
        for one in asked:
            place, _, doc = one
            chain = [json.dumps([doc["insertion_image"]["path"], sample]) for sample in doc.get("insertions") or ()]
            # Requests without insertions are each read on their own.
            chains.setdefault(tuple(chain) or ("", str(place)), []).append(one)
        # In their sorted order a chain follows the one that it goes on with.
        cases = read_ahead((chains[chain] for chain in sorted(chains)), self._cases)
        alone, costs = self._arguments.paper_latency, self._run_costs
        loop = CaseLoop(self._method, decoding, self._store, costs, one_at_a_time=alone)
        title = f"answers ({self._method.name})" if self._rank == 0 else ""
        yield from shown(loop.answers(itertools.chain.from_iterable(cases)), title)

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Is not offered."""
        raise SettingsError(f"{NAME}: {len(requests)} requests ask for likelihoods. Use it with tasks that generate.")

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        """Is not offered."""
        raise SettingsError(f"{NAME}: {len(requests)} requests have several rounds. Use it with tasks of one round.")

    def clean(self) -> None:
        """Sums up the costs, and gives the model's memory back, before judges run."""
        if self._method is not None:
            self.costs = total_costs(gather_object([self._rank_costs(self._method)]))
        self._method = None
        self._without_images.clear()
        super().clean()

    def _rank_costs(self, method: InsertionMethod) -> ModelCosts:
        arguments, costs, report = self._arguments, self._run_costs, method.report
        requests = len(self._latencies) if arguments.paper_latency else costs.answered
        seconds = sum(self._latencies) if arguments.paper_latency else costs.seconds
        train_seconds = report.get("seconds")
        return ModelCosts(
            device=self._devices,
            ranks=self._world_size,
            batch_size=self.batch_size,
            one_at_a_time=arguments.paper_latency,
            answered=costs.answered,
            found=costs.hits,
            requests=requests,
            request_ms=1000 * seconds / requests if requests else None,
            insertions=costs.inserted,
            insert_ms=1000 * costs.insertion_seconds / costs.inserted if costs.inserted else None,
            train_ms=None if train_seconds is None else 1000 * train_seconds / report["cases"],
            train_gib=report.get("peak_gib"),
            peak_gib=peak_gib(self._device),
            parameters=(method.model.model.num_parameters() + method.parameter_count()) / 1e9,
        )

    def _document(self, request: Instance) -> Mapping[str, Any]:
        """Returns a document without its image, which is loaded when the model is shown it, and not kept."""
        _, _, _, doc_id, task, split = request.args
        if (task, split) not in self._without_images:
            documents = self.task_dict[task][split]
            if isinstance(documents, datasets.Dataset):
                images = {name for name, kind in documents.features.items() if isinstance(kind, datasets.Image)}
                documents = documents.remove_columns([name for name in images if documents.features[name].decode])
            self._without_images[task, split] = documents
        document: Mapping[str, Any] = self._without_images[task, split][doc_id]
        return document

    def _check_data(self, documents: Sequence[Mapping[str, Any]]) -> None:
        assert self._method is not None
        facts, folder = self._method.data, self._arguments.state_folder
        if facts is not None and folder is not None:
            scenarios = frozenset(str(doc.get("scenario", "")) for doc in documents)
            for raw in {str(doc.get("data", "")) for doc in documents}:
                state.check_data(folder, facts, raw, scenarios)

    def _cases(self, group: Sequence[_Asked]) -> list[Case[tuple[int, bool]]]:
        """Reads the requests after one chain: those after its insertions, and those to the plain model."""
        after: dict[tuple[int, bool], Request] = {}
        plain: dict[tuple[int, bool], Request] = {}
        for place, instance, doc in group:
            _, to_messages, _, doc_id, task, split = instance.args
            messages = conversation(to_messages(self.task_dict[task][split][doc_id]))
            request = Request(str(doc.get("question", "")), messages)
            assert request.key  # has the image read here, in another thread than the model's
            if doc.get("insertions"):
                after[place, False] = request
            if not doc.get("insertions") or doc["wants_plain_answer"]:
                plain[place, True] = request
        _, instance, doc = group[0]
        assert self._method is not None
        samples = doc.get("insertions") or () if self._method.inserts else ()
        insertions = tuple(_insertion(doc, sample, instance.args[1]) for sample in samples)
        return [case for case in (Case(insertions, after), Case((), plain)) if case.requests]


def _insertion(doc: Mapping[str, Any], sample: Mapping[str, str], to_messages: Callable[..., Any]) -> Insertion:
    """Makes an insertion whose question is phrased as the task phrases a request."""
    image = read_image(Path(doc["insertion_image"]["path"]).read_bytes())
    changed = {**doc, "language": sample["partition"], "question": sample["question"], "image": image}
    return Insertion(Request(sample["question"], conversation(to_messages(changed))), sample["answer"])


def _with_identity(original: Callable[..., Any]) -> Callable[..., Any]:
    """Has ``--use_cache`` find responses by the fingerprint of the model.

    lmms-eval finds them by the model arguments, by which a state that was fitted again has the old one's responses.
    """

    def create(*args: Any, model: Any = "", **options: Any) -> Any:
        if NAME in (model, getattr(model, "registered_name", None)):
            options["model_args"] = KnowledgeInsertionModel.identity
        return original(*args, model=model, **options)

    return create


def _response(answer: Answer, plain: Answer | None) -> list[str]:
    """Returns three texts: other lists are no response to lmms-eval."""
    facts = asdict(answer)
    text = facts.pop("text")
    # The token counts of a list have no other place, so they have the harness's names for them.
    facts.update(input_tokens=facts.pop("prompt_tokens"), output_tokens=facts.pop("new_tokens"))
    return [text, text if plain is None else plain.text, json.dumps(facts)]
