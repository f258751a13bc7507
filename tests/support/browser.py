"""A headless Chromium that tests steer over its debugging socket on the loopback address."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-extensions", "--remote-debugging-port=0", "--hide-scrollbars"),
)
_PATIENCE = 60


def find_chromium() -> str | None:
    """Path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """One page, and the events that the browser reported, in order."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.events: list[dict[str, Any]] = []
        self._socket = socket
        self._numbers = itertools.count(1)

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and returns its result; events that come in between are kept."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(_PATIENCE):
            while True:
                message = await self._socket.receive_json()
                if message.get("id") == number:
                    assert "error" not in message, message
                    return message["result"]
                self.events.append(message)

    async def run(self, script: str) -> Any:
        """Runs JavaScript in the page, and returns its value."""
        reply = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    async def open(self, path: Path) -> None:
        """Opens a file, and waits until it is loaded."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=path.as_uri())
        await self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    async def until(self, condition: str) -> None:
        """Waits until JavaScript is true."""
        async with asyncio.timeout(_PATIENCE):
            while not await self.run(condition):  # noqa: ASYNC110 - another process changes it
                await asyncio.sleep(0.05)

    async def press(self, key: str, code: int, text: str = "", modifiers: int = 0) -> None:
        """Presses and releases a key."""
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
            await self.call("Input.dispatchKeyEvent", **event, **extra)

    async def resize(self, width: int, height: int, **features: str) -> None:
        """Sets the size of the window, and media features such as ``prefers_color_scheme``."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        media = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        await self.call("Emulation.setEmulatedMedia", features=media)

    def of(self, method: str) -> list[dict[str, Any]]:
        """Returns the parameters of the events of a kind."""
        return [event["params"] for event in self.events if event.get("method") == method]


@contextlib.asynccontextmanager
async def open_tab(chromium: str, profile: Path) -> AsyncIterator[Tab]:
    """Starts a browser with a profile of its own, and ends it."""
    quiet = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
    process = await asyncio.create_subprocess_exec(
        *(chromium, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"), **quiet
    )
    port = profile / "DevToolsActivePort"  # where the browser says which port it listens on
    try:
        async with asyncio.timeout(_PATIENCE):
            while not (port.is_file() and port.read_text().count("\n")):
                assert process.returncode is None, "chromium ended before it said where it listens"
                await asyncio.sleep(0.05)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port.read_text().split()[0]}/json/list") as answer:
                pages = json.loads(await answer.text())
            page = next(page for page in pages if page["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Tab(socket)
    finally:
        process.terminate()
        await process.wait()


def on_page(tmp_path: Path, page: Path, steps: Callable[[Tab], Awaitable[None]]) -> None:
    """Opens a page, runs the steps on it, and makes sure that it asked for nothing and complained of nothing."""

    async def scenario() -> None:
        async with open_tab(find_chromium() or "", tmp_path / "profile") as tab:
            await tab.open(page)
            await tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "saved"))
            await steps(tab)
            assert tab.of("Runtime.exceptionThrown") == []
            assert tab.of("Log.entryAdded") == []
            urls = {event["request"]["url"] for event in tab.of("Network.requestWillBeSent")}
            assert [url for url in urls if not url.startswith(("data:", "blob:"))] == [page.as_uri()]

    asyncio.run(scenario())
