#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a command says when it is used in a wrong way, for every option that its --help has.

usage.py COMMAND...      "mark set" is one

Each use is one run.  It cannot do anything: an option that does not exist follows what may
be right.  For the options that answer in the same way a line is printed, with the numbers of
the messages:

  twice    the option, with a value that is right in most commands, twice, and no operand
  values   an empty value and those of VALUES for this kind of value, in that order: all of
           them in the commands that have them all, elsewhere the first
  missing  the value is missing, or there is one (=x) where none belongs: of the first option
           that has a value, and of the first that has none
  half     the option without its last letter; of the first
  short    the short name, the same way

What is said in most commands is left out: of "twice" what is said without operands, and that an
option is unknown, or its value missing, where it is.  A line begins with a command and wrong numbers
of operands; at the end are the messages of all commands.  In a message CMD is the command, OPT the
option, and VALUE its value.
"""
import collections
import os
import re
import subprocess
import sys
import textwrap

NUMBERS = ["7x", "0", "-1", "99999999999999999999", "1K", "1/2"]
LISTS = ["gfx90a:foo+", "a b", "gfx90a:xnack+:xnack-", "all", "gfx942,,gfx1100", "gfx9999"]
WORDS = ["a\nb", "a/b", "a b", os.fsdecode(b"\xff"), "../b", "x=y", "x=gfx9999"]
ALL = {"pack", "ls", "detect", "mark convert", "offload-bundler"}
VALUES = {"N": NUMBERS, "BYTES": NUMBERS, "SECONDS": NUMBERS, "I/N": NUMBERS,
          "LIST": LISTS, "ARCH": LISTS, "LIST...": LISTS}
RIGHT = {"N": "3", "BYTES": "64K", "SECONDS": "3", "I/N": "1/2", "LIST": "gfx1100", "ARCH": "gfx1100",
         "SCHEME": "none", "NAME=ARCH,...": "x=gfx1100", "NAME=LIST": "x=gfx1100", "WHICH": "any",
         "WHAT": "packed", "SIDE": "input"}
# of these commands no operand is needed: they would do something, or ask the machine
NEEDS_NONE = {"detect", "runtime", "apply", "status"}


def run(words):
    p = subprocess.run(["kpack"] + words, stdin=subprocess.DEVNULL, capture_output=True)
    text = (p.stdout + p.stderr).decode("utf-8", "surrogateescape")
    return p.returncode, text


class Command:
    messages = []

    def __init__(self, words):
        self.words = words
        status, self.help = run(words + ["--help"])
        assert status == 0, self.help
        self.usage = self.help.split("\n\n")[0] + "\n"

    def rows(self):
        """(short or "", long, name of the value or "")"""
        for short, name, value in re.findall(
                r"^  (?:-(\w), |    )--([\w-]+)(?: (\S+))?(?=  |$)", self.help, re.M):
            if name != "help":
                yield short, "--" + name, value

    def say(self, words, option="", value=None):
        """What the command says to WORDS."""
        status, text = run(self.words + words)
        lines = text.replace(self.usage, "").rstrip("\n").split("\n")
        text = (lines[0] or "(nothing)") + (" (and %d lines)" % (len(lines) - 1) if lines[1:] else "")
        if option:
            text = re.sub(re.escape(option) + r"(?![\w-])", "OPT", text)
            text = re.sub(re.escape(option[:-1]) + r"(?![\w-])", "OPT", text)
        if value is not None:
            shown = value.replace("\n", "\\012").replace("\udcff", "\\377")
            for form in "OPT %s:", "OPT=%s:", "'%s' ":
                text = text.replace(form % value, form % "VALUE").replace(form % shown, form % "VALUE")
        text = text.replace("kpack: %s: " % " ".join(self.words), "kpack: CMD: ")
        return "[%d] %s" % (status, text)

    @classmethod
    def number(cls, message):
        if message not in cls.messages:
            cls.messages.append(message)
        return str(cls.messages.index(message) + 1)

    def of_option(self, short, name, value):
        """One text that has the numbers of all uses of the option that are answered in a way of their own."""
        def use(what, words, arg=None, usual="unknown option"):
            said = self.say(words, name, arg)
            if said != self.none and not said.endswith(": " + usual):
                out.append("%s %s" % (what, self.number(said)))

        def give(arg, *more):
            return [name + "=" + arg, *more]

        out = []
        right = give(RIGHT.get(value, "x")) if value else [name]
        missing = "an argument is missing" if value else "unknown option"
        use("twice", right * 2 + self.end, "x")
        if value:
            words = VALUES.get(value, WORDS)
            words = [""] + words[:None if " ".join(self.words) in ALL else 1]
            said = [self.say(give(v, "--nope"), name, v) for v in words]
            if any(not text.endswith("--nope: unknown option") for text in said):
                out.append("values " + " ".join(map(self.number, said)))
        if bool(value) not in self.tried:
            use("missing", [name] if value else [name + "=x"], "x", missing)
            if not self.tried:
                use("half", [name[:-1] + "=x", "--nope"], "x")
            self.tried.add(bool(value))
        if short:
            use("short", ["-" + short] if value else ["-" + short + "Z"], None, missing)
            if value:
                use("and", ["-" + short + "7x", "--nope"], "7x")
        return ", ".join(out)

    def print(self):
        self.tried = set()
        self.end = ["--nope"] if self.words[0] in NEEDS_NONE else []
        first = ["--arch=gfx1100"] if self.words[0] == "detect" else []
        operands = [self.say(first + words) for words in (
            self.end, ["none1"], ["none%d" % i for i in range(6)], ["--", "--nope", ""])]
        self.none = operands[0]
        print("%s: operands: none %s, one %s, six %s, -- %s" % (" ".join(self.words), *map(self.number, operands)), end="")
        unknown = {self.say(words) for words in (["-Z"], ["--no=pe"], ["x", "--nope"])}
        print("".join(", unknown " + self.number(said) for said in unknown if not said.endswith(": unknown option")))
        same = collections.defaultdict(list)
        for row in self.rows():
            same[self.of_option(*row)].append(row[1])
        rows = "; ".join(" ".join(names) + ": " + text for text, names in same.items() if text)
        for line in textwrap.wrap(rows, 110, break_on_hyphens=False):
            print("  " + line)


if __name__ == "__main__":
    for command in sys.argv[1:]:
        Command(command.split()).print()
    for i, message in enumerate(Command.messages):
        print("%4d  %s" % (i + 1, message))
