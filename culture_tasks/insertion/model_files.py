"""Where models are, and their shapes, found out before any weights are downloaded or loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from culture_tasks.errors import SettingsError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_OF_LOADING = (OSError, ValueError, KeyError, ImportError, AttributeError)
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


class ModelLocation(NamedTuple):
    """Where a model is (``folder``, ``cache`` or ``Hub``), and how many bytes will be downloaded."""

    place: str
    download: int = 0


def locate(name: str, revision: str | None = None) -> ModelLocation:
    """Finds a model in its folder, in the cache of the Hub, or on the Hub, without downloading it."""
    from huggingface_hub import HfApi, constants, errors, try_to_load_from_cache

    client_error: Any = errors.HfHubHTTPError.__bases__[0]  # of requests or of httpx, by the version
    folder = Path(name)
    if folder.is_dir():
        if (folder / "config.json").is_file() and _has_weights(folder):
            return ModelLocation("folder")
        raise SettingsError(f"{name}: the folder has no config.json with model.safetensors. Name one that has.")
    try:
        cached = try_to_load_from_cache(name, "config.json", revision=revision)
        if isinstance(cached, str) and _has_weights(Path(cached).parent):
            return ModelLocation("cache")
        if constants.HF_HUB_OFFLINE:
            raise SettingsError(
                f"{name}: HF_HUB_OFFLINE is set, and the cache ({constants.HF_HUB_CACHE}) doesn't hold it. Unset it to "
                "download the model, name a folder, or name by HF_HOME a cache that has it."
            )
        HfApi().auth_check(name)
        siblings = HfApi().model_info(name, revision=revision, files_metadata=True).siblings or []
    except errors.HFValidationError:
        raise SettingsError(f"{name}: no folder, and no name on the Hub. Name a model as owner/name.") from None
    except errors.GatedRepoError:
        raise SettingsError(
            f"{name}: access is granted on request. Ask for it at https://huggingface.co/{name}, then log in with "
            "`hf auth login` (or set HF_TOKEN)."
        ) from None
    except errors.RevisionNotFoundError:
        raise SettingsError(f"{name}: the Hub has no revision {revision!r} of it. Name another.") from None
    except errors.RepositoryNotFoundError:
        raise SettingsError(
            f"{name}: no folder, and the Hub has no model of this name, or only for users who may see it. Correct the "
            "name, or log in with `hf auth login`."
        ) from None
    except (client_error, OSError) as error:
        raise SettingsError(
            f"{name}: not in the cache ({constants.HF_HUB_CACHE}), and the Hub can't be reached "
            f"({type(error).__name__}). Check the connection, name a folder, or name a mirror by HF_ENDPOINT."
        ) from None
    sizes = [
        sum(file.size or 0 for file in siblings if file.rfilename.endswith(end)) for end in (".safetensors", ".bin")
    ]
    return ModelLocation("Hub", sizes[0] or sizes[1])


def without_weights(
    name: str, revision: str | None = None, dtype: str = "auto", *, trust_remote_code: bool = False
) -> PreTrainedModel:
    """Returns a model on the meta device: its shape, and no weights; of its files its configuration alone is read.

    A model that isn't one of images and text is an encoder, which is loaded in float32.
    """
    from transformers import AutoConfig, AutoModel, AutoModelForImageTextToText

    with explained(f"{name}: transformers can't make a model of its configuration", "Name another model."):
        config = AutoConfig.from_pretrained(name, revision=revision or "main", trust_remote_code=trust_remote_code)
        kind = AutoModelForImageTextToText if type(config) in AutoModelForImageTextToText._model_mapping else AutoModel
        model_dtype = getattr(config, "dtype", None) if dtype == "auto" else getattr(torch, dtype)
        with torch.device("meta"):
            return kind.from_config(
                config, dtype=(model_dtype or torch.float32) if kind is not AutoModel else torch.float32
            )


@contextmanager
def explained(problem: str, advice: str, errors: tuple[type[Exception], ...] = _OF_LOADING) -> Iterator[None]:
    """Turns errors of a library into one that says what fails, why, and what to do."""
    try:
        yield
    except errors as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SettingsError(f"{problem} ({reason:.300}). {advice}") from error


def _has_weights(folder: Path) -> bool:
    """Whether all of a checkpoint's weights are in a folder."""
    for file in _WEIGHTS:
        index = folder / f"{file}.index.json"
        if (folder / file).is_file():
            return True
        if index.is_file():
            shards = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
            return all((folder / shard).is_file() for shard in set(shards))
    return False
