"""A headless browser for tests, controlled over a pipe by the protocol of its developer tools.

Tests load pages, press keys and evaluate scripts on the page. The accessibility tree shows what a screen reader would read.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue

PATIENCE_S: Final = 120.0
PROGRAM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser: Final = pytest.mark.skipif(
    PROGRAM is None, reason="no chromium on PATH; as root: apt-get install --no-install-recommends chromium"
)
_KEYS: Final = {"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32}
_TEXTS: Final = {"Enter": "\r", "Space": " "}


class BrowserError(AssertionError):
    """The browser refused a command, or a script on the page failed."""


class Browser:
    """A running browser with one page."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._number = 0
        self._rest = b""
        self._session = ""
        self.messages: list[str] = []
        target = cast("str", self.call("Target.createTarget", url="about:blank")["targetId"])
        self._session = cast("str", self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: JsonValue) -> JsonObject:
        """Run a command of the browser's DevTools protocol, and return its result."""
        self._number += 1
        message: JsonObject = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (found := self._receive()).get("id") != self._number:
            self._note(found)
        if "error" in found:
            raise BrowserError(f"{method}: {found['error']}")
        return cast("JsonObject", found["result"])

    def open(self, address: str) -> None:
        """Load a page, and wait until its script has run."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, script: str) -> JsonValue:
        """Return the value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{script}: {answer['exceptionDetails']}")
        return cast("JsonObject", answer["result"]).get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression on the page is true."""
        end = time.monotonic() + PATIENCE_S
        while not self.evaluate(script):
            assert time.monotonic() < end, f"never: {script}; {self.evaluate('document.body.innerText')}"

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key."""
        code: JsonObject = {"key": " " if key == "Space" else key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        more: JsonObject = {"modifiers": 8 if shift else 0, **({"text": _TEXTS[key]} if key in _TEXTS else {})}
        self.call("Input.dispatchKeyEvent", type="keyDown", **code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def look(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Set the size of the window, and the system's color scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        data = cast("str", self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"])
        path.write_bytes(base64.b64decode(data))

    def accessible(self) -> list[tuple[str, str]]:
        """Return the role and the name of each element in the accessibility tree."""
        nodes = cast("list[JsonObject]", self.call("Accessibility.getFullAXTree")["nodes"])
        return [(_text(node, "role"), _text(node, "name")) for node in nodes if not node["ignored"]]

    def _note(self, message: JsonObject) -> None:
        """Record errors that the page reports."""
        if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
            self.messages.append(json.dumps(message["params"]))

    def _receive(self) -> JsonObject:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE_S)
            assert ready, "the browser does not answer"
            piece = os.read(self._answers, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        return cast("JsonObject", json.loads(line))


def _text(node: JsonObject, key: str) -> str:
    found = cast("JsonObject", node.get(key) or {})
    return str(found.get("value", ""))


@contextmanager
def open_browser(folder: Path) -> Iterator[Browser]:
    """Start a browser with its own profile in ``folder``, and kill it at the end of the block."""
    assert PROGRAM is not None
    its_commands, commands = os.pipe()
    answers, its_answers = os.pipe()
    words = [
        PROGRAM,
        "--headless=new",
        "--remote-debugging-pipe",
        "--no-sandbox",  # tests run as root, and show only pages of this project
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        f"--user-data-dir={folder}",
    ]
    # The browser reads commands from descriptor 3, and writes answers to 4.
    shell = ["bash", "-c", f'exec "$@" 3<&{its_commands} 4>&{its_answers}', "bash", *words]
    with subprocess.Popen(
        shell,
        pass_fds=(its_commands, its_answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    ) as process:
        os.close(its_commands)
        os.close(its_answers)
        try:
            yield Browser(commands, answers)
        finally:
            process.kill()
            os.close(commands)
            os.close(answers)
