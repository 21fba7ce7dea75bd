"""Chromium without a window, told by WebDriver what to do (https://www.w3.org/TR/webdriver2/)."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""What WebDriver calls an element in JSON."""
PROGRAMS = ("chromium", "chromedriver")


def missing():
    """The programs that are not there."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class Browser:
    """One tab."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        command = ["chromedriver", f"--port={port}", "--log-level=OFF"]
        self._driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.until(self._up)
        chrome = {"args": OPTIONS, "binary": shutil.which("chromium")}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._url += f"/session/{made['sessionId']}"

    def _up(self):
        try:
            return self._call("GET", "/status")["ready"]
        except urllib.error.URLError:
            return False

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self._url + path, data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)["value"]

    def until(self, condition, *, seconds=30):
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, "it did not come"
            time.sleep(0.02)
        return found

    def go(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self._call("POST", "/execute/sync", {"script": script, "args": [*arguments]})

    def text(self, selector):
        """What a person sees of an element; None where there is no such."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def texts(self, selector):
        script = "return [...document.querySelectorAll(arguments[0])].map((n) => n.innerText)"
        return self.run(script, selector)

    def type(self, selector, text):
        """Types into what the selector finds, as keys are pressed; in a field for files, a path."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{found[ELEMENT]}/value", {"text": text})

    def ask(self, *texts):
        """Fills the columns of a server's page, sends them, and waits for the answer."""
        for number, text in enumerate(texts):
            self.run(f"document.getElementById('column-{number}').value = arguments[0]", text)
        self.run("document.getElementById('send').click()")
        self.until(lambda: self.text("#send[aria-busy]") is None)

    def give(self, field, content, name):
        """Gives a field of a page a file with this content."""
        script = """
            const held = new DataTransfer(); const field = document.getElementById(arguments[0]);
            held.items.add(new File([arguments[1]], arguments[2]));
            field.files = held.files; field.dispatchEvent(new Event('change'));
        """
        self.run(script, field, content, name)

    def press(self, *keys):
        """Presses keys together, wherever the focus is."""
        down = [{"type": "keyDown", "value": key} for key in keys]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        actions = [{"type": "key", "id": "keys", "actions": [*down, *up]}]
        self._call("POST", "/actions", {"actions": actions})

    def develop(self, command, **parameters):
        """A command of Chromium's own protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def shows(self, width, height, scheme):
        """Takes a size and a colour scheme."""
        self.develop(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = [{"name": "prefers-color-scheme", "value": scheme}]
        self.develop("Emulation.setEmulatedMedia", features=scheme)

    def picture(self, *box):
        """What is seen as PNG; or a box of the page: its left, top, width and height in pixels."""
        more = {"format": "png"}
        if box:
            clip = dict(zip(("x", "y", "width", "height"), box, strict=True)) | {"scale": 1}
            more |= {"clip": clip, "captureBeyondViewport": True}
        return base64.b64decode(self.develop("Page.captureScreenshot", **more)["data"])

    def log(self):
        """Errors and warnings of the console since the last call."""
        entries = self._call("POST", "/se/log", {"type": "browser"})
        return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]

    def close(self):
        try:
            self._call("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait()
