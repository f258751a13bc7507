"""What the tests with real engines share: variables of the environment, commands, and a server of vLLM."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
HEAD_SIZE = 64  # vLLM's attention on a CPU refuses the 16 of the demo's toys
VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}
ENGINE = "dtype=float32,enforce_eager=True,max_model_len=2048"
"""Arguments of a harness's vllm on a CPU. ``dtype=auto`` would make 16 bits of the toys' 32."""

_READY_SECONDS = 900
_STOP_SECONDS = 60


def run(*command: str | Path, variables: Mapping[str, str] | None = None, status: int | None = 0) -> str:
    """Runs a command to its end, with what it has started, and returns its output.

    Args:
        command: A program of the environment, or a path, and its arguments.
        variables: Variables of the environment beside those of the test.
        status: Exit status that is expected, ``None`` for any.
    """
    process = _started(command, stdout=subprocess.PIPE, variables=variables)
    try:
        output, _ = process.communicate()
    finally:
        _end(process)
    text = output.decode("utf-8", "replace")
    assert status in (None, process.returncode), f"{command}\nended with {process.returncode}:\n{text[-12_000:]}"
    return text


class Server:
    """A ``vllm serve`` on a free port of the loopback interface, which can be stopped and started again.

    Attributes:
        url: Address that an OpenAI client is given, ending in ``/v1``. It is the same after another start.
        model: Name of the served model.
        log: File with the server's output.
    """

    model = "toy"

    def __init__(self, folder: Path, log: Path) -> None:
        """Prepares a server of the model in a folder; ``start`` starts it."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self._port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self.log = log
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the server is running."""
        return self._process is not None and self._process.poll() is None

    def start(self, *options: str, wait: bool = True) -> None:
        """Starts the server with further options of ``vllm serve``, and waits until it answers unless told not to."""
        assert not self.is_running, "the server runs"
        command = ("vllm", "serve", self._folder, "--host", "127.0.0.1", "--port", str(self._port))
        fixed = ("--dtype", "float32", "--enforce-eager", "--max-model-len", "4096", "--served-model-name", self.model)
        with self.log.open("ab") as log:
            self._process = _started((*command, *fixed, *options), stdout=log)
        if wait:
            self.wait()

    def wait(self) -> None:
        """Waits until the server answers."""
        assert self._process is not None, "the server doesn't run"
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_healthy():
            waits = self.is_running and time.monotonic() < deadline
            assert waits, f"the server doesn't answer:\n{self.log.read_text('utf-8')[-12_000:]}"
            time.sleep(0.5)

    def stop(self, *, kill: bool = False) -> None:
        """Stops the server, by ``kill`` at once and in the middle of replies; nothing happens if it doesn't run."""
        if self._process is not None:
            _end(self._process, kill=kill)
            self._process = None

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url.removesuffix('/v1')}/health", timeout=5):
                return True
        except OSError:
            return False


def _started(
    command: Sequence[str | Path], stdout: int | object, variables: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts a command in a new process group, which ends when this process does."""
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        env=os.environ | (variables or {}),
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _end(process: subprocess.Popen[bytes], *, kill: bool = False) -> None:
    """Ends a process with all that it has started."""
    if not kill and process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            kill = True
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
