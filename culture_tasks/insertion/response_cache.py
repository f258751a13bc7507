"""Makes lmms-eval's ``--use_cache`` tell apart what it takes for the same model.

lmms-eval finds kept responses by the command line's model arguments. A retrained state at the same path, or other
weights in the same folder, would hit the responses of the old ones. So once a knowledge-insertion model is made, its
fingerprint, with the fingerprints of the documents, takes the place of those arguments.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MARK = "_culture_tasks_identity"
_FIELDS = ("data", "draw")


def identify_by(model_name: str, identity: str) -> None:
    """Makes responses of a model, by name or as an object, be kept under an identity from now on; safe to call again.

    Args:
        model_name: What ``--model`` calls it.
        identity: Hash of all that can change an answer.
    """
    from lmms_eval.caching.response_cache import ResponseCache

    known: dict[str, str] | None = getattr(ResponseCache, _MARK, None)
    if known is None:
        known = {}
        setattr(ResponseCache, _MARK, known)
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
        if docs is not None and len(docs) and all(field in docs.column_names for field in _FIELDS):
            yield [str(name), *(str(docs[0][field]) for field in _FIELDS)]
