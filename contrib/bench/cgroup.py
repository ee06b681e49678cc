"""A memory cgroup with a limit, version 1 or 2, if one can be made."""
import os, time

V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"


def read(path, default=""):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return default


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


class Cgroup:
    """`with Cgroup(limit, name) as g`: g.before starts a program in it.  None: no limit, or no cgroup."""

    def __init__(self, limit, name):
        self.limit, self.name, self.path = limit, "%s-%d" % (name, os.getpid()), None

    def make(self):
        if not self.limit:
            return False
        if os.path.exists(os.path.join(V1, "memory.limit_in_bytes")):
            self.path = os.path.join(V1, self.name)
            os.mkdir(self.path)
            write(os.path.join(self.path, "memory.limit_in_bytes"), str(self.limit))
        elif "memory" in read(os.path.join(V2, "cgroup.controllers")):
            write(os.path.join(V2, "cgroup.subtree_control"), "+memory")
            self.path = os.path.join(V2, self.name)
            os.mkdir(self.path)
            write(os.path.join(self.path, "memory.max"), str(self.limit))
        return self.path is not None

    def __enter__(self):
        try:
            return self if self.make() else None
        except OSError:
            return None

    @property
    def before(self):
        """The words to put before a command."""
        return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.path]

    def kills(self):
        """The number of processes that were killed for lack of memory."""
        text = read(os.path.join(self.path, "memory.oom_control"))
        text += read(os.path.join(self.path, "memory.events"))
        return sum(int(line.split()[1]) for line in text.splitlines()
                   if line.startswith("oom_kill "))

    def __exit__(self, *_):
        # the last process may still be leaving it
        for _ in range(200):
            try:
                if self.path:
                    os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.01)
