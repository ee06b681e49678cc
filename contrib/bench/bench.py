"""Shared by the scripts of this directory: inputs, timing, medians, the table."""
import ctypes, glob, json, mmap, os, platform, resource, shutil, statistics, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.environ.get("KPACK_BENCH_WORK", os.path.join(ROOT, "build", "bench"))
BIN = os.environ.get("KPACK_BIN", os.path.join(ROOT, "build", "release"))
RUNS = int(os.environ.get("KPACK_BENCH_RUNS", "5"))
KPACK, KPACKFS = os.path.join(BIN, "kpack"), os.path.join(BIN, "kpackfs")


def install(group):
    """The missing packages of a group of contrib/install-deps."""
    subprocess.check_call([os.path.join(ROOT, "contrib", "install-deps"), group],
                          stdout=subprocess.DEVNULL)


def build():
    """Build the release programs, and this directory's small ones; nothing with KPACK_BIN."""
    if "KPACK_BIN" not in os.environ:
        subprocess.check_call(["make", "-s", "-C", ROOT, "-j%d" % os.cpu_count(), "MODE=release",
                               "all", "bench-programs"])
    os.makedirs(WORK, exist_ok=True)


def program(name):
    return os.path.join(BIN, "contrib", "bench", name)


def input_file(name):
    """A file below the first argument, KPACK_BENCH_INPUTS, or fetched into build/bench."""
    where = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("KPACK_BENCH_INPUTS")
    if not where:
        where = os.path.join(WORK, "inputs")
        subprocess.check_call([os.path.join(ROOT, "contrib", "install-deps"), "--inputs", where,
                               "--big"], stdout=subprocess.DEVNULL)
    for directory, _, files in os.walk(where):
        if name in files:
            return os.path.join(directory, name)
    sys.exit("%s: has no %s" % (where, name))


def run(*argv, **kwargs):
    """Run a program: (seconds, peak RSS in MiB, CPU seconds, minor faults).  A failure ends the benchmark."""
    start = time.monotonic()
    child = subprocess.Popen(argv, stdout=kwargs.pop("stdout", subprocess.DEVNULL), **kwargs)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit("%s: exit %d" % (" ".join(argv), child.returncode))
    return wall, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, usage.ru_minflt


def output(*argv):
    """The standard output of a program, as lines."""
    return subprocess.check_output(argv, text=True).splitlines()


def interleaved(measures, runs=RUNS):
    """Call each of {name: function} once per round; {name: [result, ...]}."""
    results = {name: [] for name in measures}
    for _ in range(runs):
        for name, measure in measures.items():
            results[name].append(measure())
    return results


def median(values):
    return statistics.median(values)


def spread(values):
    return "%.3g–%.3g" % (min(values), max(values))


def empty(name):
    """An empty directory build/bench/NAME."""
    path = os.path.join(WORK, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def warm(*paths):
    """Read into the page cache."""
    for path in paths:
        with open(path, "rb") as f:
            while f.read(1 << 22):
                pass


def drop_caches():
    subprocess.check_call(["sync"])
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3\n")


def status_of(pid, field):
    """A field of /proc/PID/status in MiB; 0 if it is missing."""
    try:
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0


def cpu_of(pid):
    """CPU seconds of a process and its threads: the kernel's number of its clock, in nanoseconds, not ticks."""
    return time.clock_gettime(~pid << 3 | 2)


def faults_of(pid):
    """Minor faults of a process and its threads."""
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rpartition(")")[2].split()[7])


def children_of(pid):
    children = []
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        with open(path) as f:
            children += [int(child) for child in f.read().split()]
    return children


class Daemon:
    """A program that mounts, run in the foreground, so that its processes can be observed.

    `with Daemon(argv, where) as d`: d.path, d.pids(), the first process first.  HOW: as for
    Popen.
    """

    def __init__(self, argv, where=None, **how):
        self.argv, self.how = argv, how
        self.path = where or os.path.join(WORK, "mnt")
        os.makedirs(self.path, exist_ok=True)

    def __enter__(self):
        self.child = subprocess.Popen([*self.argv, self.path], **self.how)
        device = os.stat(os.path.dirname(self.path)).st_dev
        while os.stat(self.path).st_dev == device:
            if self.child.poll() is not None:
                sys.exit("%s: exit %d" % (self.argv[0], self.child.returncode))
            time.sleep(0.0002)
        return self

    def pids(self):
        return [self.child.pid, *children_of(self.child.pid)]

    def server(self):
        """The process that answers requests: the child, if there are two processes."""
        return self.pids()[-1]

    def status(self, field):
        return status_of(self.server(), field)

    def cpu(self):
        return sum(cpu_of(pid) for pid in self.pids())

    def peaks(self):
        """Peak memory in MiB of the server, then of its parent process if it has one."""
        return [status_of(pid, "VmHWM") for pid in reversed(self.pids())]

    def unmount(self, *how):
        program = ["umount", *how] if os.geteuid() == 0 else ["fusermount3", "-u", *how]
        return subprocess.call([*program, self.path]) == 0

    def __exit__(self, *_):
        try:
            if not self.unmount():
                sys.exit("%s: cannot be unmounted" % self.path)
            self.child.wait(600)
        except subprocess.TimeoutExpired:
            sys.exit("%s: unmounted, and does not end" % self.argv[0])
        finally:
            if self.child.poll() is None:
                self.child.kill()
                self.unmount("-l" if os.geteuid() == 0 else "-z")


class Mount(Daemon):
    """A kpackfs mount: `with Mount(sources) as m`; OPTIONS are those of -o."""

    def __init__(self, *sources, options=None, before=()):
        super().__init__([*before, KPACKFS, "-f", *(["-o", options] if options else []), *sources])

    def stats(self):
        """The current .kpackfs/stats."""
        with open(os.path.join(self.path, ".kpackfs", "stats")) as f:
            return json.load(f)


def touch_free_memory():
    """A virtual machine's host may have taken it back, and gives it back slowly."""
    with open("/proc/meminfo") as f:
        free = next(int(line.split()[1]) << 10 for line in f if line.startswith("MemFree"))
    size = min(2 << 30, free // 2)
    with mmap.mmap(-1, size) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        at = ctypes.c_char.from_buffer(memory)
        ctypes.memset(ctypes.addressof(at), 1, size)
        del at


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), "?")
    return "%d × %s, Linux %s, %s" % (os.cpu_count(), model, platform.release().split("-")[0],
                                      time.strftime("%Y-%m-%d"))


def table(title, rows, how="interleaved", columns=("what", "ours", "peer", "ratio")):
    """Print ROWS, of texts; with KPACK_BENCH_RESULTS=FILE also keep them there, for contrib/bench/all.

    HOW: the order of our rounds and the peer's.
    """
    new = {"title": title, "machine": "%s, load %.0f" % (machine(), os.getloadavg()[0]),
           "how": "median of %d, %s" % (RUNS, how), "columns": columns, "rows": rows}
    print("\n".join(markdown(new)))
    path = os.environ.get("KPACK_BENCH_RESULTS")
    if path:
        with open(path, "a") as f:
            f.write(json.dumps(new) + "\n")


def markdown(t):
    """A table as the lines of its section."""
    lines = ["", "### " + t["title"]]
    head = ["on " + t["machine"] + "; " + t["how"], *t["columns"][1:]]
    for row in [head, ["---"] * len(head), *t["rows"]]:
        lines.append("| " + " | ".join(row) + " |")
    return lines


def peak_rss_self():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
