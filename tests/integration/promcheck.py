# SPDX-License-Identifier: MIT
"""Check a file in Prometheus' text format 0.0.4, strictly, as `promtool check metrics` does.

promcheck.check(FILE) gives each sample: [name, {label: value}, value]

Prints a message and exits with 1 on anything that the format forbids or its conventions advise
against: samples without HELP and TYPE, families in pieces, a series twice, counters that do not
end in _total, units that are not base units, histograms that do not add up.
"""
import math
import re
import sys

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\Z)')
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z|[+-]?Inf\Z|NaN\Z")
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")
BAD_UNITS = ("milliseconds", "microseconds", "kilobytes", "megabytes", "bits", "ms", "percent")


def need(condition, line, text):
    if not condition:
        sys.exit("%s: %s" % (text, line))


def labels_of(text, line):
    labels, at = {}, 1
    if not text:
        return labels
    while at < len(text) - 1:
        m = LABEL.match(text[:-1], at)
        need(m, line, "labels")
        need(m.group(1) not in labels, line, "a label twice")
        labels[m.group(1)] = re.sub(r"\\(.)", lambda e: {"n": "\n"}.get(e[1], e[1]), m.group(2))
        at = m.end()
    return labels


def family_of(name, types):
    for end in ("_bucket", "_sum", "_count"):
        base = name[:-len(end)]
        if name.endswith(end) and types.get(base) in ("histogram", "summary"):
            return base
    return name


def check_family(name, kind, samples, line):
    need((kind == "counter") == name.endswith("_total"), name, "counters, and they alone, end in _total")
    for word in BAD_UNITS:
        need(word not in name.split("_"), name, "no base unit")
    for end in ("_count", "_sum", "_bucket"):
        need(not name.endswith(end), name, "the name of a histogram's series")
    if kind == "histogram":
        buckets = [(float(s[1]["le"]), s[2]) for s in samples if s[0] == name + "_bucket"]
        totals = [s[2] for s in samples if s[0] == name + "_count"]
        need(len([s for s in samples if s[0] == name + "_sum"]) == 1, name, "one _sum")
        need(len(totals) == 1 and buckets, name, "one _count, and buckets")
        need(buckets == sorted(buckets) and len({b[0] for b in buckets}) == len(buckets), name, "order of buckets")
        need([b[1] for b in buckets] == sorted(b[1] for b in buckets), name, "buckets are cumulative")
        need(math.isinf(buckets[-1][0]) and buckets[-1][1] == totals[0], name, "+Inf is the count")
    elif kind == "counter":
        need(all(s[2] >= 0 for s in samples), name, "negative")


def check(path):
    with open(path, "rb") as f:
        text = f.read().decode("utf-8")
    need(text.endswith("\n"), text[-80:], "the last line has no end")
    types, helps, samples, order, seen = {}, {}, {}, [], set()
    for line in text[:-1].split("\n"):
        need(line == line.strip() and line, line, "blanks")
        if line.startswith("#"):
            words = line.split(" ", 3)
            need(len(words) == 4 and words[0] == "#" and words[1] in ("HELP", "TYPE"), line, "comment")
            need(NAME.match(words[2]), line, "name")
            to = types if words[1] == "TYPE" else helps
            need(words[2] not in to and words[2] not in samples, line, "too late, or twice")
            need(to is helps or words[3] in TYPES, line, "type")
            to[words[2]] = words[3]
            continue
        m = SAMPLE.match(line)
        need(m and NUMBER.match(m.group(3)), line, "sample")
        family = family_of(m.group(1), types)
        need(family in types and family in helps, line, "no HELP or TYPE")
        if not order or order[-1] != family:
            need(family not in order, line, "a family in pieces")
            order.append(family)
        labels = labels_of(m.group(2), line)
        series = (m.group(1), tuple(sorted(labels.items())))
        need(series not in seen, line, "a series twice")
        seen.add(series)
        samples.setdefault(family, []).append((m.group(1), labels, float(m.group(3))))
    for family, kind in types.items():
        check_family(family, kind, samples.get(family, []), family)
    return [list(sample) for family in order for sample in samples[family]]
