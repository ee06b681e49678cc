#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write correct and faulty archives without any of our code: msgpack and zstandard.

    mkarchive.py FILE.kpack [DESCRIPTION.json]      (or the description on stdin)

The description is an object:
  scheme       "zstd-per-kernel" (default) or "none"
  group, family, arches, level, frame_index (bool)
  entries      list of
    key, arch, type ("hsaco")
    data         text, or {"size": N, "seed": S} for bytes that compress to a quarter,
                 or {"file": PATH}
    metadata     map, stored as it is; an "xxh3" in hex becomes bytes, true the real hash
    chunk        store as independent frames of this many bytes with a seek table,
                 and state that in the metadata
    same_as      index of an earlier entry whose ordinal is shared
    corrupt      true: flip bytes in the middle of the stored object
    original_size, ordinal   false values to store instead of the true ones
  toc          members to merge into the table of contents (lies)
  drop         names of members to leave out of the table of contents
  sort         false: keys and arches stay in the given order
  truncate     number of bytes to cut off the end

As a module, for archives that JSON cannot describe:

  a = Archive(scheme="none")
  a.add("lib/x.so#0", "gfx1100", b"...", path="a/b", entry={"original_size": 7})
  a.write("out.kpack", top={"group_name": 5}, drop=["toc"], tail=b"x")

Run it with /usr/bin/python3: only that one has Debian's modules.
"""
import ctypes
import json
import random
import struct
import sys

import msgpack
import zstandard


class Pairs(list):
    """A map given as pairs: keys may repeat, order stays."""


class Raw(bytes):
    """MessagePack bytes as they are."""


# One for all: each has a buffer of a megabyte, which MALLOC_PERTURB_ makes dear.
packer = msgpack.Packer(use_bin_type=True)


def pack(value):
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, dict):
        value = Pairs(value.items())
    if isinstance(value, Pairs):
        head = packer.pack_map_header(len(value))
        return head + b"".join(pack(k) + pack(v) for k, v in value)
    if isinstance(value, (list, tuple)):
        return packer.pack_array_header(len(value)) + b"".join(map(pack, value))
    return packer.pack(value)


def raw_str(data):
    """A MessagePack str of any bytes, UTF-8 or not."""
    return Raw(b"\xdb" + struct.pack(">I", len(data)) + data)


def noise(size, seed=0):
    """SIZE bytes that compress to a quarter."""
    rng, out = random.Random(seed), bytearray()
    while len(out) < size:
        some = rng.randbytes(1024)
        out += some + some + bytes(2048)
    return bytes(out[:size])


class _Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh3(data):
    """XXH3-128 as 16 big-endian bytes."""
    lib = ctypes.CDLL("libxxhash.so.0")
    lib.XXH3_128bits.restype = _Hash128
    lib.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    h = lib.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", h.high, h.low)


class Archive:
    def __init__(self, scheme="zstd-per-kernel", group="test", family="test", arches=None,
                 index=True, checksum=True, level=3):
        self.scheme, self.group, self.family, self.arches = scheme, group, family, arches
        self.index, self.checksum, self.level = index, checksum, level
        self.blobs = []     # stored bytes of each ordinal
        self.toc = Pairs()  # key -> Pairs of arch -> entry
        self.places = {}    # key -> its Pairs
        self.seen = []      # arches

    def frame(self, data, content_size=True):
        c = zstandard.ZstdCompressor(level=self.level, write_checksum=self.checksum,
                                     write_content_size=content_size)
        return c.compress(data)

    def seekable(self, data, chunk):
        """Independent frames, then the seek table of the zstd seekable format."""
        parts = [data[i:i + chunk] for i in range(0, len(data), chunk)] or [b""]
        frames = [self.frame(p) for p in parts]
        rows = b"".join(struct.pack("<II", len(f), len(p)) for f, p in zip(frames, parts))
        foot = struct.pack("<IBI", len(parts), 0, 0x8F92EAB1)
        table = struct.pack("<II", 0x184D2A5E, len(rows) + len(foot)) + rows + foot
        return b"".join(frames) + table

    def encode(self, data, chunk=0):
        if self.scheme == "none":
            return data
        return self.seekable(data, chunk) if chunk else self.frame(data)

    def add(self, key, arch, data, type="hsaco", stored=None, ordinal=None, hash=True,
            entry=None, drop=(), **metadata):
        """STORED: the bytes in the blob; ORDINAL: share one that is there; HASH: with xxh3;
        ENTRY overrides fields, DROP leaves fields out.  Returns the ordinal."""
        if ordinal is None:
            ordinal = len(self.blobs)
            self.blobs.append(self.encode(data, metadata.get("chunk", 0)) if stored is None else stored)
        if hash:
            metadata.setdefault("xxh3", xxh3(data))
        fields = {"type": type, "ordinal": ordinal, "original_size": len(data)}
        if metadata:
            fields["metadata"] = metadata
        fields.update(entry or {})
        for name in drop:
            del fields[name]
        if key not in self.places:
            self.places[key] = Pairs()
            self.toc.append((key, self.places[key]))
        self.places[key].append((arch, fields))
        if arch not in self.seen:
            self.seen.append(arch)
        return ordinal

    def bytes(self, top=None, drop=(), last=(), sort=True, tail=b"", gap=b"", padding=bytes(48),
              version=1, magic=b"KPAK", toc_offset=None):
        """TOP overrides members, DROP leaves members out, LAST come last."""
        def by_name(pair):
            return pair[0] if isinstance(pair[0], bytes) else str(pair[0]).encode()

        if sort:
            self.toc.sort(key=by_name)
            for _, arches in self.toc:
                if isinstance(arches, Pairs):
                    arches.sort(key=by_name)
        fields = {
            "format_version": 1, "group_name": self.group, "gfx_arch_family": self.family,
            "gfx_arches": sorted(self.seen) if self.arches is None else self.arches,
            "compression_scheme": self.scheme, "toc": self.toc,
        }
        if self.scheme == "none":
            blob, places, at = b"".join(self.blobs), [], 64
            for b in self.blobs:
                places.append({"offset": at, "size": len(b)})
                at += len(b)
            fields["blobs"] = places
        else:
            parts, at = [struct.pack("<I", len(self.blobs))], [4]
            for b in self.blobs:
                parts += [struct.pack("<I", len(b)), b]
                at.append(at[-1] + 4 + len(b))
            blob = b"".join(parts)
            fields["zstd_offset"], fields["zstd_size"] = 64, len(blob)
            if self.index:
                fields["frame_index"] = struct.pack("<%dQ" % len(at), *at)
        fields.update(top or {})
        for name in drop:
            fields.pop(name, None)
        for name in last:
            fields[name] = fields.pop(name)
        where = 64 + len(blob) + len(gap) if toc_offset is None else toc_offset
        head = magic + struct.pack("<IQ", version, where) + padding
        return head + blob + gap + pack(fields) + tail

    def write(self, path, **how):
        with open(path, "wb") as f:
            f.write(self.bytes(**how))


def content(data):
    if isinstance(data, str):
        return data.encode()
    if "file" in data:
        with open(data["file"], "rb") as f:
            return f.read()
    return noise(data["size"], data.get("seed", 0))


def build(d):
    a = Archive(d.get("scheme", "zstd-per-kernel"), d.get("group", "test"), d.get("family", "test"),
                d.get("arches"), d.get("frame_index", False), level=d.get("level", 3))
    ordinals = []
    for e in d["entries"]:
        source = d["entries"][e["same_as"]] if "same_as" in e else e
        data, meta = content(source.get("data", "")), dict(e.get("metadata", {}))
        if meta.get("xxh3") is True:
            meta["xxh3"] = xxh3(data)
        elif "xxh3" in meta:
            meta["xxh3"] = bytes.fromhex(meta["xxh3"])
        if "chunk" in e:
            meta["chunk"] = e["chunk"]
        stored = a.encode(data, e.get("chunk", 0))
        if e.get("corrupt"):
            mid = len(stored) // 2
            stored = stored[:mid] + bytes(b ^ 0x5A for b in stored[mid:mid + 64]) + stored[mid + 64:]
        lies = {name: e[name] for name in ("ordinal", "original_size") if name in e}
        ordinals.append(a.add(e["key"], e["arch"], data, e.get("type", "hsaco"), stored,
                              ordinals[e["same_as"]] if "same_as" in e else None,
                              hash=False, entry=lies, **meta))
    whole = a.bytes(top=d.get("toc"), drop=d.get("drop", ()), sort=d.get("sort", True))
    return whole[:len(whole) - d.get("truncate", 0)]


if __name__ == "__main__":
    with open(sys.argv[2]) if len(sys.argv) > 2 else sys.stdin as description:
        archive = build(json.load(description))
    with open(sys.argv[1], "wb") as out:
        out.write(archive)
