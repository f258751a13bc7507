"""A LoRA adapter merged into the model below it, for programs that take no adapter, such as lmms-eval's chat models."""

from __future__ import annotations

import importlib.util
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from culture_tasks.errors import DataError, MissingExtraError, SettingsError
from culture_tasks.preferences.dataset_folder import new_folder
from culture_tasks.results.trained_on import LEVELS_ABOVE
from culture_tasks.results.training_manifest import FILE_NAME, Manifest


def merge(
    adapter: Path, output: Path, *, base: str | None = None, dtype: str = "auto", trust_remote_code: bool = False
) -> str:
    """Adds an adapter's weights to those of the model below it, and writes the model with its tokenizer or processor.

    The manifest of the data that the adapter was trained on comes along, so that reports know it wherever the model is.
    Without a base, the model below is the one that the adapter was trained on; it is returned.
    """
    file = adapter / "adapter_config.json"
    try:
        config = dict(json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "it is no JSON object"
        raise SettingsError(
            f"preferences merge: {file} can't be read ({reason}). Name the folder of a LoRA adapter; a model that was "
            "trained without one needs no merging."
        ) from None
    below: str | None = base or config.get("base_model_name_or_path")
    if not below:
        raise SettingsError(
            f"preferences merge: {file} doesn't say which model the adapter was trained on. Name it with --base."
        )
    if importlib.util.find_spec("peft") is None:
        raise MissingExtraError("preferences merge", "peft", "preferences")
    with new_folder(output) as part:
        try:
            _merge(adapter, below, part, dtype=dtype, trust_remote_code=trust_remote_code)
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise SettingsError(
                f"preferences merge: {adapter} can't be merged into {below} ({reason:.300}). Name the model that the "
                "adapter was trained on with --base."
            ) from None
        above = adapter.resolve()
        for folder in (above, *above.parents[:LEVELS_ABOVE]):
            with suppress(DataError):
                Manifest.load(folder / FILE_NAME)
                shutil.copyfile(folder / FILE_NAME, part / FILE_NAME)
                break
    return below


def _merge(adapter: Path, below: str, folder: Path, *, dtype: str, trust_remote_code: bool) -> None:
    import transformers
    from peft import PeftModel, get_peft_model_state_dict
    from peft.utils.save_and_load import load_peft_weights

    config = transformers.AutoConfig.from_pretrained(below, trust_remote_code=trust_remote_code)
    kind: Any = getattr(transformers, (config.architectures or [""])[0], transformers.AutoModelForCausalLM)
    model = kind.from_pretrained(below, dtype=dtype, trust_remote_code=trust_remote_code)
    adapted = PeftModel.from_pretrained(model, str(adapter))
    saved = load_peft_weights(str(adapter), device="cpu")
    placed = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    mismatches = sorted(key for key in saved.keys() ^ placed.keys() if ".lora_" in key)
    if mismatches:  # of which peft says nothing
        raise ValueError(f"{len(mismatches)} weights are in one of the two alone, such as {mismatches[0]}")
    adapted.merge_and_unload(safe_merge=True).save_pretrained(folder)
    processor = transformers.AutoProcessor.from_pretrained(below, trust_remote_code=trust_remote_code)
    processor.save_pretrained(folder)
