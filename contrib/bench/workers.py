"""Processes that use the mount while contrib/bench/churn changes the archives under it.

Archives may be absent or in the middle of a write for a while; counters are odd for that time.  A
failure counts as an error unless its counter was odd, or has changed since.
"""
import ctypes, errno, json, mmap, multiprocessing, os, random, signal, time, traceback

from generations import HEAD, MAGIC, PAGE, SHARED, Wrong, compare, parse

MOST_HELD = 12


class Shared:
    """Numbers that the processes share."""

    def __init__(self, packs, workers):
        array = multiprocessing.RawArray
        self.absent = array(ctypes.c_uint64, packs)  # odd: may be absent
        self.dirty = array(ctypes.c_uint64, packs)  # odd: being changed in place
        self.newest = multiprocessing.RawValue(ctypes.c_uint64, 0)
        self.resting = multiprocessing.RawValue(ctypes.c_bool, False)
        self.ending = multiprocessing.RawValue(ctypes.c_bool, False)
        self.at_rest = array(ctypes.c_bool, workers)
        self.alive = array(ctypes.c_double, workers)
        self.done = array(ctypes.c_uint64, workers)
        self.failures = multiprocessing.SimpleQueue()


class Excuse:
    """The counters of a pack when an action begins."""

    def __init__(self, shared, pack):
        self.shared, self.pack = shared, pack
        self.absent, self.dirty = shared.absent[pack], shared.dirty[pack]

    def holds(self, error):
        def excused(then, now):
            return then % 2 == 1 or then != now

        if error == errno.ENOENT:
            return excused(self.absent, self.shared.absent[self.pack])
        return error == errno.EIO and excused(self.dirty, self.shared.dirty[self.pack])


class Held:
    """An open file, which must show one generation from beginning to end."""

    def __init__(self, root, path):
        self.path, self.fd = path, os.open(os.path.join(root, path), os.O_RDONLY)
        self.size = os.fstat(self.fd).st_size
        self.generation = None

    def read(self, offset, length):
        """Compare LENGTH bytes at OFFSET; returns how many were read."""
        # the last page may be too short for a head
        page = min(offset, self.size - HEAD.size) // PAGE
        head = self.pread(page * PAGE, min(32, self.size - page * PAGE))
        generation = parse(self.path, head, page, self.size)
        if self.generation not in (None, generation):
            raise Wrong("%s: generation %d, then %d" % (self.path, self.generation, generation))
        self.generation = generation
        data = self.pread(offset, min(length, self.size - offset))
        compare(self.path, generation, self.size, offset, data)
        return len(data)

    def pread(self, offset, length):
        """Read LENGTH bytes; if fewer come, read again to get the error."""
        data = b""
        while len(data) < length:
            more = os.pread(self.fd, length - len(data), offset + len(data))
            if not more:
                raise Wrong("%s: ends at %d of %d" % (self.path, offset + len(data), self.size))
            data += more
        return data

    def read_all(self, piece):
        at = 0
        while at < self.size:
            at += self.read(at, piece)
        if os.pread(self.fd, 1, self.size):
            raise Wrong("%s: more than its %d bytes" % (self.path, self.size))

    def close(self):
        os.close(self.fd)


class Worker:
    def __init__(self, root, packs, shared, number, seed):
        self.root, self.packs, self.shared, self.number = root, packs, shared, number
        self.rng = random.Random("%d %s %d" % (seed, type(self).__name__, number))

    def run(self):
        """Run the process until the end, or the first failure."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        parent = os.getppid()
        try:
            while not self.shared.ending.value and os.getppid() == parent:
                self.shared.alive[self.number] = time.monotonic()
                if self.shared.resting.value:
                    self.rest()
                    continue
                self.shared.at_rest[self.number] = False
                self.step()
                self.shared.done[self.number] += 1
            self.let_go()
        except Exception as e:
            text = str(e) if isinstance(e, (Wrong, OSError)) else traceback.format_exc()
            self.shared.failures.put("%s %d: %s" % (type(self).__name__, self.number, text))
        os._exit(0)

    def rest(self):
        self.let_go()
        self.shared.at_rest[self.number] = True
        time.sleep(0.05)
        if not self.shared.resting.value:
            self.shared.at_rest[self.number] = False

    def let_go(self):
        """Close everything."""

    def any_path(self):
        """The number of a pack, and one of its files."""
        pack = self.rng.randrange(len(self.packs))
        return pack, self.rng.choice(self.packs[pack].paths)

    def excusing(self, pack, act):
        """ACT(); None if it failed for a known reason."""
        excuse = Excuse(self.shared, pack)
        try:
            return act()
        except OSError as e:
            if not excuse.holds(e.errno):
                raise
            return None


class Reader(Worker):
    """Reads whole files, random pieces, files held open over their replacement, and names to come."""

    def __init__(self, *args):
        super().__init__(*args)
        self.held = []  # (excuse at its opening, file)

    def step(self):
        self.rng.choice([self.whole, self.hold, self.look_again, self.look_again, self.early,
                         self.contested])()

    def with_file(self, path, use):
        f = Held(self.root, path)
        try:
            use(f)
        finally:
            f.close()

    def whole(self):
        pack, path = self.any_path()
        piece = self.rng.choice([PAGE, 10000, 1 << 17, 1 << 20])
        self.excusing(pack, lambda: self.with_file(path, lambda f: f.read_all(piece)))

    def hold(self):
        pack, path = self.any_path()
        excuse = Excuse(self.shared, pack)
        f = self.excusing(pack, lambda: Held(self.root, path))
        if f:
            self.held.append((excuse, f))
        if len(self.held) > MOST_HELD:
            self.held.pop(self.rng.randrange(len(self.held)))[1].close()

    def look_again(self):
        if not self.held:
            return
        excuse, f = self.rng.choice(self.held)
        try:
            if f.size:
                f.read(self.rng.randrange(f.size), self.rng.randint(1, 300000))
        except OSError as e:
            # the file is open: that its archive is gone is no excuse
            if e.errno != errno.EIO or not excuse.holds(e.errno):
                raise

    def early(self):
        """Look for a file of a generation that may not exist yet; its absence gets cached."""
        pack = self.packs[self.rng.randrange(len(self.packs))]
        path = pack.extra(self.shared.newest.value + self.rng.randrange(3))
        try:
            self.with_file(path, lambda f: f.read_all(PAGE))
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.EIO):
                raise

    def contested(self):
        """Read the file that all packs have."""
        try:
            self.with_file(SHARED, lambda f: f.read_all(1 << 16))
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.EIO):
                raise

    def let_go(self):
        for _, f in self.held:
            f.close()
        self.held = []


class Mapper(Worker):
    """Maps files, waits, and compares; in a child, which EIO ends with SIGBUS."""

    def step(self):
        pack, path = self.any_path()
        excuse = Excuse(self.shared, pack)
        how = self.rng.random()
        child = os.fork()
        if child == 0:
            self.child(path, how)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        error = errno.EIO if code == -signal.SIGBUS else code
        if error and error != 255 and not excuse.holds(error):
            raise Wrong("%s: mapped: %s" % (path, os.strerror(error) if error > 0 else "signal"))
        if error == 255:
            raise Wrong("%s: see above" % path)

    def child(self, path, how):
        code = 0
        try:
            self.map(path, how)
        except OSError as e:
            code = e.errno
        except Exception as e:
            self.shared.failures.put("Mapper %d: %s" % (self.number, e))
            code = 255
        os._exit(code)

    def map(self, path, how):
        fd = os.open(os.path.join(self.root, path), os.O_RDONLY)
        size = os.fstat(fd).st_size
        if size == 0:
            return
        private = how < 0.5
        m = mmap.mmap(fd, size, mmap.MAP_PRIVATE if private else mmap.MAP_SHARED,
                      mmap.PROT_READ | (mmap.PROT_WRITE if private else 0))
        os.close(fd)
        generation = parse(path, m[:32], 0, size)
        self.wait(how % 0.5 * 4)
        if private and size > 2 * PAGE:
            m[PAGE] = 255  # a private mapping: no other process sees it
            m[PAGE] = MAGIC[0]
        compare(path, generation, size, 0, m[:])

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.shared.resting.value:
            time.sleep(0.02)


class Lister(Worker):
    """Lists all directories and gets the attributes of their entries."""

    def step(self):
        for number, pack in enumerate(self.packs):
            self.excusing(number, lambda: self.one(number, pack))
        time.sleep(0.01)

    def one(self, number, pack):
        excuse = Excuse(self.shared, number)
        with os.scandir(os.path.join(self.root, pack.directory)) as directory:
            entries = list(directory)
        names = [e.name for e in entries]
        if len(set(names)) != len(names):
            raise Wrong("%s: a name twice: %s" % (pack.directory, sorted(names)))
        for e in entries:
            if not e.is_file(follow_symlinks=False):
                raise Wrong("%s: no file" % e.path)
        missing = [p for p in pack.paths if os.path.basename(p) not in names]
        if missing and not excuse.holds(errno.ENOENT):
            raise Wrong("%s: not listed" % missing[0])
        for path in pack.paths:
            os.stat(os.path.join(self.root, path))


class Asker(Worker):
    """Reads the mount's own files, in .kpackfs."""
    NAMES = ["stats", "metrics", "archives", "missing", "status"]

    def __init__(self, *args):
        super().__init__(*args)
        directory = os.path.join(self.root, ".kpackfs")
        self.paths = [os.path.join(directory, n) for n in self.NAMES
                      if os.path.exists(os.path.join(directory, n))]

    def step(self):
        path = self.rng.choice(self.paths)
        with open(path, encoding="utf-8") as f:
            size, text = os.fstat(f.fileno()).st_size, f.read()
        if len(text.encode()) != size:
            raise Wrong("%s: %d of %d bytes" % (path, len(text.encode()), size))
        if path.endswith("stats"):
            json.loads(text)
        if path.endswith("jsonl"):
            for line in text.splitlines():
                json.loads(line)
        time.sleep(self.rng.random() * 0.1)
