"""What the scripts of this directory share: inputs, timing, medians, the table."""
import os, platform, resource, shutil, statistics, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "build", "bench")
BIN = os.environ.get("KPACK_BIN", os.path.join(ROOT, "build", "release"))
RUNS = int(os.environ.get("KPACK_BENCH_RUNS", "5"))
KPACK, KPACKFS = os.path.join(BIN, "kpack"), os.path.join(BIN, "kpackfs")


def build():
    """The release programs, and the small ones of this directory."""
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
    sys.exit("%s: no %s below it" % (where, name))


def run(*argv, **kwargs):
    """Run to the end: (seconds, peak RSS in MiB, CPU seconds).  A failure ends the benchmark."""
    start = time.monotonic()
    child = subprocess.Popen(argv, stdout=kwargs.pop("stdout", subprocess.DEVNULL), **kwargs)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit("%s: exit %d" % (" ".join(argv), child.returncode))
    return wall, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def output(*argv):
    """Standard output of a program, as lines."""
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
    """Into the page cache."""
    for path in paths:
        with open(path, "rb") as f:
            while f.read(1 << 22):
                pass


def drop_caches():
    subprocess.check_call(["sync"])
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3\n")


class Mount:
    """A kpackfs mount: `with Mount(sources) as m`: m.path, m.pid(), m.status("VmRSS")."""

    def __init__(self, *sources):
        self.sources = sources
        self.path = os.path.join(WORK, "mnt")
        os.makedirs(self.path, exist_ok=True)

    def __enter__(self):
        # in the foreground: the daemon's pid is then ours to read
        self.child = subprocess.Popen([KPACKFS, "-f", *self.sources, self.path])
        device = os.stat(WORK).st_dev
        while os.stat(self.path).st_dev == device:
            if self.child.poll() is not None:
                sys.exit("kpackfs: exit %d" % self.child.returncode)
            time.sleep(0.0002)
        return self

    def status(self, field):
        """A field of /proc/PID/status in MiB."""
        with open("/proc/%d/status" % self.child.pid) as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) / 1024
        return 0

    def __exit__(self, *_):
        subprocess.check_call(["umount", self.path])
        self.child.wait()


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), "?")
    return "%d × %s, Linux %s, %s" % (os.cpu_count(), model, platform.release(),
                                      time.strftime("%Y-%m-%d"))


def table(title, rows, how="interleaved"):
    """rows: (what, value, peer, ratio or remark).  HOW the rounds of ours and the peer were taken."""
    print("\n### %s\n\n%s; median of %d, %s\n" % (title, machine(), RUNS, how))
    print("| what | ours | peer | ratio |\n| --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def peak_rss_self():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
