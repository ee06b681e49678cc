# SPDX-License-Identifier: MIT
"""ar archives of GNU, BSD and Darwin, read and written without any of our code."""
import struct

INDEXES = ("__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64", "__.SYMDEF_64 SORTED")


def rows(data):
    """Offset of the header, name, offset of the bytes, bytes, of each member."""
    at, names = 8, b""
    while at < len(data):
        head, size = data[at:at + 60], int(data[at + 48:at + 58])
        name, start = head[:16].decode().rstrip(), at + 60
        end = start + size
        if name.startswith("#1/"):
            start += int(name[3:])
            name = data[at + 60:start].rstrip(b"\0").decode()
        elif name == "//":
            names = data[start:end]
        elif name[0] == "/" and name[1:].isdigit():
            name = names[int(name[1:]):].split(b"/\n")[0].decode()
        elif name not in ("/",):
            name = name.rstrip("/")
        yield at, name, start, data[start:end]
        at = end + end % 2


def read(path):
    """The members, as (name, bytes), and the index, as (symbol, name of its member)."""
    members, symbols, at_header = [], [], {}
    for at, name, _, body in rows(open(path, "rb").read()):
        if name == "/":
            n = struct.unpack(">I", body[:4])[0]
            texts = body[4 + 4 * n:].split(b"\0")
            symbols = list(zip(texts, struct.unpack(">%dI" % n, body[4:4 + 4 * n])))
        elif name in INDEXES:
            word = "Q" if "64" in name else "I"
            width = struct.calcsize(word)
            size = struct.unpack("<" + word, body[:width])[0]
            pairs = list(struct.iter_unpack("<" + 2 * word, body[width:width + size]))
            texts = body[2 * width + size:]
            symbols = [(texts[where:].split(b"\0")[0], to) for where, to in pairs]
        elif name != "//":
            members.append((name, body))
            at_header[at] = name
    return members, [(symbol, at_header[to]) for symbol, to in symbols]


def offsets(path):
    return [start for _, name, start, _ in rows(open(path, "rb").read()) if name not in INDEXES]


def write_bsd(members, symbols, kind):
    darwin, word = kind != "bsd", "Q" if kind == "darwin64" else "I"
    texts, where = b"", {}
    for symbol, _ in symbols:
        where[symbol] = len(texts)
        texts += symbol + b"\0"
    texts += bytes(-len(texts) % 8)

    def member(at, name, body):
        text = name.encode()
        text += bytes(-(at + 60 + len(text)) % 8 if darwin else 0)
        body += b"\n" * (-len(body) % 8 if darwin else 0)
        head = b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (b"#1/%d" % len(text), 0, 0, 0, b"644",
                                                    len(text) + len(body))
        return head + text + body + b"\n" * ((len(text) + len(body)) % 2)

    def index(at):
        pairs = b"".join(struct.pack("<" + 2 * word, where[s], at[m]) for s, m in symbols)
        body = struct.pack("<" + word, len(pairs)) + pairs + struct.pack("<" + word, len(texts)) + texts
        return member(8, "__.SYMDEF" + ("_64" if word == "Q" else " SORTED"), body)
    places, pos, rest = {}, 8 + len(index({m: 0 for _, m in symbols})), b""
    for name, body in members:
        places[name] = pos + len(rest)
        rest += member(pos + len(rest), name, body)
    return b"!<arch>\n" + index(places) + rest
