#!/usr/bin/env python3
"""Run a service as systemd does, with the features that our units use.

service.py UNIT INSTANCE: start the unit and print what happens on stdout, one line per event.
SIGTERM stops the service, SIGHUP reloads it.  Events:

    started PID         ExecStart runs as PID
    told NAME=VALUE     the main process sent this by sd_notify
    ready               the first READY=1 came
    ended CODE          the main process ended; -9: killed by this signal
    gave up             the service must not be restarted
    stopped             the service has stopped for good

Our units use Type=notify, KillMode=process, Restart=on-failure,
RestartPreventExitStatus=, Environment=, EnvironmentFile=, ExecStartPre=, ExecReload=, %f, %i, %E,
$$, ${V} and $V.
It is started again at once, and stopping has no limit, of whichever time the unit says.
"""
import os
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys


def say(*words):
    print(*words, flush=True)


class Unit:
    """Lines of the unit, with what stands for others put in."""

    def __init__(self, path, instance):
        self.specifiers = {"i": instance, "f": "/" + re.sub(
            r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), instance.replace("-", "/")),
            "E": os.environ.get("TEST_ETC", "/etc")}
        self.values = {}
        with open(path) as lines:
            for line in lines:
                name, equals, value = line.strip().partition("=")
                if equals and not line.startswith("#"):
                    self.values.setdefault(name, []).append(self.fill(value))

    def fill(self, text):
        return re.sub(r"%(\w)", lambda m: self.specifiers[m[1]], text)

    def one(self, name, default=None):
        return self.values.get(name, [default])[-1]

    def environment(self):
        found = {}
        for line in self.values.get("Environment", []):
            # a word with "=" begins a variable, others go on with it
            for name, value in re.findall(r"(\w+)=((?:(?! \w+=).)*)", line):
                found[name] = value
        for path in self.values.get("EnvironmentFile", []):
            try:
                with open(path.lstrip("-")) as lines:
                    for line in lines:
                        name, equals, value = line.strip().partition("=")
                        if equals and not name.startswith("#"):
                            found[name] = value
            except FileNotFoundError:
                if not path.startswith("-"):
                    raise SystemExit("no " + path)
        return found

    def command(self, line, variables):
        words = []
        for word in shlex.split(line):
            if re.fullmatch(r"\$\w+", word):
                words += variables.get(word[1:], "").split()
                continue
            word = re.sub(r"\$\{(\w+)\}", lambda m: variables.get(m[1], ""), word)
            words.append(word.replace("$$", "$"))
        return words


class Service:
    def __init__(self, unit):
        self.unit = unit
        self.main = None
        self.stopping = False
        directory = os.environ["TEST_RUN"]
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.notify.bind(os.path.join(directory, "notify"))
        self.address = os.path.join(directory, "notify")
        self.wake, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def run_others(self, name, variables):
        for line in self.unit.values.get(name, []):
            status = subprocess.call(self.unit.command(line.lstrip("-"), variables))
            if status and not line.startswith("-"):
                raise SystemExit("%s: %d" % (line, status))

    def start(self):
        variables = self.unit.environment()
        self.run_others("ExecStartPre", variables)
        self.ready = False
        self.main = subprocess.Popen(
            self.unit.command(self.unit.one("ExecStart"), variables), stdin=subprocess.DEVNULL,
            env=dict(os.environ, **variables, NOTIFY_SOCKET=self.address), start_new_session=True)
        say("started", self.main.pid)

    def hear(self):
        data, controls, _, _ = self.notify.recvmsg(4096, 1024)
        pid = struct.unpack("3i", controls[0][2])[0]
        if pid != self.main.pid:
            say("told by another", pid)
            return
        for line in data.decode().splitlines():
            say("told", line)
            if line == "READY=1" and not self.ready:
                self.ready = True
                say("ready")

    def ended(self):
        """The main process has; others are let live.  Start it again?"""
        code = self.main.returncode
        assert self.unit.one("KillMode") == "process"
        say("ended", code)
        if self.stopping or code == 0:
            return False
        if str(code) in self.unit.one("RestartPreventExitStatus", "").split():
            say("gave up")
            return False
        assert self.unit.one("Restart") == "on-failure"
        return True

    def signalled(self, number):
        if number == signal.SIGTERM:
            self.stopping = True
            self.main.send_signal(signal.SIGTERM)
        elif number == signal.SIGHUP:
            self.run_others("ExecReload", {"MAINPID": str(self.main.pid)})

    def run(self):
        self.start()
        while True:
            heard, _, _ = select.select([self.notify, self.wake], [], [])
            if self.notify in heard:
                self.hear()
                continue
            for number in os.read(self.wake, 64):
                self.signalled(number)
            if self.main.poll() is not None:
                if not self.ended():
                    break
                self.start()
        say("stopped")


Service(Unit(sys.argv[1], sys.argv[2])).run()
