"""Judges that lm-eval loads into this process (``lm_eval:<backend>,<model args>``), for ``culture-tasks rejudge``."""

from __future__ import annotations

import gc
import hashlib
import inspect
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import SecretStr

from culture_tasks.errors import JudgeUnreachableError, SettingsError, nearest
from culture_tasks.judges.cache.verdict_cache import CacheThread, open_cache, release_cache
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.addresses import secrets_of, secrets_of_arguments
from culture_tasks.judges.endpoint.endpoint_judge import is_at_hand
from culture_tasks.judges.endpoint.jobs import Grader, JudgingProgress, VerdictJob, open_requests
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.rubric.rubrics import Message, Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem
from culture_tasks.secret_texts import arguments_of, is_secret_name, shown_arguments
from culture_tasks.settings import Settings
from culture_tasks.text import storable, without_reasoning

logger = logging.getLogger(__name__)

_BATCH_SIZE = 8  # lm-eval's default is one prompt at a time
_PROBE = "e5b1c7"

# Packages whose engines are processes beside this one. They batch by themselves where they are given all at once.
_ENGINES = ("vllm", "sglang")

# Sampling parameters that lm-eval's backends take from a request.
_PARAMETERS = ("temperature", "top_p", "top_k", "max_tokens")
# Parameters that hold a reply to a form (see :meth:`Rubric.form`).
_FORMS = ("response_format", "structured_outputs")
# Arguments that say where and how fast a model runs, and don't change its answers.
_PLACE_AND_SPEED = frozenset(
    ("base_url", "device", "batch_size", "max_batch_size", "num_concurrent", "max_retries", "timeout")
)
_MODEL_FILES = frozenset((".json", ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".model", ".txt", ".jinja", ".py"))
# Backends that serve a model on GPUs, and the package that each imports when a model of it is made.
_SERVING: Mapping[str, str] = {"vllm": "vllm", "vllm-vlm": "vllm", "sglang": "sglang"}


class InProcessJudge(Judge):
    """Grades with a model in this process, all at once: the first verdict waited for has everything graded.

    The model, ``<backend>,<model args>``, is loaded then, or when it is checked for responses that are known. Greedy,
    with the model's chat template.
    """

    def __init__(self, model: str, settings: Settings) -> None:
        if settings.judge_budget is not None:
            raise SettingsError(
                "CULTURE_JUDGE_BUDGET: a judge that lm-eval loads counts no tokens, so no budget holds it. Unset the "
                "variable, or name the judge as openai:<model>."
            )
        self._backend, _, arguments = model.partition(",")
        if self._backend == "steered":
            raise SettingsError(
                "CULTURE_JUDGE=lm_eval:steered: lm-eval unpickles the file steer_path, which can run any code. Name "
                "another backend, such as lm_eval:hf."
            )
        if settings.judge_form != "free" and self._backend != "vllm":
            raise SettingsError(
                f"CULTURE_JUDGE_FORM={settings.judge_form}: lm-eval's {self._backend} can't hold replies to a form. "
                "Unset the variable, or name the judge as lm_eval:vllm,<model args> or openai:<model>."
            )
        parameters = settings.judge_parameters
        if unknown := [name for name in parameters if parameters[name] is not None and name not in _PARAMETERS]:
            raise SettingsError(
                f"CULTURE_JUDGE=lm_eval:…: a judge in this process takes no {unknown[0]} (set by "
                f"CULTURE_JUDGE_EXTRA_BODY), only {', '.join(_PARAMETERS)}. Unset "
                "it; model arguments such as enable_thinking=False say whether it thinks."
            )
        self._arguments = SecretStr(arguments)
        self._secrets = secrets_of_arguments(arguments) | secrets_of(settings)
        self._settings = settings
        model, fingerprint = name_and_fingerprint(arguments)
        self._grader = Grader(
            backend="lm_eval",
            endpoint=f"lm_eval:{self._backend}",
            model=model,
            place=fingerprint,
            hides=self._secrets,
            settings=settings,
            takes=_PARAMETERS if settings.judge_form == "free" else (*_PARAMETERS, *_FORMS),
        )
        self._progress = JudgingProgress(f"judge lm_eval:{self._backend},{model}", self._flush)
        self._lock = threading.RLock()
        self._pending: deque[VerdictJob] = deque()
        self._model: LocalModel | None = None
        self._broken: str | None = None
        self._cache: CacheThread | None = None

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric."""
        return self._grader.identity(rubric)

    def submit(self, rubric: Rubric, item: JudgeItem) -> VerdictJob:
        """Notes an item to be graded; nothing happens until somebody waits for a verdict."""
        job = VerdictJob(self._grader, rubric, item, progress=self._progress)
        self._pending.append(job)
        return job

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> None:
        """Makes sure that lm-eval has the backend here and, where the responses are known, loads the model."""
        self._grader.run_began = time.time()
        if responses_known and is_at_hand(self._open_cache(), self._grader, list(expected)):
            return
        check_backend(self._backend)
        if responses_known:
            try:
                self._load()
            except Exception:  # noqa: BLE001  # broad: a backend may fail in any way, and its text may hold a secret
                raise JudgeUnreachableError(f"judge lm_eval:{self._backend}: {self._broken}") from None

    def close(self) -> None:
        """Grades no more, and lets go of the model."""
        with self._lock:
            for job in self._pop_pending():
                job.abandon("the judge was closed before it answered")
            if self._model is not None:
                self._model.close()
                self._model = None
            if self._cache is not None:
                release_cache(self._settings.cache_file)
                self._cache = None

    def _flush(self) -> None:
        """Grades all that was submitted."""
        with self._lock:
            jobs = self._pop_pending()
            try:
                while open_ := open_requests(jobs, self._open_cache()):
                    jobs = self._answer(open_)
            except BaseException as error:  # at an interrupt, too, no thread may be left waiting
                for job in jobs:
                    job.abandon(self._reason(error))
                if not isinstance(error, Exception):
                    raise

    def _pop_pending(self) -> list[VerdictJob]:
        # One by one, since other threads may submit meanwhile.
        return [self._pending.popleft() for _ in range(len(self._pending))]

    def _answer(self, open_: dict[bytes, list[VerdictJob]]) -> list[VerdictJob]:
        """Has the model answer open requests and stores its completions; returns the jobs that have another request.

        What thinking cut off is asked for again with a larger limit, if the context has room for it.
        """
        model, adaptations, most_tokens = self._load(), self._grader.adaptations, self._grader.most_tokens
        open_jobs: list[VerdictJob] = []
        batches: dict[str, tuple[Mapping[str, Any], dict[str, list[bytes]]]] = {}

        def settle(key: bytes, reply: Completion | Problem) -> None:
            jobs = open_.pop(key, [])  # none where the completion was reported before
            if jobs and isinstance(reply, Completion):
                self._open_cache().put([jobs[0].row(reply)])
                jobs[0].attempts += 1
            open_jobs.extend(job for job in jobs if not job.take(Answer(reply)))

        def take(prompt: str, text: str, sampling: Mapping[str, Any], prompts: Mapping[str, list[bytes]]) -> None:
            keys = prompts[prompt]
            if keys[0] not in open_:
                return
            completion = model.completion(prompt, storable(self._secrets.hidden_in_reply(text)), sampling)
            if (
                completion.is_cut_off_by_thinking
                and adaptations.grow(sampling, most_tokens)
                and model.fits(prompt, adaptations.apply(sampling, most_tokens)["max_tokens"])
            ):
                for key in keys:
                    open_[key][0].attempts += 1
                    open_jobs.extend(open_.pop(key))
                return
            for key in keys:
                settle(key, completion)

        for key, (first, *_) in list(open_.items()):
            prompt, meant = model.prompt(first.request.messages()), first.request.sampling
            samplings = (adaptations.apply(meant, most_tokens), meant)
            if fitting := [sampling for sampling in samplings if model.fits(prompt, sampling["max_tokens"])]:
                _, prompts = batches.setdefault(repr(fitting[0]), (fitting[0], {}))
                prompts.setdefault(prompt, []).append(key)
            else:
                settle(key, Problem("the prompt is longer than the judge's context"))
        for sampling, prompts in batches.values():
            try:
                model.generate(list(prompts), sampling, partial(take, sampling=sampling, prompts=prompts))
            except Exception as error:  # noqa: BLE001  # broad: a backend may fail in any way, and ends verdicts, not the run
                for key in chain(*prompts.values()):
                    settle(key, Problem(self._reason(error)))
        return open_jobs

    def _load(self) -> LocalModel:
        if self._broken is not None:
            raise RuntimeError(self._broken)
        if self._model is None:
            try:
                self._model = LocalModel(self._backend, self._arguments.get_secret_value())
            except Exception as error:
                text = " ".join(self._secrets.hidden(str(error)).split())
                self._broken = f"it could not be loaded: {type(error).__name__}: {text}"
                raise
        return self._model

    def _reason(self, error: BaseException) -> str:
        text = self._secrets.hidden(str(error))
        return f"the judge broke down: {type(error).__name__}: {' '.join(text.split())[:300]}"

    def _open_cache(self) -> CacheThread:
        if self._cache is None:
            self._cache = open_cache(self._settings.cache_file)
        return self._cache


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


def check_backend(backend: str) -> None:
    """Makes sure that lm-eval has a backend, that it can be imported here, and that it loads a model itself."""
    import lm_eval.models  # noqa: F401  # fills the registry
    from lm_eval.api import registry
    from lm_eval.models.api_models import TemplateAPI

    if backend not in registry.model_registry:
        backends = sorted(registry.model_registry.keys())
        raise JudgeUnreachableError(
            f"judge lm_eval:{backend}: lm-eval has no backend {backend!r}.{nearest(backend, backends)} "
            f"It has {', '.join(backends)}. Name the judge as lm_eval:<backend>,<model args>."
        )
    package = _SERVING.get(backend)
    try:
        if package is not None and find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}")
        cls: Any = registry.get_model(backend)
    except ImportError as error:
        raise JudgeUnreachableError(
            f"judge lm_eval:{backend}: the backend can't be imported here ({error}). Install the package, or name "
            "another backend, such as lm_eval:hf."
        ) from error
    if isinstance(cls, type) and issubclass(cls, TemplateAPI):
        raise JudgeUnreachableError(
            f"judge lm_eval:{backend}: a model behind an API is no model in this process. Name the judge as "
            "openai:<model>, and set OPENAI_BASE_URL to its OpenAI-compatible address."
        )


def device_argument(cls: Any) -> dict[str, str]:
    """Returns the device that ``lm-eval run`` hands to a model class; hf takes the CPU where there is no such GPU.

    The class's own default is a GPU that must be there. Only classes of transformers' models have a use for it.
    """
    from lm_eval.config.evaluate_config import EvaluatorConfig
    from lm_eval.models.huggingface import HFLM

    return {"device": str(EvaluatorConfig.device)} if isinstance(cls, type) and issubclass(cls, HFLM) else {}


class LocalModel:
    """One of lm-eval's model classes, loaded by its name in lm-eval's registry and its ``--model_args``."""

    def __init__(self, backend: str, arguments: str) -> None:
        from lm_eval.api.registry import get_model
        from lm_eval.utils import simple_parse_args_string

        cls = get_model(backend)
        options = {**device_argument(cls), **simple_parse_args_string(arguments)}
        if "batch_size" in inspect.signature(cls.__init__).parameters:
            options.setdefault("batch_size", "auto" if backend in _ENGINES else _BATCH_SIZE)
        self._model = cls.create_from_arg_obj(options)
        self._has_template = self._render([{"role": "user", "content": _PROBE}]) is not None
        if not self._has_template:
            logger.warning("judge lm_eval:%s has no chat template: prompts are plain text", backend)
        system: list[Message] = [{"role": "system", "content": _PROBE}, {"role": "user", "content": "?"}]
        self._keeps_system = _PROBE in (self._render(system) or "")

    def prompt(self, messages: Sequence[Message]) -> str:
        """Returns the messages as one prompt, by the model's chat template, or without one as texts.

        A template that takes no system message gets its text before the first user message.
        """
        if not self._has_template:
            return "\n\n".join(message["content"] for message in messages) + "\n\n"
        system = [message["content"] for message in messages if message["role"] == "system"]
        if system and not self._keeps_system:
            first, *turns = (message for message in messages if message["role"] != "system")
            messages = [{"role": first["role"], "content": "\n\n".join([*system, first["content"]])}, *turns]
        return self._render(messages) or ""

    def fits(self, prompt: str, new_tokens: int) -> bool:
        """Whether prompt and reply fit into the model's context; lm-eval would cut the prompt's beginning off."""
        longest, encode = getattr(self._model, "max_length", None), getattr(self._model, "tok_encode", None)
        if not isinstance(longest, int) or not callable(encode):
            return True
        # One token takes at least one character, but for byte fallbacks, so short prompts need no count.
        return 4 * len(prompt) + new_tokens <= longest or len(encode(prompt)) + new_tokens <= longest

    def completion(self, prompt: str, text: str, sampling: Mapping[str, Any]) -> Completion:
        """Returns a completion with the reason why it ended, which lm-eval doesn't tell.

        Thinking begins in the reply, or in the prompt where the template opens it.
        """
        encode, limit = getattr(self._model, "tok_encode", None), sampling["max_tokens"]
        if prompt.rstrip().endswith("<think>"):
            text = f"<think>{text}"  # so that the end of thinking is known from a mark that somebody quotes
        thinks = text.startswith("<think>") and "</think>" not in text
        unended = bool(text.strip()) and not without_reasoning(text).strip()
        # One character takes four tokens at most, so short replies need no count. A text may have fewer tokens than
        # were generated for it.
        most = limit - limit // 32
        is_cut_off = unended or (4 * len(text) >= most and callable(encode) and len(encode(text)) >= most)
        return Completion(text, "length" if is_cut_off else "stop", sampling=sampling, thought=thinks)

    def generate(
        self, prompts: Sequence[str], sampling: Mapping[str, Any], arrived: Callable[[str, str], None]
    ) -> None:
        """Completes all prompts in one call, and reports each prompt with its completion as soon as it is there."""
        from lm_eval.api.instance import Instance

        def add_partial(attribute: str, request: Any, result: Any) -> None:
            if attribute == "generate_until" and isinstance(result, str):
                arrived(request[0], result)

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
        self._model.set_cache_hook(SimpleNamespace(add_partial=add_partial))
        for prompt, text in zip(prompts, self._model.generate_until(requests), strict=True):
            arrived(prompt, text)

    def close(self) -> None:
        """Gives the model's memory back; the processes of its engine end."""
        import torch

        for part in vars(self._model).values():
            engine = getattr(getattr(part, "llm_engine", None), "engine_core", part)
            if type(engine).__module__.partition(".")[0] in _ENGINES and hasattr(engine, "shutdown"):
                engine.shutdown()
        self._model = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _render(self, messages: Sequence[Message]) -> str | None:
        try:
            rendered: str = self._model.apply_chat_template([dict(message) for message in messages])
        except (ValueError, NotImplementedError, AttributeError):
            return None
        return rendered
