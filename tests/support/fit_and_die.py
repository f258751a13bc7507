"""Fits a method on the tiny InternVL in a process of its own, which can kill itself as a machine would.

Run as a program it writes how many steps it made and the fingerprint of what was learned.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CASES = 6


def run(folder: Path, method: str, options: Mapping[str, Any], kill_at: int | None) -> subprocess.CompletedProcess[str]:
    """Fits on the data in ``folder/data``, and keeps features and checkpoints in ``folder``.

    Args:
        folder: Where data are and what is kept.
        method: The method.
        options: Its options.
        kill_at: Step of the training, from 1, before which the process dies.
    """
    wanted = json.dumps({"method": method, "options": dict(options), "kill_at": kill_at})
    tests = Path(__file__).resolve().parents[1]
    paths = os.pathsep.join([str(tests), str(tests.parent / "examples")])
    return subprocess.run(
        [sys.executable, __file__, str(folder), wanted],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
        timeout=200,
        check=False,
    )


def _main(folder: Path, wanted: Mapping[str, Any]) -> None:
    from support.tiny_families import family

    from culture_tasks.insertion.core.adapter import MultimodalModel
    from culture_tasks.insertion.core.method_registry import method_class, method_config
    from culture_tasks.insertion.core.training import Checkpoints
    from culture_tasks.insertion.core.training_data import load_training_data
    from culture_tasks.insertion.core.value_store import ValueStore

    made = family("internvl")
    model = MultimodalModel(made.model, made.processor, "tiny internvl")
    method = method_class(wanted["method"])(model, method_config(wanted["method"], wanted["options"]))
    steps = 0

    def progress(items, description, note=None, total=None):
        nonlocal steps
        for item in items:
            if "training" in description:
                steps += 1
                if steps == wanted["kill_at"]:
                    os.kill(os.getpid(), signal.SIGKILL)
            yield item

    data = load_training_data(folder / "data", limit=CASES)
    with ValueStore(folder / "features.sqlite3") as kept:
        method.fit(data, kept, progress, Checkpoints(folder / "checkpoint.safetensors", key="", every=2))
    sys.stdout.write(f"{steps} {method.fingerprint}\n")


if __name__ == "__main__":
    _main(Path(sys.argv[1]), json.loads(sys.argv[2]))
