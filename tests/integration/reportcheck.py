#!/usr/bin/python3
"""An independent check of `kpack report`, which counts archives itself.

reportcheck.py PAGE.html FIGURES.json DIRECTORY|ARCHIVE...

PAGE and FIGURES are the page and the figures that kpack report wrote; they must agree with the
archives to the byte.  The page's maps are checked, too, and that it loads nothing.
"""
import hashlib
import html.parser
import json
import os
import re
import sys

from readkpack import Archive

VOID = {"meta", "input", "br", "link", "img"}


# --- figures, counted again ------------------------------------------------------------


def files(operands):
    for operand in operands:
        if not os.path.isdir(operand):
            yield os.path.basename(operand), operand
            continue
        found = []
        for top, _, names in os.walk(operand):
            found += [os.path.join(top, n) for n in names if n.endswith(".kpack")]
        for path in sorted(found, key=lambda p: os.fsencode(p).split(b"/")):
            yield os.path.relpath(path, operand), path


class Row:
    def __init__(self):
        self.objects = self.entries = self.decoded = self.stored = 0

    def add(self, first, decoded, stored):
        self.objects += first
        self.entries += 1
        self.decoded += decoded
        self.stored += stored if first else 0


class Figures:
    def __init__(self, operands):
        self.arches, self.libraries, self.databases = {}, {}, {}
        self.objects, self.entries, self.shared, self.saved = 0, 0, 0, 0
        self.sizes = []
        self.of_arch = {}   # arch -> contents
        self.contents = {}  # hash -> stored bytes of every object that has it
        self.archives = {}
        for name, path in files(operands):
            self.take(name, path)

    def take(self, name, path):
        a, seen = Archive(path), {}
        a.read_all_frames()
        self.archives[name] = os.path.getsize(path)
        for key, arch, e in a.entries():
            stored, first = a.blobs[e["ordinal"]][1], e["ordinal"] not in seen
            if first:
                data = a.get(e)
                content, size = seen[e["ordinal"]] = hashlib.sha256(data).digest(), len(data)
                self.contents.setdefault(content, []).append(stored)
                self.sizes.append(stored)
                self.objects += 1
            else:
                content, size = seen[e["ordinal"]]
                self.shared += 1
                self.saved += stored
            self.entries += 1
            self.of_arch.setdefault(arch, {}).setdefault(content, stored)
            meta = e.get("metadata", {})
            library = meta.get("library") or self.binary(key)
            database = bool(meta.get("library"))
            for rows, row in ((self.arches, arch), (self.libraries, (library, database))):
                rows.setdefault(row, Row()).add(first, size, stored)
            if database:
                self.databases.setdefault((library, meta.get("role", "")), Row()).add(first, size, stored)

    @staticmethod
    def binary(key):
        """lib/x.so of lib/x.so@openmp#3"""
        name, hash_, _ = key.rpartition("#")
        return re.sub(r"@[^@]*$", "", name) if hash_ else key

    @property
    def saving(self):
        return sum(sum(c[1:]) for c in self.contents.values())

    def family(self, arches):
        apart = [sum(self.of_arch[a].values()) for a in arches]
        together = {}
        for a in arches:
            for content, stored in self.of_arch[a].items():
                together.setdefault(content, stored)
        return sum(apart), sum(together.values()), min(apart), max(apart)


def same_rows(name, ours, theirs, key):
    assert len(ours) == len(theirs), (name, len(ours), len(theirs))
    for t in theirs:
        o = ours[key(t)]
        got = tuple(t[k] for k in ("objects", "entries", "decoded", "stored"))
        assert got == (o.objects, o.entries, o.decoded, o.stored), (name, t, vars(o))


def check_json(f, j):
    decoded = sum(r.decoded for r in f.arches.values())
    for name, want in (("objects", f.objects), ("entries", f.entries), ("shared", f.shared),
                       ("saved", f.saved), ("saving", f.saving), ("stored", sum(f.sizes)),
                       ("decoded", decoded), ("architectures", len(f.arches)),
                       ("archive_bytes", sum(f.archives.values()))):
        assert j[name] == want, (name, j[name], want)
    same_rows("arches", f.arches, j["arches"], lambda t: t["arch"])
    same_rows("libraries", f.libraries, j["libraries"], lambda t: (t["library"], t["database"]))
    same_rows("databases", f.databases, j["databases"], lambda t: (t["library"], t["role"]))
    for rows in ("arches", "libraries", "databases", "largest"):
        sizes = [r["stored"] for r in j[rows]]
        assert sizes == sorted(sizes, reverse=True), rows
    assert [o["stored"] for o in j["largest"]] == sorted(f.sizes, reverse=True)[:100]
    twice = sorted((sum(c[1:]) for c in f.contents.values() if len(c) > 1), reverse=True)
    assert [d["saving"] for d in j["duplicates"]] == twice[:100]
    for family in j["families"]:
        got = tuple(family[k] for k in ("apart", "together", "least", "most"))
        assert got == f.family(family["arches"]), (family, f.family(family["arches"]))
    assert {a["name"]: a["bytes"] for a in j["archives"]} == f.archives


# --- the page --------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tables, self.maps, self.attributes, self.open = {}, {}, [], []
        self.table = self.row = self.map = None
        self.elements, self.texts, self.style, self.script = [], [], "", ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.elements.append(tag)
        self.attributes += [(tag, k, v) for k, v in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.table = self.tables[a["id"]] = {"head": [], "rows": [], "caption": ""}
        elif tag == "tr":
            self.row = []
        elif tag in ("th", "td") and self.row is not None:
            self.row.append({"text": "", **a})
        elif tag == "svg" and a.get("class") == "map":
            self.map = self.maps[a["id"]] = {"box": [float(v) for v in a["viewbox"].split()],
                                             "rects": [], "outlines": []}
        elif tag == "rect" and self.map is not None:
            box = [float(a[k]) for k in ("x", "y", "width", "height")]
            if "data-b" in a:
                self.map["rects"].append((box, int(a["data-b"])))
            else:
                self.map["outlines"].append(box)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()
        if tag == "tr":
            where = "head" if "thead" in self.open else "rows" if "tbody" in self.open else "foot"
            if where == "rows":
                self.table["rows"].append(self.row)
            else:
                self.table[where] = self.row
            self.row = None
        elif tag == "svg":
            self.map = None

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        if inside == "style":
            self.style += data
        elif inside == "script":
            self.script += data
        else:
            self.texts.append(data)
        if inside == "caption":
            self.table["caption"] += data
        elif self.row:
            self.row[-1]["text"] += data


def numbers(row):
    return [int(c["data-v"]) for c in row if re.fullmatch(r"\d+", c.get("data-v", ""))]


def check_tables(page, j):
    for table, rows, skip in (("arches", "arches", ["arch"]), ("libraries", "libraries", ["library"]),
                              ("databases", "databases", ["library", "role"])):
        if not j[rows]:
            assert table not in page.tables
            continue
        shown = page.tables[table]["rows"]
        assert page.tables[table]["caption"] and len(shown) == min(len(j[rows]), 300)
        for row, want in zip(shown, j[rows]):
            assert numbers(row)[:4] == [want[k] for k in ("objects", "entries", "decoded", "stored")], (row, want)
            assert int(row[-3]["title"].replace(",", "").split()[0]) == want["stored"]
            if len(want[skip[0]]) < 200 and not set(want[skip[0]]) & set("\\\u202e"):
                assert [c["text"] for c in row[:len(skip)]] == [want[k] for k in skip], (row, want)
        rest = j[rows][300:]
        if rest:
            foot = numbers(page.tables[table]["foot"])
            assert foot[:4] == [sum(r[k] for r in rest) for k in ("objects", "entries", "decoded", "stored")]
    for row, want in zip(page.tables.get("families", {"rows": []})["rows"], j["families"]):
        assert row[0]["text"] == want["name"] and row[2]["text"] == ", ".join(want["arches"])
        assert numbers(row) == [want["apart"], want["together"], want["apart"] - want["together"],
                                want["most"], want["together"] - want["least"]], (row, want)
    assert len(page.tables.get("families", {"rows": []})["rows"]) == len(j["families"])
    largest = page.tables.get("largest", {"rows": []})["rows"]
    assert [numbers(r)[2] for r in largest] == [o["stored"] for o in j["largest"]]
    twice = page.tables.get("twice", {"rows": []})["rows"]
    assert [numbers(r)[-1] for r in twice] == [d["saving"] for d in j["duplicates"]]


def check_map(m, total):
    x0, y0, width, height = m["box"]
    assert sum(b for _, b in m["rects"]) == total, (sum(b for _, b in m["rects"]), total)
    scale = width * height / total
    for (x, y, w, h), size in m["rects"]:
        assert x >= x0 - .01 and y >= y0 - .01 and x + w <= x0 + width + .01 and y + h <= y0 + height + .01
        assert abs(w * h - size * scale) <= .002 * (w + h) + .01, (w, h, size)
    area = sum(w * h for (_, _, w, h), _ in m["rects"])
    assert abs(area - width * height) < .001 * width * height, area
    rects = sorted(r for r, _ in m["rects"])
    for i, (x, y, w, h) in enumerate(rects):
        for X, Y, W, H in rects[i + 1:]:
            if X >= x + w - .01:
                break
            assert min(y + h, Y + H) - max(y, Y) < .01, ("overlap", (x, y, w, h), (X, Y, W, H))
    outside = sum(w * h for _, _, w, h in m["outlines"])
    assert abs(outside - area) < .001 * area


def check_outside(text, page):
    """Nothing is loaded: not by an element, an attribute, a style or a script."""
    lower = text.lower()
    for bad in ("http://", "https://", "url(http", "@import", "@font-face"):
        assert bad not in lower, bad
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "use"} & set(page.elements)
    assert page.elements.count("script") == 1 and page.elements.count("style") == 1
    for tag, name, value in page.attributes:
        assert name not in ("src", "href", "xlink:href", "style", "srcset") and not name.startswith("on"), (tag, name)
    policy = [v for t, k, v in page.attributes if t == "meta" and k == "content" and "default-src" in v]
    assert len(policy) == 1 and policy[0].startswith("default-src 'none'")


def main(page_path, json_path, *operands):
    with open(page_path, encoding="utf-8") as f:
        text = f.read()
    with open(json_path, encoding="utf-8") as f:
        j = json.load(f)
    page, figures = Page(text), Figures(operands)
    check_json(figures, j)
    check_tables(page, j)
    check_outside(text, page)
    assert len(page.maps) == (4 if j["entries"] else 0)
    for name, m in page.maps.items():
        check_map(m, j["stored"] if name.startswith("stored") else j["decoded"])
    return page, figures, j


if __name__ == "__main__":
    main(*sys.argv[1:])
