"""A real HTTP server on loopback that speaks what ``huggingface_hub`` and ``datasets`` need of the Hub."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


@dataclass
class Repository:
    """One data set.

    Attributes:
        commits: The files of each commit, by path.
        revisions: The commit of each branch and tag.
        gated_for: The token that may read the data; None lets everyone.
        known_tokens: Tokens of users who weren't granted access.
    """

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)
    gated_for: str | None = None
    known_tokens: tuple[str, ...] = ()

    def commit(self, files: dict[str, str | bytes], *names: str) -> str:
        """Adds a commit, moves these branches or tags to it, and returns its hash."""
        content = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
        sha = hashlib.sha1(repr((sorted(content.items()), len(self.commits))).encode()).hexdigest()
        self.commits[sha] = content
        self.revisions.update(dict.fromkeys(names or ("main",), sha))
        return sha


class LocalHub:
    """The server. It runs in a thread until :meth:`close`.

    Attributes:
        repositories: Its data sets, by name.
        asked: Method and path of each request, in order.
        breaks_on: Requests whose path has this in it are cut off amid the reply; None cuts off none.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.asked: list[str] = []
        self.breaks_on: str | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Goes away: what is asked from now on isn't connected."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = unquote(urlsplit(self.path).path)
                hub.asked.append(f"{self.command} {path}")
                if hub.breaks_on and hub.breaks_on in path and self.command == "GET":
                    self.send_response(200)
                    self.send_header("Content-Length", "1000000")
                    self.end_headers()
                    self.wfile.write(b"x")
                    self.close_connection = True
                else:
                    self.reply(*hub.reply(path, body, self.headers.get("Authorization") or ""))

            def reply(self, status, body, headers=None):
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_HEAD(self):
                self.do_GET()

            def do_POST(self):
                self.do_GET()

        return Handler

    def reply(self, path: str, body: bytes, authorization: str) -> tuple[int, bytes, dict[str, str]]:
        """Returns status, body and headers, as the Hub gives them."""
        resolve = re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        # What the API is asked for: all of a revision, the list of its files, or what some of its paths are.
        query = re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+)(?:/(.*))?)?", path)
        match = resolve or query
        if match is None:
            return refused(404, "EntryNotFound")
        repository = self.repositories.get(match[1])
        if repository is None:
            return refused(401 if not authorization else 404, "RepoNotFound")
        if repository.gated_for and authorization != f"Bearer {repository.gated_for}" and (resolve or query[2]):
            is_known = authorization.removeprefix("Bearer ") in repository.known_tokens
            return refused(403 if is_known else 401, "GatedRepo")
        name = (resolve[2] if resolve else query[3]) or "main"
        sha = name if name in repository.commits else repository.revisions.get(name)
        if sha is None:
            return refused(404, "RevisionNotFound")
        files, commit = repository.commits[sha], {"X-Repo-Commit": sha}
        if resolve:
            if resolve[3] not in files:
                return refused(404, "EntryNotFound", commit)
            return 200, files[resolve[3]], commit | {"ETag": f'"{blob(files[resolve[3]])}"'}
        if query[2] == "paths-info":
            paths = json.loads(body).get("paths", [])
            listed = [entry for path in paths for entry in entries(files, path) if entry["path"] == path]
        elif query[2] == "tree":
            under = (query[4] or "").rstrip("/")
            listed = [entry for entry in entries(files, "") if entry["path"].startswith(f"{under}/" if under else "")]
            if under and not listed:
                return refused(404, "EntryNotFound", commit)
        else:
            siblings = [{"rfilename": path} for path in files]
            return 200, json.dumps({"id": match[1], "sha": sha, "siblings": siblings}).encode(), commit
        return 200, json.dumps(listed).encode(), commit


def blob(content: bytes) -> str:
    """Returns the hash by which Git knows a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def entries(files: dict[str, bytes], top: str) -> list[dict[str, object]]:
    """Returns all files and folders as the API lists them."""
    folders = {path.rpartition("/")[0] for path in files} - {""}
    listed: list[dict[str, object]] = [
        {"type": "directory", "path": folder, "oid": blob(folder.encode()), "size": 0} for folder in sorted(folders)
    ]
    return listed + [
        {"type": "file", "path": path, "oid": blob(content), "size": len(content)} for path, content in files.items()
    ]


def refused(status: int, code: str, headers: dict[str, str] | None = None) -> tuple[int, bytes, dict[str, str]]:
    """Returns an error as the Hub gives it: its kind is in a header."""
    error_headers = {"X-Error-Code": code, "X-Error-Message": code, **(headers or {})}
    return status, json.dumps({"error": code}).encode(), error_headers
