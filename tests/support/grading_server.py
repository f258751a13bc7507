"""A judge's endpoint on loopback that gives every response a good verdict, in the format that its prompt asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

_REPLIES = {"Rating: [[number]]": "It fits. Rating: [[7]]", "rating=X": "It fits.\nrating=2"}
_OTHERWISE = '{"score": 7, "reason": "It fits."}'


class _Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        reply = next((reply for sign, reply in _REPLIES.items() if sign in asked), _OTHERWISE)
        message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
        usage = {"prompt_tokens": 300, "completion_tokens": 12, "total_tokens": 312}
        body = json.dumps(
            {"object": "chat.completion", "model": "judge", "choices": [message], "usage": usage}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


@contextmanager
def grading_server() -> Iterator[str]:
    """Serves on a free port, and gives the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
