#!/usr/bin/python3
"""An independent reader of .kpack archives: msgpack and zstandard, none of our code.

readkpack.py ls FILE              "key<TAB>arch<TAB>type<TAB>size<TAB>ordinal", sorted
readkpack.py cat FILE KEY ARCH    the object's bytes on standard output
readkpack.py frames FILE KEY ARCH the same, of all frames: older chunked entries have several
readkpack.py sums FILE            "sha256  key  arch" of every object, sorted
readkpack.py toc FILE             the table of contents as JSON

Run it with /usr/bin/python3: only that one has Debian's modules.  Any violation of the format is
an exception and exit code 1.
"""
import hashlib, io, json, struct, sys
import msgpack, zstandard


class Archive:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        magic, version, toc = struct.unpack_from("<4sIQ", self.data)
        assert magic == b"KPAK" and version == 1, "not a kpack archive of version 1"
        # unpackb: bytes after the table are an error, as in AMD's Python reader
        self.top = msgpack.unpackb(self.data[toc:])
        scheme = self.top.get("compression_scheme", "none")
        if scheme == "none":
            self.blobs = [(b["offset"], b["size"]) for b in self.top.get("blobs", [])]
            self.decode = bytes
        elif scheme == "zstd-per-kernel":
            at = self.top["zstd_offset"]
            end = at + self.top["zstd_size"]
            (count,) = struct.unpack_from("<I", self.data, at)
            at += 4
            self.blobs = []
            for _ in range(count):
                (size,) = struct.unpack_from("<I", self.data, at)
                self.blobs.append((at + 4, size))
                at += 4 + size
            assert at == end, "frames end at %d, zstd_size says %d" % (at, end)
            self.decode = self.unzstd
        else:
            raise ValueError("compression_scheme " + scheme)

    @staticmethod
    def unzstd(frame):
        # as AMD's reader does: the first frame is the entry, what follows is ignored
        return zstandard.ZstdDecompressor().decompress(frame)

    def read_all_frames(self):
        """Older chunked entries have several frames, which AMD's reader ignores."""
        if self.decode is not bytes:
            self.decode = lambda frame: zstandard.ZstdDecompressor().stream_reader(
                io.BytesIO(frame), read_across_frames=True).read()

    def entries(self):
        for key, arches in sorted(self.top["toc"].items()):
            for arch, entry in sorted(arches.items()):
                yield key, arch, entry

    def get(self, entry):
        offset, size = self.blobs[entry["ordinal"]]
        data = self.decode(self.data[offset:offset + size])
        want = entry.get("original_size", len(data))
        assert len(data) == want, "%d bytes, original_size says %d" % (len(data), want)
        return data


def main(command, path, *args):
    archive = Archive(path)
    if command == "ls":
        for key, arch, e in archive.entries():
            print(key, arch, e.get("type", ""), e.get("original_size", ""), e["ordinal"], sep="\t")
    elif command in ("cat", "frames"):
        key, arch = args
        if command == "frames":
            archive.read_all_frames()
        sys.stdout.buffer.write(archive.get(archive.top["toc"][key][arch]))
    elif command == "sums":
        for key, arch, e in archive.entries():
            print(hashlib.sha256(archive.get(e)).hexdigest(), key, arch, sep="  ")
    elif command == "toc":
        print(json.dumps(archive.top, indent=1, default=lambda b: b.hex()))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
