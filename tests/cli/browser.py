"""A headless Chromium, spoken to over pipes in its own protocol: no driver is needed."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome",
         "chromium-headless-shell")  # fmt: skip
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
# Pages are our own and files, so the sandbox, which root cannot have, is not missed.
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--no-first-run", "--disable-extensions", "--remote-debugging-pipe")  # fmt: skip

# It reads from descriptor 3 and writes to 4.
PLACE = """
import fcntl, os, sys
high = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]]
for number, place in zip(high, (3, 4)):
    os.dup2(number, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page in one browser; `events` has all that the browser reported."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs, self._out = os.pipe()
        self._in, back = os.pipe()
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", PLACE, str(theirs), str(back), *command],
            pass_fds=(theirs, back),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(back)
        self._ids = itertools.count(1)
        self._rest = b""
        self._ready: deque[Any] = deque()
        self.events: list[dict[str, Any]] = []
        self._session: dict[str, str] = {}
        found = self.ask("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in found if t["type"] == "page")
        answer = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": answer["sessionId"]}
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command, and its answer."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == number:
                assert "error" not in found, found
                return dict(found["result"])
            self.events.append(found)

    def _next(self) -> dict[str, Any]:
        while not self._ready:
            got = os.read(self._in, 1 << 16)
            assert got, "Chromium has ended"
            *whole, self._rest = (self._rest + got).split(b"\0")
            self._ready.extend(map(json.loads, whole))
        return dict(self._ready.popleft())

    def open(self, path: Path) -> None:
        """Show a file, and wait until its scripts have run."""
        self.events.clear()
        self.ask("Page.navigate", url=path.as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        """What a line of JavaScript gives on the page."""
        asked = {"expression": expression, "returnByValue": True}
        found = self.ask("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def look(self, width: int, scheme: str) -> None:
        """Show the page this wide, in a light or a dark scheme."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1}
        self.ask("Emulation.setDeviceMetricsOverride", mobile=width < 500, **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def complaints(self) -> list[dict[str, Any]]:
        """What went wrong on the page since it was opened."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [e for e in self.events if e["method"] in kinds]

    def requests(self) -> set[str]:
        """Everything the page has asked for since it was opened."""
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return {e["params"]["request"]["url"] for e in sent}

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        os.close(self._in)
        self._process.terminate()
        self._process.wait(30)


if __name__ == "__main__":  # the Makefile asks whether there is one
    sys.exit(CHROMIUM is None)
