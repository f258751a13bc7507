"""A server on loopback with the files and batches of an OpenAI-compatible endpoint, and their faults."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from support.fault_server import GOOD, Behaviour, FaultServer, Request, completion, fails, raw, says

Line = dict[str, Any]


def answered(line: Line, text: str = GOOD, **message: Any) -> Line:
    """The line of an output file for a request that was answered."""
    body = completion(text, **message)
    return {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}


def refused(line: Line, status: int, **error: Any) -> Line:
    """The line of an error file for a request that the endpoint refused."""
    body = {"error": {"message": "something is wrong", **error}}
    return {"custom_id": line["custom_id"], "response": {"status_code": status, "body": body}, "error": None}


def expired(line: Line) -> Line:
    """The line of an error file for a request that the endpoint didn't get to."""
    error = {"code": "batch_expired", "message": "This request could not be executed before the completion window."}
    return {"custom_id": line["custom_id"], "response": None, "error": error}


class BatchServer(FaultServer):
    """Works on batches by a rule, at once or when the test says so."""

    def __init__(self) -> None:
        self.answer: Callable[[Line], Line | None] = answered  # makes the line of a result; None for no result
        self.live: Callable[[Request], Behaviour] = lambda request: says()  # replies to a request that is in no batch
        self.fault: Callable[[Request], Behaviour | None] = lambda request: None  # a behaviour instead of the server's
        self.waits = False  # whether batches stay in progress until :meth:`work`
        self.ending = "completed"  # the state that they end in
        self.files: dict[str, bytes] = {}  # contents by name
        self.batches: dict[str, dict[str, Any]] = {}  # by name, in order
        self.worked_on: list[str] = []  # names of the requests that were worked on and are charged, in order
        super().__init__()
        self.decide = lambda request: self.fault(request) or self._route(request)

    @property
    def asked_live(self) -> int:
        """How many requests came outside of batches."""
        return sum(request.path.endswith("/chat/completions") for request in self.requests)

    def lines(self, batch: str) -> list[Line]:
        """The requests of a batch."""
        content = self.files[self.batches[batch]["input_file_id"]].decode()
        return [json.loads(line) for line in content.split("\n") if line]

    def work(self) -> None:
        """Works on all batches that are in progress."""
        for name, batch in self.batches.items():
            if batch["status"] != "in_progress":
                continue
            lines = self.lines(name)
            results = [result for line in lines if (result := self.answer(line)) is not None]
            good = [result for result in results if result["response"] and result["response"]["status_code"] == 200]
            bad = [result for result in results if result not in good]
            self.worked_on += [result["custom_id"] for result in good]
            batch["status"] = self.ending
            batch["request_counts"] = {"total": len(lines), "completed": len(good), "failed": len(bad)}
            batch["output_file_id"] = self.put(good) if good else None
            batch["error_file_id"] = self.put(bad) if bad else None

    def put(self, lines: list[Line]) -> str:
        """Stores a file of lines and returns its name."""
        name = f"file-{len(self.files)}"
        self.files[name] = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
        return name

    def _route(self, request: Request) -> Behaviour:
        path = urlsplit(request.path).path.removeprefix("/v1/")
        if path == "chat/completions":
            return self.live(request)
        if path == "files":
            return self._upload(request)
        if path == "batches" and request.method == "POST":
            return self._begin(request)
        if path == "batches":
            return raw(json.dumps({"object": "list", "data": [*reversed(self.batches.values())], "has_more": False}))
        if match := re.fullmatch(r"batches/([^/]+)", path):
            batch = self.batches.get(match[1])
            return raw(json.dumps(batch)) if batch else fails(404)
        if match := re.fullmatch(r"files/([^/]+)/content", path):
            return raw(self.files[match[1]]) if match[1] in self.files else fails(404)
        return fails(404)

    def _upload(self, request: Request) -> Behaviour:
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        [part] = [part for part in request.content.split(b"--" + boundary) if b'name="file"' in part]
        name = f"file-{len(self.files)}"
        self.files[name] = part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        described = {"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "x", "purpose": "batch"}
        return raw(json.dumps({**described, "status": "processed"}))

    def _begin(self, request: Request) -> Behaviour:
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "endpoint": request.body["endpoint"],
            "completion_window": "24h",
            "created_at": 1,
            "input_file_id": request.body["input_file_id"],
            "status": "in_progress",
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        }
        begun = json.dumps(self.batches[name])
        if not self.waits:
            self.work()
        return raw(begun)
