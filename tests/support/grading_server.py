"""A judge's endpoint on loopback that gives every response a good verdict, in the format that its prompt asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from support.fault_server import Behaviour, FaultServer, Request, says

_REPLIES = {"Rating: [[number]]": "It fits. Rating: [[7]]", "rating=X": "It fits.\nrating=2"}
_OTHERWISE = '{"score": 7, "reason": "It fits."}'


def grade(request: Request) -> Behaviour:
    """Grades as well as the prompt allows."""
    prompt = str(request.body["messages"])
    return says(next((reply for sign, reply in _REPLIES.items() if sign in prompt), _OTHERWISE))


@contextmanager
def grading_server() -> Iterator[str]:
    """Serves on a free port, and gives the base URL."""
    with closing(FaultServer()) as server:
        server.decide = grade
        yield server.url
