#!/usr/bin/python3
"""Control a headless Chromium over a pipe, by its DevTools protocol, without other programs.

    with Browser(DIRECTORY, OPTION...) as b:
        b.open("page.html")
        b.run("document.title")     the value of an expression
        b.events                    requests, complaints and messages so far

Only file: addresses can be reached.
"""
import fcntl
import json
import os
import select
import subprocess

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

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)

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

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events
                if e["method"] == "Network.requestWillBeSent"]

    def complaints(self):
        return [e for e in self.events if e["method"] != "Network.requestWillBeSent"]
