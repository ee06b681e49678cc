# SPDX-License-Identifier: MIT
"""Names of AMD GPUs as values of a variant property, and their families."""
import re

from . import kfd

# Processors of ROCm, and the features that their target IDs may state.
PROCESSORS = {
    "gfx900": ("xnack",), "gfx902": ("xnack",), "gfx904": ("xnack",),
    "gfx906": ("sramecc", "xnack"), "gfx908": ("sramecc", "xnack"),
    "gfx909": ("xnack",), "gfx90a": ("sramecc", "xnack"), "gfx90c": ("xnack",),
    "gfx940": ("sramecc", "xnack"), "gfx941": ("sramecc", "xnack"),
    "gfx942": ("sramecc", "xnack"), "gfx950": ("sramecc", "xnack"),
    "gfx1010": ("xnack",), "gfx1011": ("xnack",), "gfx1012": ("xnack",),
    "gfx1013": ("xnack",),
    "gfx1030": (), "gfx1031": (), "gfx1032": (), "gfx1033": (), "gfx1034": (),
    "gfx1035": (), "gfx1036": (),
    "gfx1100": (), "gfx1101": (), "gfx1102": (), "gfx1103": (),
    "gfx1150": (), "gfx1151": (), "gfx1152": (), "gfx1153": (), "gfx1154": (),
    "gfx1170": (), "gfx1171": (), "gfx1172": (),
    "gfx1200": (), "gfx1201": (), "gfx1250": (), "gfx1250-strict": (), "gfx1251": (), "gfx1310": (),
}

# Further code that a GPU runs: code for one stepping.
STRICT = {"gfx1250": "gfx1250-strict"}

# Generic targets: members, and features.
GENERICS = {
    "gfx9-generic": (("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"), ("xnack",)),
    "gfx9-4-generic": (("gfx940", "gfx941", "gfx942", "gfx950"), ("sramecc", "xnack")),
    "gfx10-1-generic": (("gfx1010", "gfx1011", "gfx1012", "gfx1013"), ("xnack",)),
    "gfx10-3-generic": (("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035",
                         "gfx1036"), ()),
    "gfx11-generic": (("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151",
                       "gfx1152", "gfx1153", "gfx1154"), ()),
    "gfx11-7-generic": (("gfx1170", "gfx1171", "gfx1172"), ()),
    "gfx12-generic": (("gfx1200", "gfx1201"), ()),
    "gfx12-5-generic": (("gfx1250", "gfx1251"), ()),
    "gfx13-generic": (("gfx1310",), ()),
}

# no "_" and ".": they could not be distinguished from the replacements of "-" and ":"
_TARGET = re.compile(r"([a-z0-9-]+)((?::[a-z0-9]+[+-])*)")


def escape(target):
    """A target ID as a value, which may only have [a-z0-9_.].

    ":" becomes ".", a feature's "+" becomes "_on" and its "-" "_off", any other "-" becomes "_".
    ValueError: TARGET is not a target ID in lower case, or has "_" or ".".
    """
    found = _TARGET.fullmatch(target)
    if not found:
        raise ValueError(f"{target!r} is not a target ID")
    name, features = found.groups()
    features = features.replace(":", ".").replace("+", "_on").replace("-", "_off")
    return name.replace("-", "_") + features


def generic(processor):
    """The generic target that covers PROCESSOR, or None."""
    for name, (members, _) in GENERICS.items():
        if processor in members:
            return name
    return None


def stated(name, features):
    """NAME with every choice of FEATURES, the most exact first."""
    choices = [""]
    for feature in features:
        choices = [c + f":{feature}{sign}" for sign in "+-" for c in choices] + choices
    return [name + c for c in sorted(choices, key=lambda c: -c.count(":"))]


def family(processor):
    """The family of PROCESSOR as the kpack paper writes it, "gfx110X"; None: unknown."""
    known = processor in PROCESSORS and "-" not in processor
    return processor[:-1] + "X" if known else None


def get_arch_family():
    """The extra for this machine's first known GPU, "device-gfx110X"; None: there is none."""
    for processor in kfd.gpus():
        name = family(processor)
        if name:
            return "device-" + name
    return None
