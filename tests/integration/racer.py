# SPDX-License-Identifier: MIT
"""Run a command again and again, as root, on trees that belong to an ordinary user.

Each time the kernel stops it (seccomp) before a call that names a file of theirs, where the user exchanges
this file, or a directory above it, for something hostile; then it goes on.  Afterwards nothing of root's may
have changed, nor be readable to the user.

DIR/fixture  is copied to DIR/work before each run: home, which has the trees, and aside, which is empty;
             all of it belongs to the user
DIR/pristine is copied to DIR/canary: a tree of root's with the same names

A fault is a line: scene; place, which says where the exchanged path is with respect to the paths in the
command: below, operand, above, or beside (planted: before the run); attack; step; call; path; and what is
wrong: "changed", "touched" (only the time of the last change), "readable", "opened", "hangs" and so on.
"""
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys

USER = 1000  # who attacks
LIBC = ctypes.CDLL(None, use_errno=True)


def syscall(number, *args):
    result = LIBC.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


@contextlib.contextmanager
def as_user(user, then=0):
    """With this, files are made and exchanged by USER."""
    LIBC.setfsgid(user)
    LIBC.setfsuid(user)
    try:
        yield
    finally:
        LIBC.setfsgid(then)
        LIBC.setfsuid(then)


def as_root():
    """And this is what root did before."""
    return as_user(0, USER)


# --- calls ---------------------------------------------------------------------------------

# The arguments, a directory and a path below it, of the calls that name files; those that another architecture or
# an older kernel lacks are left out, and what this machine's headers do not know has the same number everywhere.
NEWER = {"openat2": 437, "faccessat2": 439, "fchmodat2": 452, "setxattrat": 463, "getxattrat": 464, "listxattrat": 465,
         "removexattrat": 466}
NAMES = {((0, 1),): "openat unlinkat mkdirat mknodat fchmodat fchownat utimensat readlinkat statx faccessat name_to_handle_at "
                    "newfstatat futimesat " + " ".join(NEWER),
         ((0, 1), (2, 3)): "renameat2 linkat renameat",
         ((1, 2),): "symlinkat",
         ((None, 0),): "truncate chdir statfs setxattr lsetxattr getxattr lgetxattr listxattr llistxattr removexattr lremovexattr "
                       "open creat unlink mkdir rmdir chmod chown lchown mknod readlink stat lstat access utime utimes",
         ((None, 1),): "inotify_add_watch symlink",
         ((None, 0), (None, 1)): "rename link"}
FLUSHES = "fsync fdatasync syncfs sync".split()  # these wait for the disk, and need not: no test cuts the power
# what changes open files, and which argument is the file that is written
CHANGES = {"write": 0, "writev": 0, "pwrite64": 0, "pwritev": 0, "sendfile": 0, "copy_file_range": 2,
           "ftruncate": None, "fchmod": None, "fchown": None, "fsetxattr": None}


def numbers():
    out = subprocess.run(["cc", "-dM", "-E", "-include", "sys/syscall.h", "-"], check=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, text=True).stdout
    found = {w[1][5:]: int(w[2]) for w in map(str.split, out.splitlines()) if w[1].startswith("__NR_") and w[2].isdigit()}
    return {**found, **NEWER}


NUMBER = numbers()
CALLS = {NUMBER[name]: (name, arguments) for arguments, names in NAMES.items() for name in names.split() if name in NUMBER}
WRITES = {NUMBER[name]: argument for name, argument in CHANGES.items() if name in NUMBER}
ERRNO, NOTIFY, ALLOW = 0x50000, 0x7fc00000, 0x7fff0000
RECEIVE, SEND = 0xc0502100, 0xc0182101
LISTENER = 99  # the child's descriptor


def install_filter(named, every):
    """NAMED: as on a file system without nameless files; EVERY: stop at changes of open files, too."""
    load = (0x20, 0, 0, 0)
    code = [load]

    def answer(number, what):
        code.extend([(0x15, 0, 1, number), (0x6, 0, 0, what)])
    if named:
        code.extend([(0x15, 0, 4, NUMBER["openat"]), (0x20, 0, 0, 32 + 4 * (sys.byteorder == "big")),
                     (0x45, 0, 1, os.O_TMPFILE & ~os.O_DIRECTORY), (0x6, 0, 0, ERRNO | errno.EOPNOTSUPP), load])
    for name in FLUSHES:
        answer(NUMBER[name], ERRNO)
    for number in [*(WRITES if every else ()), *CALLS]:
        answer(number, NOTIFY)
    code.append((0x6, 0, 0, ALLOW))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text)))
    return syscall(NUMBER["seccomp"], 1, 8, program)


class Stopped:
    """A call at which the kernel has stopped a process."""

    def __init__(self, data):
        self.id, self.pid, _, self.number, _, _, *self.args = struct.unpack("QIIiIQ6Q", data)
        self.name, arguments = CALLS.get(self.number, ("", ()))
        self.paths = [self.path(d, self.args[p]) for d, p in arguments]

    def directory(self, fd):
        try:
            return os.readlink(f"/proc/{self.pid}/" + ("cwd" if fd == -100 else f"fd/{fd}"))
        except OSError:
            return ""

    def path(self, fd, address):
        """The absolute path at ADDRESS, relative to argument FD, without "." and ".."; or ""."""
        try:
            with open(f"/proc/{self.pid}/mem", "rb", 0) as f:
                f.seek(address)
                text = os.fsdecode(f.read(4095).partition(b"\0")[0]) if address else ""
        except (OSError, OverflowError):
            text = ""
        for proc in "/proc/self/fd/", "/proc/thread-self/fd/":
            if text.startswith(proc):  # "N/rest" is "rest" below an open directory; alone it names no path
                number, slash, rest = text[len(proc):].partition("/")
                text = self.directory(number) + slash + rest if slash else ""
        if text and text[0] != "/":
            directory = self.directory(-100 if fd is None else struct.unpack("i", struct.pack("I", self.args[fd] & 0xffffffff))[0])
            text = directory + "/" + text if directory[:1] == "/" else ""
        return "/" + os.path.normpath(text).lstrip("/") if text[:1] == "/" else ""


# --- attacks -------------------------------------------------------------------------------

KINDS = "link swap flip dangling hard fifo device directory away fake none cut".split()


def kind_of(path):
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "-"
    return "d" if stat.S_ISDIR(mode) else "f" if stat.S_ISREG(mode) else "l" if stat.S_ISLNK(mode) else "o"


class Area:
    def __init__(self, top):
        self.top, self.work, self.home, self.canary = top, top + "/work", top + "/work/home", top + "/canary"

    def levels(self, path):
        return path[len(self.work):].count("/")

    def above(self, path, level):
        for _ in range(level):
            path = os.path.dirname(path)
        return path

    def possible(self, path, level):
        if level + 1 > self.levels(path):
            return False
        with as_user(USER):
            try:
                syscall(NEWER["faccessat2"], -100, os.fsencode(self.above(path, level + 1)), os.W_OK | os.X_OK, 0x200)
            except OSError as e:
                return e.errno == errno.ENOSYS
        return True

    def canary_directory(self, target):
        """That of the same path; or else of the same path without the directories above, as those of staging
        are; else the nearest above."""
        same = self.canary + target[len(self.work):]
        if kind_of(same) == "d":
            return same
        names = target[len(self.work) + 1:].split("/")
        root = "/".join([self.canary, *names[:2]])
        for n in range(3, len(names) if kind_of(root) == "d" else 0):
            short = "/".join([root, *names[n:]])
            if kind_of(short) == "d":
                return short
        while kind_of(same) != "d":
            same = os.path.dirname(same)
        return same

    def canary_file(self, target):
        """The one of the same name, or else another one."""
        directory = self.canary_directory(os.path.dirname(target))
        for name in os.path.basename(target), "passwd":
            if kind_of(directory + "/" + name) == "f":
                return directory + "/" + name
        return None


class Attack:
    """KIND:LEVEL@WHICH: of which kind, how many directories above the path, and which path of the call."""
    made = 0  # files that were moved aside

    def __init__(self, kind, level=0, which=0):
        self.kind, self.level, self.which = kind, level, which

    def __str__(self):
        return f"{self.kind}:{self.level}@{self.which}"

    def sensible(self, there):
        """Whether it makes sense on what is there; nothing can be replaced, too."""
        if self.level > 0:
            return self.kind in ("link", "swap", "flip", "away", "fake")
        return {"directory": there != "d", "hard": there != "d", "dangling": there != "d", "fake": there == "d",
                "none": False, "away": there != "-"}.get(self.kind, True)


def parse_attack(text):
    text, _, which = text.partition("@")
    kind, _, level = text.partition(":")
    return Attack(KINDS[KINDS.index(kind)], int(level or 0), int(which or 0))


class Done:
    """An attack that is made on a path."""

    def __init__(self, area, attack, path):
        self.area, self.kind, self.aside, self.fifo, self.done = area, attack.kind, None, None, False
        self.target = area.above(path, attack.level)
        if attack.level > area.levels(path):
            return
        there, target = kind_of(self.target), self.target
        if self.kind == "dangling":
            self.canary = area.canary_directory(os.path.dirname(target)) + "/new-" + os.path.basename(target)
        elif self.kind in ("hard", "link", "swap", "flip"):
            self.canary = area.canary_file(target) if there != "d" else None if self.kind == "hard" else area.canary_directory(target)
            if not self.canary:
                return
        if self.kind == "away" and there == "-":
            return
        with as_user(USER):
            try:
                self.done = self.make(there) is not False
            except OSError:
                pass

    def make(self, there):
        if self.kind == "none":
            return True
        if self.kind == "cut":
            return self.cut()
        self.move_aside(there)
        if self.kind in ("link", "swap", "flip", "dangling"):
            os.symlink(self.canary, self.target)
        elif self.kind == "hard":  # where users may link the files of others
            with as_root():
                os.link(self.canary, self.target)
        elif self.kind in ("directory", "fake"):
            os.mkdir(self.target, 0o755)
            if self.kind == "fake":
                self.put_links()
        elif self.kind == "fifo":
            os.mkfifo(self.target, 0o666)
            self.fifo = os.open(self.target, os.O_RDWR)  # so that who opens it is seen, and waits for nobody
        elif self.kind == "device":  # users cannot make devices, but may have been given one
            with as_root():
                os.mknod(self.target, stat.S_IFCHR | 0o666, os.makedev(1, 3))
                os.lchown(self.target, USER, USER)
        return True

    def move_aside(self, there):
        if there == "-":
            return
        Attack.made += 1
        for aside in f"{self.area.work}/aside/{Attack.made}", self.target + ".aside":
            try:
                os.rename(self.target, aside)
                self.aside = aside
                return
            except OSError as e:  # a directory of another user's stays in its directory
                error = e
        raise error

    def put_links(self):
        """In the new directory, put a link in place of each entry of the old one."""
        with as_root():  # where only the names are to be guessed
            entries = list(os.scandir(self.aside))
        for e in entries:
            target = self.target + "/" + e.name
            canary = self.area.canary_directory(target) if e.is_dir(follow_symlinks=False) else self.area.canary_file(target)
            try:
                os.symlink(canary, target)
            except FileExistsError:
                pass
            except TypeError:
                raise OSError("no canary") from None

    def cut(self):
        """The user's own files, because others cannot be cut."""
        done = False
        for d, _, files in os.walk(self.area.home):
            for name in files:
                path = d + "/" + name
                try:
                    if kind_of(path) == "f":
                        os.truncate(path, os.lstat(path).st_size // 2)
                        done = True
                except OSError:
                    pass
        return done

    def undo(self):
        with as_user(USER):
            try:
                os.unlink(self.target)
                if self.aside:
                    os.rename(self.aside, self.target)
            except OSError:
                pass
        self.done = False


# --- what must not happen ------------------------------------------------------------------

def listing(top):
    """Each file: everything of it, and when it was changed."""
    state, times = {}, {}
    for d, dirs, files in os.walk(top):
        for path in [d + "/" + name for name in files + dirs] + ([d] if d == top else []):
            st, content = os.lstat(path), None
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    content = st.st_size, hashlib.md5(f.read()).hexdigest()
            elif stat.S_ISLNK(st.st_mode):
                content = os.readlink(path)
            attributes = [] if stat.S_ISLNK(st.st_mode) else sorted(
                (name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False))
            state[path[len(top):]] = "%o" % st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, content, attributes
            times[path[len(top):]] = st.st_ctime_ns
    return state, times


def difference(before, after):
    return " | ".join(f"{path or '.'}: {before.get(path)} -> {after.get(path)}" for path in sorted({*before, *after})
                      if before.get(path) != after.get(path))


def readable(secrets, top):
    """The first file with a secret that the user can read; or ""."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 2
        try:
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            os.write(into, os.fsencode(find_secret(secrets, top)))
            status = 0
        finally:
            os._exit(status)
    os.close(into)
    with open(out, "rb") as f:
        found = os.fsdecode(f.read())
    if os.waitpid(pid, 0)[1] != 0:
        raise ChildProcessError("the search for secrets failed")
    return found


def find_secret(secrets, top):
    for d, _, files in os.walk(top):
        for path in (d + "/" + name for name in files):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            with open(fd, "rb") as f:
                data = f.read() if stat.S_ISREG(os.fstat(fd).st_mode) else b""
            if any(s in data for s in secrets):
                return path
    return ""


def powerful(st):
    return stat.S_ISREG(st.st_mode) and (st.st_uid == 0 and st.st_mode & stat.S_ISUID or st.st_gid == 0 and st.st_mode & stat.S_ISGID)


def describe(what, path, st):
    return f"{what}: {path}, mode {stat.S_IMODE(st.st_mode):o}, owner {st.st_uid}:{st.st_gid}"


def look_at_moment(call, home, files):
    """What must hold at each moment: no file is written to that others may open, none of root's is set-user-ID."""
    def look(fd):
        name = f"/proc/{call.pid}/fd/{fd}"
        try:
            path = os.readlink(name)
            return path, os.stat(name) if path.startswith(home + "/") else None
        except OSError:
            return "", None
    if WRITES.get(call.number) is not None:
        path, st = look(call.args[WRITES[call.number]])
        # a nameless file can be opened by nobody
        if st and stat.S_ISREG(st.st_mode) and st.st_nlink and st.st_mode & 0o077:
            return describe("written to while others may open it", path, st)
    try:
        opened = [look(fd) for fd in os.listdir(f"/proc/{call.pid}/fd")]
    except OSError:
        opened = []
    below = [(d + "/" + name, os.lstat(d + "/" + name)) for d, _, names in os.walk(home) for name in names] if files else []
    for path, st in opened + below:
        if st and powerful(st):
            return describe("set-user-ID of root", path, st)
    return None


# --- a run ---------------------------------------------------------------------------------

class Run:
    """A run of COMMAND, in which STEP is called before each call that names a file below HOME, until WATCH,
    an inotify descriptor, tells something."""

    def __init__(self, command, home, step, named=False, look=None, watch=None):
        self.home, self.step, self.look, self.watch = home, step, look, watch
        messages = os.memfd_create("messages")
        self.pid = os.fork()
        if self.pid == 0:
            self.become_command(command, messages, named)
        if not os.WIFSTOPPED(os.waitpid(self.pid, os.WUNTRACED)[1]):
            raise ChildProcessError("the kernel has no seccomp listener")
        self.process = os.pidfd_open(self.pid)
        self.listener = syscall(438, self.process, LISTENER, 0)
        os.kill(self.pid, signal.SIGCONT)
        self.end = self.follow()
        if self.end != "exited":
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.listener)
        status = os.waitpid(self.pid, 0)[1]
        try:
            os.killpg(self.pid, signal.SIGKILL)  # its children
        except ProcessLookupError:
            pass
        if self.end == "exited" and os.WIFSIGNALED(status):
            self.end = "signalled"
        self.status = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        os.close(self.process)
        with open(messages, "rb") as f:
            f.seek(0)
            self.message = f.read().decode(errors="replace")

    def become_command(self, command, messages, named):
        try:
            null = os.open("/dev/null", os.O_RDWR)
            os.setsid()
            LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            os.umask(0o022)
            os.chdir("/")
            for fd, to in (null, 0), (null, 1), (messages, 2):
                os.dup2(fd, to)
            LIBC.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS: then a container allows filters
            os.dup2(install_filter(named, self.look), LISTENER, inheritable=False)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.execv(command[0], command)
        finally:
            os._exit(125)

    def follow(self):
        poll = select.poll()
        for fd in self.listener, self.process, self.watch:
            if fd is not None:
                poll.register(fd, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self.watch in ready:
                return "opened"
            if ready.get(self.listener, 0) & select.POLLIN and not self.answer():
                return "killed"
            if self.process in ready:
                return "exited"

    def answer(self):
        buffer = bytearray(80)
        try:
            fcntl.ioctl(self.listener, RECEIVE, buffer)
        except OSError:
            return True  # it was killed or interrupted
        call = Stopped(bytes(buffer))
        call.ours = [p if p.startswith(self.home + "/") else None for p in call.paths]
        if self.look:
            self.look(call, any(call.ours))
        if any(call.ours) and not self.step(call):
            return False
        try:
            fcntl.ioctl(self.listener, SEND, struct.pack("QqiI", call.id, 0, 0, 1))
        except OSError:
            pass
        return True


class Racer:
    """The attacks on a command; what they find is in LINES."""

    def __init__(self, scene, top, command, secrets, named=False, verbose=False):
        self.scene, self.area, self.command, self.secrets = scene, Area(top), command, secrets
        self.named, self.verbose, self.lines, self.events = named, verbose, [], []
        os.setgroups([])
        self.make_canaries()

    def copy(self, name, to):
        shutil.rmtree(f"{self.area.top}/{to}", ignore_errors=True)
        subprocess.run(["cp", "-a", f"{self.area.top}/{name}", f"{self.area.top}/{to}"], check=True)

    def make_canaries(self):
        self.copy("pristine", "canary")
        self.canaries, self.bad = listing(self.area.canary)[0], False

    def plainly(self, may_fail=False, kill=0, watch=False):
        """Run without an attack, until call KILL if that is not 0: the calls go to events."""
        watched = []

        def step(call):
            self.events.append((call.name, call.ours, [kind_of(p) if p else "-" for p in call.ours], [
                [n for n in range(self.area.levels(p)) if self.area.possible(p, n)] if p else [] for p in call.ours]))
            return len(self.events) != kill

        def look(call, named):
            what = look_at_moment(call, self.area.home, named)
            if what and what not in watched[-1:]:
                watched.append(what)
                self.lines.append(f"{self.scene}\tmoment\tnone\t{len(self.events)}\t-\t-\t{what}")
        self.copy("fixture", "work")
        run = Run(self.command, self.area.home, step, self.named, look if watch else None)
        if run.end != ("killed" if kill else "exited") or not kill and run.status > (2 if may_fail else 0):
            raise ChildProcessError(f"without an attack: {run.end}, status {run.status}: {run.message}")

    def plans(self, attack=None, only=0, runs=0):
        """(step, attack): all, or ATTACK, at step ONLY; of similar ones the first, and of these about RUNS."""
        plans = []
        for step, (_, paths, kinds, possible) in enumerate(self.events, 1):
            if only in (0, step):
                plans += [(step, parse_attack(attack))] if attack else [
                    (step, a) for which in range(len(paths)) for level in possible[which] for a in
                    (Attack(kind, level, which) for kind in KINDS) if a.sensible(kinds[which])]
        similar = {}
        for step, a in plans if runs else ():
            name, paths, kinds, _ = self.events[step - 1]
            path = paths[a.which] or ""
            # attacks that are not about a link do not need every call
            similar.setdefault((a.kind, a.level, a.which, name if a.kind == "link" else "", kinds[a.which],
                                self.area.levels(path), "/." in path), (step, a))
        kept = list(similar.values()) if runs else plans
        n = min(len(kept), runs) if runs else len(kept)
        return [kept[i * len(kept) // n] for i in range(n)]

    def attack(self, at, attack):
        """Make one attack; whether it was possible."""
        self.step, self.done, self.call, self.attacked = 0, None, None, None
        self.at, self.kind = at, attack
        watch = LIBC.inotify_init1(os.O_NONBLOCK)

        def step(call):
            self.step += 1
            if self.step > 1000 + 8 * len(self.events):
                return False  # a run with so many steps more than without an attack does not end
            path = call.ours[attack.which] if attack.which < len(call.ours) else None
            if self.done and self.done.done and attack.kind in ("swap", "flip"):
                self.done.undo()
            elif self.done and not self.done.done and attack.kind == "flip":
                self.done = Done(self.area, attack, self.call.ours[attack.which])
            if self.step != at:
                return True
            self.call = call
            self.done = Done(self.area, attack, path) if path else None
            if not self.done or not self.done.done:
                return False
            if attack.kind in ("fifo", "device"):  # before it is seen by anybody else
                LIBC.inotify_add_watch(watch, os.fsencode(self.done.target), 0x20 | 0x2000000)  # IN_OPEN | IN_DONT_FOLLOW
            self.attacked = listing(self.area.canary)[1]
            return True
        self.copy("fixture", "work")
        if self.bad:
            self.make_canaries()
        run = Run(self.command, self.area.home, step, self.named, watch=watch)
        if self.done and self.done.fifo is not None:
            os.close(self.done.fifo)
        if self.attacked is not None:
            self.judge(run)
        os.close(watch)
        if self.verbose:
            print(f"{attack} at {at}: {self.call.name if self.call else ''} "
                  f"{(self.call.ours[attack.which] if self.call and attack.which < len(self.call.ours) else '') or ''}: "
                  f"{'impossible' if self.attacked is None else 'done'}, {run.end} {run.status}: {run.message}", file=sys.stderr)
        return self.attacked is not None

    def place(self):
        """Where the exchanged path is with respect to the paths in the command."""
        target, place = self.done.target, "beside"
        if self.kind.kind == "none":
            return "planted"
        for word in self.command[1:]:
            begin = word.find(self.area.home)
            if begin < 0:  # it may be in an option's value: file=PATH,...
                continue
            operand = word[begin:].split(",")[0].rstrip("/")
            if (target + "/").startswith(operand + "/"):
                return "operand" if target == operand else "below"
            if operand.startswith(target + "/"):
                place = "above"
        return place

    def fault(self, what):
        path = self.call.ours[self.kind.which][len(self.area.work) + 1:]
        self.lines.append("\t".join([self.scene, self.place(), str(self.kind), str(self.at), self.call.name, path, what]))

    def judge(self, run):
        """Look at how the run ended, and at what is root's."""
        if run.end == "opened":
            self.fault("opened: a " + self.kind.kind)
        elif run.end == "killed":
            self.fault("hangs: does the same again and again")
        elif run.end == "signalled":
            self.fault(f"ends by signal {run.status}")
        elif run.status > 2:
            self.fault(f"exit status {run.status}")
        elif run.status and ":" not in run.message:
            self.fault(f"exit status {run.status} without a message")
        if "Sanitizer" in run.message or "runtime error" in run.message:
            self.fault("sanitizer: " + " ".join(run.message.split())[:300])
        state, times = listing(self.area.canary)
        changed, touched = difference(self.canaries, state), difference(self.attacked, times)
        # a hard link has the content in the tree already, and another number of links
        if changed:
            self.fault("changed: " + changed)
        elif touched and self.kind.kind != "hard":
            self.fault("touched: " + touched)
        self.bad = bool(changed or touched and self.kind.kind != "hard")
        found = readable(self.secrets, self.area.work) if self.kind.kind != "hard" else ""
        if found:
            self.fault("readable: a secret is in " + found[len(self.area.work) + 1:])
