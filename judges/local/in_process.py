"""Judges that lm-eval loads into this process (``lm_eval:<backend>,<model args>``), for ``culture-tasks rejudge``.

All submitted responses are graded together, at the first verdict that is waited for: greedily, with the model's chat
template. The engine gets all prompts at once, those that begin alike after each other, so that it reads their common
beginning once. lm-eval reports neither tokens nor the reason why a reply ended.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import SecretStr

from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.cache import VerdictCache
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.addresses import secrets_of, secrets_of_arguments
from culture_tasks.judges.grading import Grader, Grading, is_at_hand, open_requests
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.rubric.rubrics import Message, Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem
from culture_tasks.secret_texts import arguments_of, is_secret_name, shown_arguments
from culture_tasks.settings import Settings
from culture_tasks.text import storable, without_reasoning

logger = logging.getLogger(__name__)

_BATCH_SIZE = 8  # lm-eval's default is one prompt at a time
_PROBE = "e5b1c7"
# Backends that batch by themselves if they are given all prompts at once.
_ENGINES = ("vllm", "sglang")
# Sampling parameters that lm-eval's backends take from a request, and those that hold a reply to a form.
_PARAMETERS = ("temperature", "top_p", "top_k", "max_tokens")
_STRUCTURED_OUTPUT = ("response_format", "structured_outputs")
# Arguments that say where and how fast a model runs, and don't change its answers.
_PLACE_AND_SPEED = ["base_url", "device", "batch_size", "max_batch_size", "num_concurrent", "max_retries", "timeout"]
_MODEL_FILES = [".json", ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".model", ".txt", ".jinja", ".py"]


class InProcessJudge(Judge):
    """Grades with a model that lm-eval loads, ``<backend>,<model args>``. To be used in one thread."""

    def __init__(self, model: str, settings: Settings) -> None:
        self._backend, _, arguments = model.partition(",")
        _refuse(self._backend, settings)
        self._arguments = SecretStr(arguments)
        self._secrets = secrets_of_arguments(arguments) | secrets_of(settings)
        name, fingerprint = name_and_fingerprint(arguments)
        self._grader = Grader(
            backend="lm_eval",
            endpoint=f"lm_eval:{self._backend}",
            model=name,
            place=fingerprint,
            hides=self._secrets,
            settings=settings,
            takes=_PARAMETERS if settings.judge_form == "free" else (*_PARAMETERS, *_STRUCTURED_OUTPUT),
        )
        self._pending: list[Grading] = []
        self._model: LocalModel | None = None
        self._cache = VerdictCache(settings.cache_file)

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric."""
        return self._grader.identity(rubric)

    def submit(self, rubric: Rubric, item: JudgeItem) -> Grading:
        """Notes an item to be graded."""
        self._pending.append(Grading(self._grader, rubric, item, lambda _: self._grade_all()))
        return self._pending[-1]

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> None:
        """Loads the model, unless the responses are known and the cache holds a score for each."""
        self._grader.run_began = time.time()
        if responses_known and is_at_hand(self._cache, self._grader, list(expected)):
            return
        try:
            self._load()
        except Exception as error:  # noqa: BLE001  # broad: a backend may fail in any way, and its text may hold a secret
            raise JudgeUnreachableError(
                f"judge lm_eval:{self._backend}: the model can't be loaded: {self._shown(error)}. Correct the name, "
                "lm_eval:<backend>,<model args>, or install the backend's package."
            ) from None

    def close(self) -> None:
        """Lets go of the model and the cache."""
        self._model = None
        self._cache.close()

    def _load(self) -> LocalModel:
        self._model = self._model or LocalModel(self._backend, self._arguments.get_secret_value())
        return self._model

    def _shown(self, error: Exception) -> str:
        return f"{type(error).__name__}: {' '.join(self._secrets.hidden(str(error)).split())[:1000]}"

    def _grade_all(self) -> None:
        """Grades all that was submitted; where the model breaks down, the verdicts that it didn't give have failed."""
        answers: dict[bytes, Answer] = {}
        while open_ := open_requests(self._pending, self._cache, lambda it, kept: answers.get(it.key, kept)):
            try:
                self._ask({key: first for key, (first, *_) in open_.items()}, answers)
            except Exception as error:  # noqa: BLE001  # broad: a backend may fail in any way
                problem = Problem(f"the judge broke down: {self._shown(error)}")
                logger.warning("judge lm_eval:%s: %s", self._backend, problem.message)
                answers.update({key: Answer(problem) for key in open_.keys() - answers.keys()})
        self._pending.clear()

    def _ask(self, gradings: Mapping[bytes, Grading], answers: dict[bytes, Answer]) -> None:
        """Has the model answer open requests; a reply that thinking cut off leaves its request open."""
        model, adaptations, most_tokens = self._load(), self._grader.adaptations, self._grader.most_tokens
        groups: dict[str, tuple[Mapping[str, Any], dict[str, bytes]]] = {}
        for key, grading in gradings.items():
            prompt, meant = model.prompt(grading.messages()), grading.sampling
            for sampling in (adaptations.apply(meant, most_tokens), meant):  # with the limit that has grown, or without
                if model.fits(prompt, sampling["max_tokens"]):
                    groups.setdefault(repr(sampling), (sampling, {}))[1][prompt] = key
                    break
            else:
                answers[key] = Answer(Problem("the prompt is longer than the judge's context"))

        def take(prompt: str, text: str, *, sampling: Mapping[str, Any], keys: dict[str, bytes]) -> None:
            if (key := keys.pop(prompt, None)) is None:
                return  # it has arrived before
            completion = model.completion(prompt, storable(self._secrets.hidden_in_reply(text)), sampling)
            may_grow = completion.is_cut_off_by_thinking and adaptations.grow(sampling, most_tokens)
            if may_grow and model.fits(prompt, adaptations.apply(sampling, most_tokens)["max_tokens"]):
                gradings[key].attempts += 1
                return
            self._cache.put_many([gradings[key].row(completion)])
            answers[key] = Answer(completion, attempts=1)

        for sampling, keys in groups.values():
            model.generate(list(keys), sampling, partial(take, sampling=sampling, keys=keys))


def _refuse(backend: str, settings: Settings) -> None:
    """Refuses a backend and settings that a model in this process can't keep to."""
    parameters = [name for name, value in settings.judge_parameters.items() if value is not None]
    problem = ""
    if backend == "steered":
        problem = "lm-eval unpickles the file steer_path, which can run any code"
    elif settings.judge_budget is not None:
        problem = "it counts no tokens for CULTURE_JUDGE_BUDGET"
    elif settings.judge_form != "free" and backend != "vllm":
        problem = "of lm-eval's backends, vllm alone has CULTURE_JUDGE_FORM"
    elif unknown := [name for name in parameters if name not in _PARAMETERS]:
        problem = f"a model in this process takes {', '.join(_PARAMETERS)}, and no {unknown[0]}"
    if problem:
        raise SettingsError(
            f"CULTURE_JUDGE=lm_eval:{backend}: {problem}. Leave it out, or name the judge as openai:<model>."
        )


def name_and_fingerprint(arguments: str) -> tuple[str, str]:
    """Returns the arguments that make a model what it is, without secrets, and a fingerprint.

    The fingerprint also tells two models of one name apart: by address, and by path and files of a local folder.
    """
    parts = list(arguments_of(arguments))
    naming = [part for part in parts if part[0].strip() not in _PLACE_AND_SPEED]
    addresses = [value for name, _, value in parts if name.strip() == "base_url"]
    files = [_files_at(value) for *_, value in naming]
    content = [["".join(part) for part in naming if not is_secret_name(part[0])], addresses, files]
    fingerprint = hashlib.sha256(json.dumps(content).encode("utf-8", "surrogatepass")).hexdigest()
    return shown_arguments(",".join(map("".join, naming))), fingerprint


def _files_at(value: str) -> list[Any] | None:
    """Returns absolute path, names, sizes and times of a model's files; None where the value is no local path."""
    path = Path(value).expanduser()
    try:
        if not value or not path.exists():
            return None
        files = [path] if path.is_file() else [file for file in path.iterdir() if file.suffix in _MODEL_FILES]
        stats = sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    except (OSError, ValueError, RuntimeError):
        return None
    return [str(path.resolve()), stats]


def device_argument(cls: Any) -> dict[str, str]:
    """Returns the device that ``lm-eval run`` gives to transformers' models: by default, they need a GPU."""
    from lm_eval.config.evaluate_config import EvaluatorConfig
    from lm_eval.models.huggingface import HFLM

    return {"device": str(EvaluatorConfig.device)} if isinstance(cls, type) and issubclass(cls, HFLM) else {}


class LocalModel:
    """One of lm-eval's model classes, loaded by its name in lm-eval's registry and its ``--model_args``."""

    def __init__(self, backend: str, arguments: str) -> None:
        import lm_eval.models  # noqa: F401  # fills the registry
        from lm_eval.api import registry
        from lm_eval.models.api_models import TemplateAPI
        from lm_eval.utils import simple_parse_args_string

        cls: Any = registry.get_model(backend)
        if isinstance(cls, type) and issubclass(cls, TemplateAPI):
            raise ValueError(
                "a model behind an API isn't loaded. Name the judge as openai:<model>, and set OPENAI_BASE_URL to its "
                "OpenAI-compatible address"
            )
        options = {**device_argument(cls), **simple_parse_args_string(arguments)}
        if "batch_size" in inspect.signature(cls.__init__).parameters:
            options.setdefault("batch_size", "auto" if backend in _ENGINES else _BATCH_SIZE)
        self._model = cls.create_from_arg_obj(options)
        system: list[Message] = [{"role": "system", "content": _PROBE}, {"role": "user", "content": "?"}]
        self._keeps_system = _PROBE in self._render(system)

    def prompt(self, messages: Sequence[Message]) -> str:
        """Returns the messages by the chat template; one without system messages gets their text as the user's."""
        if messages[0]["role"] == "system" and not self._keeps_system:
            system, first, *turns = messages
            messages = [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *turns]
        return self._render(messages)

    def fits(self, prompt: str, new_tokens: int) -> bool:
        """Whether prompt and reply fit into the model's context; lm-eval would cut the prompt's beginning off."""
        return len(self._model.tok_encode(prompt)) + new_tokens <= int(self._model.max_length)

    def completion(self, prompt: str, text: str, sampling: Mapping[str, Any]) -> Completion:
        """Returns a completion with the reason why it ended, which lm-eval doesn't tell.

        Thinking begins in the reply, or in the prompt where the template opens it.
        """
        if prompt.rstrip().endswith("<think>"):
            text = f"<think>{text}"  # so that the end of thinking is known from a mark that somebody quotes
        thinks = text.startswith("<think>") and "</think>" not in text
        unended = bool(text.strip()) and not without_reasoning(text).strip()
        limit = sampling["max_tokens"]
        fewest = limit - limit // 32  # a text may have fewer tokens than were generated
        is_cut_off = unended or len(self._model.tok_encode(text)) >= fewest
        return Completion(text, "length" if is_cut_off else "stop", sampling=sampling, thought=thinks)

    def generate(
        self, prompts: Sequence[str], sampling: Mapping[str, Any], arrived: Callable[[str, str], None]
    ) -> None:
        """Completes all prompts in one call, and reports each with its completion, once or twice."""
        from lm_eval.api.instance import Instance

        # lm-eval's names; greedy unless a temperature says otherwise.
        options = {"temperature": 0.0, **sampling, "until": [], "max_gen_toks": sampling["max_tokens"]}
        form = options.pop("structured_outputs", {})
        if response_format := options.pop("response_format", None):
            form = {"json": response_format["json_schema"]["schema"]}
        if form:
            from vllm.sampling_params import StructuredOutputsParams  # type: ignore[import-not-found, unused-ignore]

            options["structured_outputs"] = StructuredOutputsParams(**form)
        del options["max_tokens"]
        options["do_sample"] = options["temperature"] > 0
        requests = [
            Instance("generate_until", {}, (prompt, dict(options)), index, metadata=("judge", index, 1))
            for index, prompt in enumerate(prompts)
        ]
        # lm-eval's response cache hears of each completion as it comes.
        self._model.set_cache_hook(SimpleNamespace(add_partial=lambda _, request, text: arrived(request[0], text)))
        for prompt, text in zip(prompts, self._model.generate_until(requests), strict=True):
            arrived(prompt, text)

    def _render(self, messages: Sequence[Message]) -> str:
        rendered: str = self._model.apply_chat_template([dict(message) for message in messages])
        return rendered
