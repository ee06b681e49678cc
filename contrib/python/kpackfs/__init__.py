# SPDX-License-Identifier: MIT
"""Read, check, load and write kpack archives of GPU code, over kpackfs's librocm_kpack.

    with kpackfs.open("rocm_gfx942.kpack") as archive:
        code = archive["lib/libx.so#0", "gfx942"]

Nothing is compiled: ctypes calls the library.  It is looked for where kpackfs is installed, then
where the dynamic linker looks; KPACKFS_LIBRARY names another file.

Archives and caches may be used by several threads at once, and closed while others still use
them: what runs ends first.  Calls into the library let other threads of Python run.  What the
library refuses is a KpackError, with its message, code and errno.
"""
from __future__ import annotations

import ctypes
import enum
import glob
import operator
import os
import struct
import threading
import weakref
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

from ._messagepack import pack_text, unpack

__all__ = [
    "Archive", "Cache", "Code", "Entry", "FileMissingError", "FormatError", "KpackError",
    "NotFoundError", "Writer", "generic_target", "load_embedded", "marker", "open", "version",
]

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Name = Tuple[str, str]


# ---- errors -------------------------------------------------------------------------------------


class Code(enum.IntEnum):
    """The values of kpack_error_t, without the KPACK_ERROR_ in front."""

    INVALID_ARGUMENT = 1
    FILE_NOT_FOUND = 2
    INVALID_FORMAT = 3
    UNSUPPORTED_VERSION = 4
    KERNEL_NOT_FOUND = 5
    DECOMPRESSION_FAILED = 6
    OUT_OF_MEMORY = 7
    NOT_IMPLEMENTED = 8
    IO_ERROR = 9
    MSGPACK_PARSE_FAILED = 10
    PATH_DISCOVERY_FAILED = 11
    INVALID_METADATA = 12
    ARCHIVE_NOT_FOUND = 13
    ARCH_NOT_FOUND = 14


class KpackError(Exception):
    """What the library refused; str() is its message."""

    def __init__(self, code: int, message: str, sys_errno: int = 0) -> None:
        super().__init__(code, message, sys_errno)
        self.code = Code(code)
        self.message = message
        self.errno = sys_errno  # of the system call that failed, or 0

    def __str__(self) -> str:  # KeyError's would quote it
        return self.message


class FileMissingError(KpackError, FileNotFoundError):
    """There is no such file."""

    filename = None  # which OSError would take from the arguments; the message has it


class NotFoundError(KpackError, KeyError):
    """The archive has no such entry."""


class FormatError(KpackError, ValueError):
    """The file, or an argument, is not what it must be."""


_CLASSES: Dict[int, Type[KpackError]] = {
    Code.FILE_NOT_FOUND: FileMissingError,
    Code.KERNEL_NOT_FOUND: NotFoundError,
    Code.INVALID_ARGUMENT: FormatError,
    Code.INVALID_FORMAT: FormatError,
    Code.UNSUPPORTED_VERSION: FormatError,
    Code.DECOMPRESSION_FAILED: FormatError,
    Code.MSGPACK_PARSE_FAILED: FormatError,
    Code.INVALID_METADATA: FormatError,
}


# ---- the library --------------------------------------------------------------------------------


class _Why(ctypes.Structure):
    _fields_ = [("code", c_int), ("sys_errno", c_int), ("text", ctypes.c_char * 240)]


class _Entry(ctypes.Structure):
    _fields_ = [
        ("binary", c_char_p), ("arch", c_char_p), ("type", c_char_p), ("size", c_uint64),
        ("stored_size", c_uint64), ("chunk", c_uint64), ("metadata", c_void_p),
        ("metadata_size", c_size_t), ("ordinal", c_uint32), ("reserved0", c_uint32),
        ("reserved", c_uint64 * 4),
    ]


class _Options(ctypes.Structure):
    _fields_ = [
        ("group", c_char_p), ("family", c_char_p), ("level", c_int), ("uncompressed", c_bool),
        ("shared", c_uint64), ("reserved", c_uint64 * 3),
    ]


class _Text(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p)]


class _Object(ctypes.Structure):
    _fields_ = [
        ("binary", c_char_p), ("arch", c_char_p), ("type", c_char_p), ("data", c_char_p),
        ("size", c_size_t), ("path", c_char_p), ("target", c_char_p), ("mode", c_uint32),
        ("chunk", c_uint32), ("texts", POINTER(_Text)), ("n_texts", c_size_t),
        ("reserved", c_uint64 * 4),
    ]


_OUT = POINTER(c_void_p)
_SIZE = POINTER(c_size_t)
_WHY = POINTER(_Why)
_LOADS: List[Any] = [c_uint32, POINTER(c_char_p), c_size_t, _OUT, _SIZE]

# Calls that return a kpack_error_t and say why in their last argument; those before it.
_WITH_REASON: Dict[str, List[Any]] = {
    "kpackx_open": [c_char_p, _OUT],
    "kpackx_get_kernel": [c_void_p, c_char_p, c_char_p, _OUT, _SIZE],
    "kpackx_read_range": [c_void_p, c_size_t, c_uint64, c_void_p, c_size_t, _SIZE],
    "kpackx_load_code_object": [c_void_p, c_void_p, c_char_p, *_LOADS],
    "kpackx_load_embedded": [c_char_p, *_LOADS],
    "kpackx_writer_open": [c_char_p, POINTER(_Options), _OUT],
    "kpackx_writer_add": [c_void_p, POINTER(_Object)],
    "kpackx_writer_finish": [c_void_p],
}
# Those that return only the code
_WITHOUT_REASON: Dict[str, List[Any]] = {
    "kpack_cache_create": [_OUT],
    "kpack_get_architecture": [c_void_p, c_size_t, POINTER(c_char_p)],
    "kpack_get_architecture_count": [c_void_p, _SIZE],
    "kpackx_find_entry": [c_void_p, c_char_p, c_char_p, _SIZE],
    "kpackx_generic_target": [c_char_p, c_char_p, c_size_t],
    "kpackx_get_entry": [c_void_p, c_size_t, POINTER(_Entry)],
    "kpackx_get_entry_count": [c_void_p, _SIZE],
    "kpackx_get_group": [c_void_p, POINTER(c_char_p), POINTER(c_char_p)],
}
_FREE = ["kpack_cache_destroy", "kpack_close", "kpack_free_code_object", "kpack_free_kernel", "kpackx_writer_abort"]
_STRINGS: Dict[str, List[Any]] = {"kpack_error_string": [c_int], "kpackx_version": []}


def _load_library() -> ctypes.CDLL:
    named, file = os.environ.get("KPACKFS_LIBRARY"), "librocm_kpack.so.0"
    places = [
        place
        for prefix in ("/usr/local", "/usr")
        for lib in ("lib", "lib64", "lib/*")  # as lib/x86_64-linux-gnu, which only Debian's Python knows
        for place in sorted(glob.glob(f"{prefix}/{lib}/kpackfs/lib/{file}"))
    ]
    reasons = []
    for place in [named] if named else places + [file]:
        try:
            library = ctypes.CDLL(place)
        except OSError as why:
            reasons.append(str(why))
            continue
        if hasattr(library, "kpackx_version"):
            break
        reasons.append(f"{place}: another librocm_kpack, not that of kpackfs")
    else:
        raise ImportError(f"no {file} of kpackfs: {'; '.join(reasons)} (KPACKFS_LIBRARY=FILE names it)")
    for name, arguments in _WITH_REASON.items():
        getattr(library, name).argtypes = [*arguments, _WHY]
    for name, arguments in {**_WITHOUT_REASON, **_STRINGS}.items():
        getattr(library, name).argtypes = arguments
    for name in _FREE:
        getattr(library, name).argtypes, getattr(library, name).restype = [c_void_p], None
    for name in _STRINGS:
        getattr(library, name).restype = c_char_p
    return library


_library = _load_library()


def _call(name: str, *arguments: Any, subject: str = "") -> None:
    """Call the library, and raise what it refuses, with the SUBJECT in front."""
    why = _Why() if name in _WITH_REASON else None
    code = getattr(_library, name)(*arguments, *([byref(why)] if why else []))
    if code:
        text = why.text.decode("utf-8", "replace") if why else ""
        text = text or _decode(_library.kpack_error_string(code))
        text = f"{subject}: {text}" if subject else text
        if code == Code.OUT_OF_MEMORY:
            raise MemoryError(text)
        raise _CLASSES.get(code, KpackError)(code, text, why.sys_errno if why else 0)


class _Handle:
    """What the library allocated, freed with the last reference.

    It is itself the argument of calls, which so hold a reference while they run.
    """

    __slots__ = ("_as_parameter_", "free")

    def __init__(self, pointer: c_void_p, free: str) -> None:
        self._as_parameter_ = pointer
        self.free = getattr(_library, free)

    def __del__(self) -> None:
        self.free(self._as_parameter_)


class _Closable:
    """A handle that close() and the end of a with statement give up."""

    _handle: Optional[_Handle] = None

    def _use(self) -> _Handle:
        handle = self._handle
        if handle is None:
            raise ValueError(f"the {type(self).__name__.lower()} is closed")
        return handle

    def close(self) -> None:
        """Free what it holds, after the calls that run; closing again is allowed."""
        self._handle = None

    def __exit__(self, kind: Optional[Type[BaseException]], why: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def _encode(text: str) -> bytes:
    """TEXT as the library takes it; archives of others have names that are not UTF-8."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no str")
    data = text.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ValueError(f"NUL in {text!r}")
    return data


def _decode(data: Optional[bytes]) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def _path(path: Path) -> bytes:
    data = os.fsencode(path)
    if b"\0" in data:
        raise ValueError(f"NUL in {path!r}")
    return data


def _optional(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else _encode(text)


def _number(value: int, bits: int) -> int:
    """VALUE, which ctypes would cut to BITS bits."""
    value = operator.index(value)
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{value} is not a number of {bits} bits")
    return value


def _strings(texts: Sequence[str]) -> Sequence[str]:
    """TEXTS, which are several: one would be taken for its letters."""
    if isinstance(texts, str):
        raise TypeError(f"{texts!r} is one str, where a list of them is wanted")
    return texts


def _take(pointer: c_void_p, size: c_size_t, free: str) -> memoryview:
    """The library's memory as it is, freed with the last view of it."""
    memory = (ctypes.c_char * size.value).from_address(pointer.value or 0)
    weakref.finalize(memory, getattr(_library, free), pointer)
    return memoryview(memory).cast("B").toreadonly()


def version() -> str:
    """The version of the library, such as "0.1.0"."""
    return _decode(_library.kpackx_version())


# ---- reading ------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """What the table of contents says of one entry."""

    key: str
    arch: str
    type: str
    size: int  # decoded bytes
    stored_size: int  # bytes in the archive, which other entries may share
    chunk: int  # decoded bytes of each part that decodes alone; 0: there are no parts
    ordinal: int  # equal for entries that share their bytes
    metadata: Dict[Any, Any]


class Archive(_Closable, Mapping[Name, bytes]):
    """An open archive: a mapping of (key, arch) to the decoded bytes.

    A name is found as kpack_get_kernel finds it: where there is no "x", "x#0" answers, and the
    other way round.
    """

    def __init__(self, path: Path) -> None:
        self.path = os.fsdecode(path)
        pointer = c_void_p()
        _call("kpackx_open", _path(path), byref(pointer), subject=self.path)
        self._handle = _Handle(pointer, "kpack_close")

    def __enter__(self) -> Archive:
        return self

    def __repr__(self) -> str:
        return f"<kpackfs.Archive {self.path!r}{'' if self._handle else ', closed'}>"

    def _find(self, handle: _Handle, key: str, arch: str) -> int:
        index = c_size_t()
        _call("kpackx_find_entry", handle, _encode(key), _encode(arch), byref(index),
              subject=f"{self.path}: {key} {arch}")
        return index.value

    def _entry(self, handle: _Handle, index: int) -> _Entry:
        entry = _Entry()
        _call("kpackx_get_entry", handle, index, byref(entry))
        return entry

    def __len__(self) -> int:
        count = c_size_t()
        _call("kpackx_get_entry_count", self._use(), byref(count))
        return count.value

    def __iter__(self) -> Iterator[Name]:
        for entry in self._entries():
            yield _decode(entry.binary), _decode(entry.arch)

    def _entries(self) -> Iterator[_Entry]:
        handle = self._use()
        for index in range(len(self)):
            yield self._entry(handle, index)

    def __contains__(self, name: Any) -> bool:
        if not self._is_name(name):
            return False
        try:
            self._find(self._use(), *name)
        except NotFoundError:
            return False
        return True

    @staticmethod
    def _is_name(name: Any) -> bool:
        return isinstance(name, tuple) and len(name) == 2 and all(isinstance(part, str) for part in name)

    def __getitem__(self, name: Name) -> bytes:
        if not self._is_name(name):
            raise TypeError(f"{name!r} is no (key, arch)")
        return bytes(self.view(*name))

    def view(self, key: str, arch: str) -> memoryview:
        """The decoded bytes without a copy: read-only memory of the library, which outlives the archive."""
        handle, data, size = self._use(), c_void_p(), c_size_t()
        _call("kpackx_get_kernel", handle, _encode(key), _encode(arch), byref(data), byref(size),
              subject=self.path)
        return _take(data, size, "kpack_free_kernel")

    def readinto(self, key: str, arch: str, buffer: Any, offset: int = 0) -> int:
        """Decode from OFFSET on into a writable BUFFER; returns the number of bytes, 0 after the end."""
        handle, got = self._use(), c_size_t()
        place = memoryview(buffer).cast("B")
        memory = (ctypes.c_char * len(place)).from_buffer(place)
        index = self._find(handle, key, arch)
        _call("kpackx_read_range", handle, index, _number(offset, 64), byref(memory), len(place), byref(got),
              subject=self.path)
        return got.value

    def read(self, key: str, arch: str, offset: int = 0, size: Optional[int] = None) -> bytes:
        """At most SIZE decoded bytes from OFFSET on; of chunked and plain entries only these are read."""
        rest = max(0, self.entry(key, arch).size - _number(offset, 64))
        buffer = bytearray(rest if size is None else min(rest, _number(size, 64)))
        return bytes(buffer[:self.readinto(key, arch, buffer, offset)])

    def entry(self, key: str, arch: str) -> Entry:
        """What the table of contents says of an entry."""
        handle = self._use()
        return self._describe(self._entry(handle, self._find(handle, key, arch)))

    def entries(self) -> Iterator[Entry]:
        """Every entry, in order of keys, then architectures."""
        return map(self._describe, self._entries())

    @staticmethod
    def _describe(e: _Entry) -> Entry:
        metadata = unpack(ctypes.string_at(e.metadata, e.metadata_size))[0] if e.metadata else {}
        return Entry(_decode(e.binary), _decode(e.arch), _decode(e.type), e.size, e.stored_size,
                     e.chunk, e.ordinal, metadata if isinstance(metadata, dict) else {})

    @property
    def arches(self) -> Tuple[str, ...]:
        """The architectures that the archive declares, as stored."""
        handle, count, arch = self._use(), c_size_t(), c_char_p()
        _call("kpack_get_architecture_count", handle, byref(count))
        found = []
        for index in range(count.value):
            _call("kpack_get_architecture", handle, index, byref(arch))
            found.append(_decode(arch.value))
        return tuple(found)

    @property
    def group(self) -> str:
        """group_name; "" where the archive has none."""
        return self._group()[0]

    @property
    def family(self) -> str:
        """gfx_arch_family; "" where the archive has none."""
        return self._group()[1]

    def _group(self) -> Tuple[str, str]:
        handle, group, family = self._use(), c_char_p(), c_char_p()
        _call("kpackx_get_group", handle, byref(group), byref(family))
        return _decode(group.value), _decode(family.value)

    def verify(self) -> int:
        """Decode every entry, which compares every hash; returns the number of decoded bytes.

        Raises at the first damaged entry.  The program's "kpack verify" also checks the rules of
        the format, and reports all faults.
        """
        return sum(len(self.view(key, arch)) for key, arch in self)


def open(path: Path) -> Archive:
    """Open the archive at PATH; reads its table of contents, and no kernel."""
    return Archive(path)


# ---- writing ------------------------------------------------------------------------------------


class Writer(_Closable):
    """An archive being written; the file appears, whole, at the end of the with statement.

    An exception in the with statement leaves no file behind, and what was there untouched.  SCHEME
    is "zstd-per-kernel", "zstd-shared" (version 2, not for AMD's readers) or "none".  GROUP, FAMILY
    and LEVEL have the defaults of kpackx_writer_open(3).  Threads may share a writer; one adds at a
    time, and the bytes of the file depend on the order.
    """

    def __init__(self, path: Path, *, group: Optional[str] = None, family: Optional[str] = None,
                 scheme: str = "zstd-per-kernel", level: int = 0) -> None:
        if scheme not in ("zstd-per-kernel", "zstd-shared", "none"):
            raise ValueError(f"scheme {scheme!r}: none of zstd-per-kernel, zstd-shared, none")
        options = _Options(group=_optional(group), family=_optional(family), level=_number(level, 31),
                           uncompressed=scheme == "none", shared=int(scheme == "zstd-shared"))
        pointer = c_void_p()
        _call("kpackx_writer_open", _path(path), byref(options), byref(pointer))
        self._handle = _Handle(pointer, "kpackx_writer_abort")
        self._lock = threading.Lock()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], why: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is None and self._handle is not None:
            self.finish()
        self.close()

    def add(self, key: str, arch: str, data: Union[bytes, bytearray, memoryview], *, type: str = "hsaco",
            path: Optional[str] = None, target: Optional[str] = None, mode: int = 0, chunk: int = 0,
            metadata: Optional[Mapping[str, str]] = None) -> None:
        """Add one object; after a FormatError the archive is as before, and takes more.

        PATH is where the object belongs in a mount, MODE its permission bits there, TARGET its
        bundle entry ID; CHUNK cuts it into parts that decode alone.
        """
        data = data if isinstance(data, bytes) else bytes(memoryview(data))  # bytes(5) would be five
        texts = [(_encode(name), _encode(text)) for name, text in (metadata or {}).items()]
        array = (_Text * len(texts))(*(_Text(*pair) for pair in texts))
        item = _Object(_encode(key), _encode(arch), _encode(type), data, len(data), _optional(path),
                       _optional(target), _number(mode, 32), _number(chunk, 32), array, len(texts))
        with self._lock:
            _call("kpackx_writer_add", self._use(), byref(item))

    def finish(self) -> None:
        """Write the table of contents, flush to disk, and give the file its name."""
        with self._lock:
            handle = self._use()
            pointer, handle._as_parameter_ = handle._as_parameter_, c_void_p()  # finish frees it, also on failure
            self._handle = None
            _call("kpackx_writer_finish", pointer)

    def abort(self) -> None:
        """Discard what was added."""
        with self._lock:
            self.close()


# ---- loading ------------------------------------------------------------------------------------


def marker(kernel_name: str, search_paths: Sequence[str]) -> bytes:
    """The marker of a converted binary, which Cache.load takes; "kpack mark show" prints a file's."""
    paths = b"".join(map(pack_text, _strings(search_paths)))
    return (b"\x82" + pack_text("kpack_search_paths") + struct.pack(">BI", 0xdd, len(search_paths)) + paths
            + pack_text("kernel_name") + pack_text(kernel_name))


def _load(name: str, *arguments: Any, arches: Sequence[str], index: int, subject: str = "") -> bytes:
    data, size = c_void_p(), c_size_t()
    targets = (c_char_p * len(arches))(*map(_encode, _strings(arches)))
    _call(name, *arguments, _number(index, 32), targets, len(arches), byref(data), byref(size), subject=subject)
    return bytes(_take(data, size, "kpack_free_code_object"))


class Cache(_Closable):
    """Archives that stay open between look-ups, and the settings of the environment at its creation."""

    def __init__(self) -> None:
        pointer = c_void_p()
        _call("kpack_cache_create", byref(pointer))
        self._handle = _Handle(pointer, "kpack_cache_destroy")

    def __enter__(self) -> Cache:
        return self

    def load(self, marker: Union[bytes, int], binary: Path, index: int, arches: Sequence[str]) -> bytes:
        """The code object of wrapper INDEX of a converted binary, as kpack_load_code_object finds it.

        MARKER is the marker's bytes or its address in this process; ARCHES are the targets that the
        device runs, best first.
        """
        handle = self._use()
        if not isinstance(marker, int):
            marker = marker + bytes(65536)  # without a size, the library reads on where a damaged one ends
        return _load("kpackx_load_code_object", handle, marker, _path(binary), arches=arches, index=index)


def load_embedded(binary: Path, index: int, arches: Sequence[str]) -> bytes:
    """The code object of wrapper INDEX that the file BINARY itself contains."""
    return _load("kpackx_load_embedded", _path(binary), arches=arches, index=index, subject=os.fsdecode(binary))


def generic_target(target: str) -> str:
    """The generic target whose code the GPU of TARGET also runs: "gfx1100" gives "gfx11-generic"."""
    out = ctypes.create_string_buffer(64)
    _call("kpackx_generic_target", _encode(target), out, len(out), subject=target)
    return _decode(out.value)
