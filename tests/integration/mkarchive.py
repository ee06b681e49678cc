#!/usr/bin/python3
"""An independent writer of .kpack archives: msgpack, zstandard, and none of our code.

mkarchive.py OUT < SPEC      SPEC is JSON: {"scheme": ..., "entries": [{"key": ...}, ...], ...}

  top level  scheme ("zstd-per-kernel"), group ("test"), family, arches, index (true),
             checksum (true), sort (true), drop ([names of top-level fields to leave out])
  entry      key, arch, type ("hsaco"), and its bytes: text, hex, or size and seed; xxh3 (true),
             path, mode, chunk, target, and more in metadata ({}); same (false): share the
             ordinal of equal bytes

As a module, for archives that lie:

  a = Archive(scheme="none")
  a.add("lib/x.so#0", "gfx1100", b"...", path="a/b", entry={"original_size": 7})
  a.write("out.kpack", top={"group_name": 5}, drop=["toc"])

Run it with /usr/bin/python3: Debian's modules are only there.
"""
import ctypes, hashlib, json, struct, sys
import msgpack, zstandard


class Pairs(list):
    """A map given as pairs: keys may repeat, order stays."""


class Raw(bytes):
    """MessagePack bytes as they are."""


def pack(value):
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, dict):
        value = Pairs(value.items())
    if isinstance(value, Pairs):
        head = msgpack.Packer().pack_map_header(len(value))
        return head + b"".join(pack(k) + pack(v) for k, v in value)
    if isinstance(value, (list, tuple)):
        return msgpack.Packer().pack_array_header(len(value)) + b"".join(map(pack, value))
    return msgpack.packb(value, use_bin_type=True)


def raw_str(data):
    """A MessagePack str of any bytes, UTF-8 or not."""
    return Raw(b"\xdb" + struct.pack(">I", len(data)) + data)


def content(size, seed=""):
    """SIZE bytes that compress about three to one."""
    block = hashlib.shake_128(str(seed).encode()).digest(max(16, size // 3))
    return (block * (size // len(block) + 1))[:size]


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
                 index=True, checksum=True):
        self.scheme, self.group, self.family, self.arches = scheme, group, family, arches
        self.index, self.checksum = index, checksum
        self.blobs = []      # stored bytes of each ordinal
        self.known = {}      # stored bytes -> ordinal, for shared ones
        self.toc = Pairs()   # key -> Pairs of arch -> entry
        self.seen = []       # arches

    def frame(self, data, content_size=True):
        c = zstandard.ZstdCompressor(level=3, write_checksum=self.checksum,
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

    def store(self, stored, same=False):
        if same and stored in self.known:
            return self.known[stored]
        self.blobs.append(stored)
        return self.known.setdefault(stored, len(self.blobs) - 1) if same else len(self.blobs) - 1

    def add(self, key, arch, data, type="hsaco", stored=None, same=False, hash=True, entry=None,
            drop=(), **metadata):
        """ENTRY overrides fields of the entry, DROP leaves fields out; returns the ordinal."""
        if stored is None:
            if self.scheme == "none":
                stored = data
            elif metadata.get("chunk"):
                stored = self.seekable(data, metadata["chunk"])
            else:
                stored = self.frame(data)
        if hash:
            metadata.setdefault("xxh3", xxh3(data))
        ordinal = self.store(stored, same)
        fields = {"type": type, "ordinal": ordinal, "original_size": len(data)}
        if metadata:
            fields["metadata"] = metadata
        fields.update(entry or {})
        for name in drop:
            del fields[name]
        for k, arches in self.toc:
            if k == key:
                arches.append((arch, fields))
                break
        else:
            self.toc.append((key, Pairs([(arch, fields)])))
        if arch not in self.seen:
            self.seen.append(arch)
        return ordinal

    def bytes(self, top=None, drop=(), sort=True, tail=b"", gap=b"", padding=bytes(48), version=1,
              magic=b"KPAK", toc_offset=None):
        if sort:
            by_name = lambda pair: pair[0] if isinstance(pair[0], bytes) else str(pair[0]).encode()
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
            blob = b"".join(self.blobs)
            at = [64]
            for b in self.blobs:
                at.append(at[-1] + len(b))
            fields["blobs"] = [{"offset": o, "size": len(b)} for o, b in zip(at, self.blobs)]
        else:
            blob, at = struct.pack("<I", len(self.blobs)), [4]
            for b in self.blobs:
                blob += struct.pack("<I", len(b)) + b
                at.append(len(blob))
            fields["zstd_offset"], fields["zstd_size"] = 64, len(blob)
            if self.index:
                fields["frame_index"] = struct.pack("<%dQ" % len(at), *at)
        fields.update(top or {})
        for name in drop:
            fields.pop(name, None)
        where = 64 + len(blob) + len(gap) if toc_offset is None else toc_offset
        head = magic + struct.pack("<IQ", version, where) + padding
        return head + blob + gap + pack(fields) + tail

    def write(self, path, **how):
        with open(path, "wb") as f:
            f.write(self.bytes(**how))


def from_spec(spec):
    a = Archive(spec.get("scheme", "zstd-per-kernel"), spec.get("group", "test"),
                spec.get("family", "test"), spec.get("arches"), spec.get("index", True),
                spec.get("checksum", True))
    for e in spec["entries"]:
        if "text" in e:
            data = e["text"].encode()
        elif "hex" in e:
            data = bytes.fromhex(e["hex"])
        else:
            data = content(e["size"], e.get("seed", e["key"] + " " + e["arch"]))
        meta = dict(e.get("metadata", {}))
        for name in ("path", "mode", "chunk", "target"):
            if name in e:
                meta[name] = e[name]
        a.add(e["key"], e["arch"], data, e.get("type", "hsaco"), same=e.get("same", False),
              hash=e.get("xxh3", True), **meta)
    return a


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    spec = json.load(sys.stdin)
    from_spec(spec).write(sys.argv[1], drop=spec.get("drop", ()), sort=spec.get("sort", True))


if __name__ == "__main__":
    main()
