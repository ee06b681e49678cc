#!/usr/bin/python3
"""An independent reader of .kpack archives: msgpack and zstandard, none of our code.

readkpack.py ls FILE              "key<TAB>arch<TAB>type<TAB>size<TAB>ordinal", sorted
readkpack.py cat FILE KEY ARCH    the object's bytes on standard output
readkpack.py sums FILE            "sha256  key  arch" of every object, sorted
readkpack.py toc FILE             the table of contents as JSON

Run it with /usr/bin/python3: only that one has Debian's modules.  Any violation of the format is
an exception and exit code 1.
"""
import ctypes, hashlib, io, json, struct, sys
import msgpack, zstandard

PIECE = 65536


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_128bits.restype = Hash128
xxhash.XXH3_64bits.argtypes = xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3_64(data):
    return xxhash.XXH3_64bits(data, len(data))


def xxh3_128(data):
    h = xxhash.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", h.high, h.low)


class Shared:
    """The bytes of an archive of version 2, by kpack-format(5) and nothing else."""

    def __init__(self, data, layout, check):
        self.layout, self.block_size = layout, layout["block_size"]
        assert self.block_size in [1 << n for n in range(16, 21)], "block_size"
        assert layout["dictionary_size"] <= 1 << 24, "dictionary_size"
        frames, at = [], layout["offset"]
        for (size,) in struct.iter_unpack("<I", layout["frames"]):
            frames.append(data[at:at + size])
            at += size
        assert at - layout["offset"] == layout["size"], "frames do not add up to size"
        if check and "frame_hashes" in layout:
            want = [n for (n,) in struct.iter_unpack("<Q", layout["frame_hashes"])]
            assert want == [xxh3_64(f) for f in frames], "frame_hashes"
        dictionary, self.blocks = None, frames
        if layout["dictionary_size"]:
            raw = self.unzstd(frames[0], layout["dictionary_size"])
            assert raw[:4] != b"\x37\xa4\x30\xec", "dictionary with a magic"
            dictionary = zstandard.ZstdCompressionDict(
                raw, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            self.blocks = frames[1:]
        self.dictionary, self.decoded = dictionary, {}
        count = -(-layout["unique_size"] // self.block_size)
        assert len(self.blocks) == count, "%d blocks, not %d" % (len(self.blocks), count)
        self.objects = list(self.parse(layout["objects"]))
        assert len(self.objects) <= 1 << 20, "objects"

    @staticmethod
    def unzstd(frame, size, dictionary=None):
        h = zstandard.get_frame_parameters(frame)
        assert h.content_size == size and h.has_checksum and h.dict_id == 0, "frame header"
        assert size // 32768 <= len(frame) <= size + size // 128 + 1024, "frame size"
        args = {"dict_data": dictionary} if dictionary else {}
        out = zstandard.ZstdDecompressor(**args).decompress(frame)
        assert len(out) == size
        return out

    def block(self, number):
        if number not in self.decoded:
            size = min(self.block_size,
                       self.layout["unique_size"] - number * self.block_size)
            self.decoded[number] = self.unzstd(self.blocks[number], size, self.dictionary)
        return self.decoded[number]

    def parse(self, table):
        at = 0
        assert len(table) <= 1 << 26, "bytes of objects"

        def number():
            nonlocal at
            value, shift = 0, 0
            while True:
                byte = table[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
                assert shift < 63, "a number of more than 9 bytes"

        new = elsewhere = 0
        while at < len(table):
            extents = []
            for _ in range(number()):
                n = number()
                if n % 2 == 0:
                    begin, size = new, n // 2
                    new = begin + size
                else:
                    d = number()
                    begin = elsewhere + (d // 2 if d % 2 == 0 else -((d + 1) // 2))
                    size = (n - 1) // 2
                    elsewhere = begin + size
                assert size and 0 <= begin <= begin + size <= self.layout["unique_size"]
                extents.append((begin, size))
            self.check_spans(extents)
            yield extents

    def check_spans(self, extents):
        at, begun, blocks = 0, {}, {}
        for begin, size in extents:
            begun[at // self.block_size] = begun.get(at // self.block_size, 0) + 1
            while size:
                n = min(size, self.block_size - at % self.block_size,
                        self.block_size - begin % self.block_size)
                blocks.setdefault(at // self.block_size, set()).add(begin // self.block_size)
                at, begin, size = at + n, begin + n, size - n
        assert at <= 1 << 32, "object of more than 4 GiB"
        assert all(n <= 4096 for n in begun.values()), "extents in a span"
        assert all(len(b) <= 16 for b in blocks.values()), "blocks in a span"

    def read(self, ordinal):
        out = []
        for begin, size in self.objects[ordinal]:
            while size:
                block, at = divmod(begin, self.block_size)
                part = self.block(block)[at:at + size]
                out.append(part)
                begin, size = begin + len(part), size - len(part)
        return b"".join(out)


class Archive:
    def __init__(self, path, check=True):
        """CHECK false: hashes are not compared."""
        with open(path, "rb") as f:
            self.data = f.read()
        magic, version, toc = struct.unpack_from("<4sIQ", self.data)
        assert magic == b"KPAK" and version in (1, 2), "not a kpack archive of version 1 or 2"
        # unpackb: bytes after the table are an error, as in AMD's Python reader
        self.top = msgpack.unpackb(self.data[toc:])
        assert self.top.get("format_version", 1) == version
        scheme = self.top.get("compression_scheme", "none")
        assert (scheme == "zstd-shared") == (version == 2), "scheme of another version"
        self.shared = Shared(self.data, self.top["zstd_shared"], check) if version == 2 else None
        if version == 2:
            self.decode = bytes
        elif scheme == "none":
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
        if check:
            self.check_hashes(self.data[toc:])

    def check_hashes(self, table):
        if "table_hash" in self.top:
            if list(self.top)[-1] != "table_hash":
                return  # a program that does not know the hashes copied them
            assert self.top["table_hash"] == xxh3_128(table[:-16]), "table_hash"
        hashes, at, last = self.top.get("piece_hashes", b""), 0, -1
        while at < len(hashes):
            (ordinal,) = struct.unpack_from("<I", hashes, at)
            assert ordinal > last, "piece_hashes: order"
            last, at = ordinal, at + 4
            offset, size = self.blobs[ordinal]
            for begin in range(0, size, PIECE):
                piece = self.data[offset + begin:offset + min(begin + PIECE, size)]
                assert struct.unpack_from("<Q", hashes, at)[0] == xxh3_64(piece), "piece_hashes"
                at += 8

    @staticmethod
    def unzstd(frame):
        # as AMD's reader does: the first frame is the entry, what follows is ignored
        return zstandard.ZstdDecompressor().decompress(frame)

    def read_all_frames(self):
        """Older chunked entries have several frames, which AMD's reader ignores."""
        if self.decode is not bytes:
            self.decode = lambda frame: zstandard.ZstdDecompressor().stream_reader(
                io.BytesIO(frame), read_across_frames=True).read()

    def check_frame(self, entry, data):
        """The frame of an entry states size and checksum; the parts of a chunked one decode alone, before a seek table."""
        if self.decode is bytes:
            return
        at, size = self.blobs[entry["ordinal"]]
        frame, chunk = self.data[at:at + size], entry["metadata"].get("chunk", 0)
        h = zstandard.get_frame_parameters(frame)
        assert h.content_size == len(data) and h.has_checksum, "frame header"
        if not chunk or len(data) <= chunk:
            return
        count, flags, magic = struct.unpack("<IBI", frame[-9:])
        row, pos = 12 if flags & 0x80 else 8, 0
        assert (count, magic) == (-(-len(data) // chunk), 0x8f92eab1), "seek table"
        table = frame[-9 - row * count:-9]
        for i in range(count):
            packed, plain = struct.unpack_from("<II", table, i * row)
            blocks = frame[pos:pos + packed]
            blocks = blocks[:-4] if i == count - 1 else blocks + b"\1\0\0"
            if i == 0:
                blocks = blocks[zstandard.frame_header_size(frame):]
            # a header of our own: a window of 2 MiB, no size, no checksum
            part = zstandard.ZstdDecompressor().decompressobj().decompress(b"\x28\xb5\x2f\xfd\x00\x58" + blocks)
            assert part == data[chunk * i:chunk * i + plain] and len(part) == plain, "part %d" % i
            pos += packed
        assert pos == size - 9 - row * count - 8, "seek table: place"

    def entries(self):
        for key, arches in sorted(self.top["toc"].items()):
            for arch, entry in sorted(arches.items()):
                yield key, arch, entry

    def get(self, entry):
        if self.shared:
            data = self.shared.read(entry["ordinal"])
        else:
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
    elif command == "cat":
        key, arch = args
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
