#!/usr/bin/python3
"""Control a headless Chromium over a pipe, by its DevTools protocol, without other programs.

    with Browser(DIRECTORY, OPTION...) as b:
        b.open("page.html")
        b.run("document.title")     the value of an expression
        b.events                    requests, complaints and messages so far
        b.screenshot("page.png")

Only file: addresses can be reached.
"""
import base64
import fcntl
import json
import os
import select
import struct
import subprocess
import zlib

WATCHED = ("Network.requestWillBeSent", "Log.entryAdded", "Runtime.consoleAPICalled",
           "Runtime.exceptionThrown")
PATIENCE = 600  # seconds for one answer


def high(fd):
    """The same descriptor where it is not in the way of 3 and 4."""
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
    os.close(fd)
    return copy


class Browser:
    def __init__(self, directory, *options):
        asks, self.send_fd = map(high, os.pipe())
        self.receive_fd, answers = map(high, os.pipe())

        def arrange():
            os.dup2(asks, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            ["/usr/bin/chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
             "--user-data-dir=" + os.path.join(directory, "chromium"), *options],
            env=dict(os.environ, HOME=directory), preexec_fn=arrange, pass_fds=(3, 4),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(asks)
        os.close(answers)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.ask("Browser.close")
        except (EOFError, OSError):
            pass
        self.process.wait(PATIENCE)
        os.close(self.send_fd)
        os.close(self.receive_fd)

    def receive(self):
        while b"\0" not in self.buffer:
            if not select.select([self.receive_fd], [], [], PATIENCE)[0]:
                raise EOFError("chromium does not answer")
            some = os.read(self.receive_fd, 1 << 20)
            if not some:
                raise EOFError("chromium is gone")
            self.buffer += some
        one, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(one)
        if message.get("method") in WATCHED:
            self.events.append(message)
        return message

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_fd, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, path, fragment=""):
        url = "file://" + os.path.abspath(path) + fragment
        self.ask("Page.navigate", url=url)
        while self.receive().get("method") != "Page.loadEventFired":
            pass

    def run(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def size(self, width, height, dark=False):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def click(self, selector):
        """A real click, in the middle of an element."""
        x, y = self.run("(() => { const e = document.querySelector(%s);"
                        "e.scrollIntoView({block: 'center'});"
                        "const r = e.getBoundingClientRect();"
                        "return [r.x + r.width / 2, r.y + r.height / 2]; })()" % json.dumps(selector))
        for what in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=what, x=x, y=y, button="left", clickCount=1)

    def key(self, key, code):
        for what in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=what, key=key, code=key,
                     windowsVirtualKeyCode=code, **({"text": "\r"} if key == "Enter" and what == "keyDown" else {}))

    def screenshot(self, path):
        data = base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
        with open(path, "wb") as out:
            out.write(data)
        return data

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events
                if e["method"] == "Network.requestWillBeSent"]

    def complaints(self):
        return [e for e in self.events if e["method"] != "Network.requestWillBeSent"]


def colours(png):
    """How often each colour is in a PNG of 8-bit RGB or RGBA."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(png):
        (size,), kind = struct.unpack_from(">I", png, at), png[at + 4:at + 8]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", png, at + 8)
        if kind == b"IDAT":
            packed += png[at + 8:at + 8 + size]
        at += size + 12
    assert depth == 8 and colour in (2, 6)
    n, data = 3 if colour == 2 else 4, zlib.decompress(packed)
    before, count = bytes(width * n), {}
    for y in range(height):
        start = y * (width * n + 1)
        way, row = data[start], bytearray(data[start + 1:start + 1 + width * n])
        for i in range(len(row)):
            a = row[i - n] if i >= n else 0
            b, c = before[i], before[i - n] if i >= n else 0
            if way == 1:
                row[i] = row[i] + a & 255
            elif way == 2:
                row[i] = row[i] + b & 255
            elif way == 3:
                row[i] = row[i] + (a + b) // 2 & 255
            elif way == 4:
                p = a + b - c
                row[i] = row[i] + min((a, b, c), key=lambda v: abs(p - v)) & 255
        before = row
        for i in range(0, len(row), n):
            pixel = bytes(row[i:i + 3])
            count[pixel] = count.get(pixel, 0) + 1
    return count
