"""The changes that contrib/bench/churn makes to archives under the mount, and the expected view.

Three sources: a directory `one` of archives that come, go and are replaced; a symbolic link that
leads to directory `a` or `b`, each with its own archive of the same name; and a single archive, by
its own name.
"""
import collections, os, random, signal, time

from generations import HEAD, Pack, Wrong, parse

IN_ONE = 5
PACKS = IN_ONE + 2


class Changer:
    """Makes one change after another; the tables at the end list the changes."""

    def __init__(self, work, shared, seed, patience):
        self.work, self.shared, self.patience = work, shared, patience
        self.rng = random.Random("%d changes" % seed)
        self.packs = [Pack("pack%02d" % i, huge=i == 0) for i in range(IN_ONE)]
        self.packs += [Pack("linked"), Pack("alone")]
        self.linked, self.alone = IN_ONE, IN_ONE + 1
        self.shown = {}  # pack's number: generation; no key: the pack does not exist
        self.other = {}  # generation of the linked pack in a and b
        self.counts = {}
        self.latest = collections.deque(maxlen=15)  # the latest changes, to debug a failure
        self.generation = 0
        self.at = "a"

    # Places and bytes.

    def place(self, *names):
        return os.path.join(self.work, *names)

    def file_of(self, number):
        name = self.packs[number].name + ".kpack"
        if number == self.linked:
            return self.place("link", name)
        return self.place("alone.kpack") if number == self.alone else self.place("one", name)

    def sources(self):
        return [self.place("one"), self.place("link"), self.place("alone.kpack")]

    def next_bytes(self, number):
        self.generation += 1
        data = self.packs[number].bytes(self.generation)
        self.shared.newest.value = self.generation
        self.latest.append("%s has a generation %d" % (self.packs[number].name, self.generation))
        return data, self.generation

    def put(self, path, data):
        """Put DATA at PATH atomically, as a packer does."""
        new = os.path.join(os.path.dirname(path), ".new-%d" % self.rng.getrandbits(32))
        with open(new, "wb") as f:
            f.write(data)
        os.rename(new, path)

    def begin(self):
        """Create the archives that exist at the time of mounting."""
        for name in ("one", "a", "b"):
            os.makedirs(self.place(name))
        os.symlink("a", self.place("link"))
        for number in range(len(self.packs)):
            if number != self.linked:
                data, self.shown[number] = self.next_bytes(number)
                self.put(self.file_of(number), data)
        for name in ("a", "b"):
            data, self.other[name] = self.next_bytes(self.linked)
            self.put(self.place(name, self.packs[self.linked].name + ".kpack"), data)
        self.shown[self.linked] = self.other["a"]

    # The states that readers may see meanwhile.

    def gone(self, number):
        """From now on the pack may be absent."""
        self.latest.append("%s may be absent" % self.packs[number].name)
        self.shared.absent[number] |= 1

    def soiled(self, number):
        """From now on reading the pack may fail."""
        self.latest.append("%s is changed in place" % self.packs[number].name)
        self.shared.dirty[number] |= 1

    def clean(self):
        """The mount shows the current state: existing packs must be shown, and be readable."""
        self.latest.append("all was shown as it is")
        for number in self.shown:
            for counter in (self.shared.absent, self.shared.dirty):
                counter[number] += counter[number] % 2

    # Changes.

    def present(self):
        return [n for n in self.shown if n < IN_ONE]

    def any_present(self):
        return self.rng.choice([*self.present(), self.alone])

    def replace(self):
        number = self.any_present()
        data, generation = self.next_bytes(number)
        self.put(self.file_of(number), data)
        self.shown[number] = generation

    def storm(self):
        """Many replacements at once."""
        number = self.any_present()
        versions = [self.next_bytes(number) for _ in range(3)]
        for i in range(60):
            data, self.shown[number] = versions[i % 3]
            self.put(self.file_of(number), data)

    def remove(self):
        number = self.rng.choice(self.present() or [0])
        if number not in self.shown:
            return
        self.gone(number)
        del self.shown[number]
        os.unlink(self.file_of(number))

    def any_absent(self):
        return self.rng.choice([n for n in range(IN_ONE) if n not in self.shown] or [None])

    def add(self):
        number = self.any_absent()
        if number is not None:
            data, generation = self.next_bytes(number)
            self.put(self.file_of(number), data)
            self.shown[number] = generation

    def grow(self, path, data):
        """Write DATA piece by piece."""
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            at = 0
            while at < len(data):
                n = self.rng.randint(1, len(data))
                f.write(data[at:at + n])
                f.flush()
                at += n
                time.sleep(self.rng.random() * 0.03)
            f.truncate(len(data))

    def half(self):
        """Write an archive in place, visible to all while it grows."""
        number = self.any_absent()
        if number is None:
            return
        data, generation = self.next_bytes(number)
        path = self.file_of(number)
        self.grow(path, data[:self.rng.randrange(len(data))])
        if self.rng.random() < 0.3:
            self.settle()  # it is not an archive yet
        if self.rng.random() < 0.5:
            os.unlink(path)
            return
        self.grow(path, data)
        self.shown[number] = generation

    def rewrite(self):
        """Write other bytes into the same file: truncated first, as by cp, or not, as by rsync --inplace."""
        number = self.any_present()
        self.gone(number)
        self.soiled(number)
        data, generation = self.next_bytes(number)
        if self.rng.random() < 0.5:
            os.truncate(self.file_of(number), 0)
        self.grow(self.file_of(number), data)
        self.shown[number] = generation

    def spoil(self):
        """Write wrong bytes into the same file, so that it cannot be opened; then a new file.

        If it could be reopened, it would count as a good archive until its checksums fail, which
        is after the first bytes of a large file have been handed over.
        """
        number = self.any_present()
        self.gone(number)
        self.soiled(number)
        with open(self.file_of(number), "r+b") as f:
            size = os.fstat(f.fileno()).st_size - 1
            f.truncate(size)
            for _ in range(20):
                f.seek(self.rng.randrange(64, size))
                f.write(self.rng.randbytes(8))
        time.sleep(self.rng.random() * 0.5)
        data, generation = self.next_bytes(number)
        self.put(self.file_of(number), data)
        self.shown[number] = generation

    def touch(self):
        number = self.any_present()
        self.soiled(number)
        os.utime(self.file_of(number))

    def flip(self):
        self.at = "b" if self.at == "a" else "a"
        new = self.place("link.new")
        os.symlink(self.at, new)
        os.rename(new, self.place("link"))
        self.shown[self.linked] = self.other[self.at]

    def beside(self):
        """Replace the archive that the link leads to, or the other one."""
        name = self.rng.choice("ab")
        data, self.other[name] = self.next_bytes(self.linked)
        self.put(self.place(name, self.packs[self.linked].name + ".kpack"), data)
        self.shown[self.linked] = self.other[self.at]

    def move(self):
        """Put another directory with other archives under the same name."""
        for number in self.present():
            self.gone(number)
        os.mkdir(self.place("two"))
        for number in self.present():
            data, generation = self.next_bytes(number)
            self.put(self.place("two", self.packs[number].name + ".kpack"), data)
            self.shown[number] = generation
        os.rename(self.place("one"), self.place("old"))
        time.sleep(self.rng.random() * 0.05)
        os.rename(self.place("two"), self.place("one"))
        for name in os.listdir(self.place("old")):
            os.unlink(self.place("old", name))
        os.rmdir(self.place("old"))

    def hangup(self):
        os.kill(self.daemon.child.pid, signal.SIGHUP)

    def forget(self, what=2):
        """Drop the kernel's caches: 1 pages, 2 inodes, 3 both.  Needs root."""
        try:
            with open("/proc/sys/vm/drop_caches", "w") as f:
                f.write("%d\n" % what)
        except PermissionError:
            pass

    def drop(self):
        self.forget(self.rng.choice([1, 2, 3]))

    def nothing(self):
        pass

    ALWAYS = [("drop", 2), ("nothing", 2)]
    CHANGES = [("replace", 10), ("storm", 1), ("remove", 3), ("add", 5), ("half", 3), ("rewrite", 3),
               ("spoil", 2), ("touch", 2), ("flip", 3), ("beside", 3), ("move", 1), ("hangup", 1)]

    def step(self, replacing):
        """Make one change, and sometimes check that the mount shows it."""
        table = self.ALWAYS + (self.CHANGES if replacing else [])
        name, = self.rng.choices([n for n, _ in table], [w for _, w in table])
        self.latest.append("%.2f: %s" % (time.monotonic() % 1000, name))
        getattr(self, name)()
        self.counts[name] = self.counts.get(name, 0) + 1
        if self.rng.random() < 0.35:
            self.settle()
        time.sleep(self.rng.random() * 0.15)

    # The state that the mount must show after the changes.

    def settle(self):
        """Wait until the mount shows the current state."""
        end = time.monotonic() + self.patience
        while True:
            problem = self.problem()
            if not problem:
                break
            if self.daemon.child.poll() is not None:
                raise Wrong("the daemon ended")
            if time.monotonic() > end:
                raise Wrong("not shown after %d s: %s" % (self.patience, problem))
            time.sleep(0.02)
        self.clean()

    def problem(self):
        for number, pack in enumerate(self.packs):
            try:
                problem = self.problem_of(number, pack, self.shown.get(number))
            except OSError as e:
                problem = str(e)
            if problem:
                return problem
        return None

    def problem_of(self, number, pack, generation):
        directory = os.path.join(self.daemon.path, pack.directory)
        if generation is None:
            return "%s is there" % directory if os.path.exists(directory) else None
        wanted = {os.path.basename(p) for p in [*pack.paths, pack.extra(generation)]}
        there = set(os.listdir(directory))
        if there != wanted:
            return "%s: %s" % (directory, sorted(there ^ wanted))
        for path in [*pack.paths, pack.extra(generation)]:
            seen = self.generation_of(path)
            if seen not in (None, generation):
                return "%s: generation %d, not %d" % (path, seen, generation)
        return self.problem_of_time(number, pack)

    def problem_of_time(self, number, pack):
        """Bytes and names may still be the kernel's: the time is new when the archive was opened again."""
        seen = os.stat(os.path.join(self.daemon.path, pack.paths[-1])).st_mtime_ns
        wanted = os.stat(self.file_of(number)).st_mtime_ns
        return None if seen == wanted else "%s: time %d, not %d" % (pack.paths[-1], seen, wanted)

    def generation_of(self, path):
        """The generation of a file that is read whole; None if it is empty."""
        with open(os.path.join(self.daemon.path, path), "rb", buffering=0) as f:
            size = os.fstat(f.fileno()).st_size
            head = f.read(HEAD.size)
            while f.read(1 << 20):
                pass
        return parse(path, head, 0, size) if size else None
