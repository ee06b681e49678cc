# SPDX-License-Identifier: MIT
"""GPUs as the kernel's KFD driver reports them.

A directory per node has a file "properties" with a line "gfx_target_version N", which is
major * 10000 + minor * 100 + stepping, and 0 for a CPU.  Nothing here raises: nodes that cannot
be read, or are invalid, are ignored.
"""
import os
import re
import stat

TOPOLOGY = "/sys/class/kfd/kfd/topology"

# at least as many nodes as the driver can have, and far more bytes than such a file has
NODES_MAX = 4096
PROPERTIES_MAX = 64 * 1024

_VERSION = re.compile(rb"^gfx_target_version ([0-9]{1,9})$", re.MULTILINE)
_NODE = re.compile(r"0|[1-9][0-9]{0,8}")


def processor(version):
    """The processor of a gfx_target_version: 90010 is "gfx90a".  None: it is not a GPU's."""
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    if major == 0 or minor > 15 or stepping > 15:
        return None
    return f"gfx{major}{minor:x}{stepping:x}"


def _properties(path):
    # a FIFO must not block, and no device must be read
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return b""
        data = b""
        while len(data) < PROPERTIES_MAX:
            more = os.read(fd, PROPERTIES_MAX - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(fd)


def _node(path):
    try:
        found = _VERSION.search(_properties(path))
    except (OSError, ValueError):
        return None
    return processor(int(found.group(1))) if found else None


def _nodes(topology):
    for path in (os.path.join(topology, "nodes"), topology):
        numbers = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if _NODE.fullmatch(entry.name):
                        numbers.append(int(entry.name))
                    if len(numbers) > NODES_MAX:
                        return path, []
        except (OSError, ValueError):
            continue
        return path, sorted(numbers)
    return topology, []


def gpus(topology=None):
    """Processors of this machine's GPUs, each once, in the order of their nodes."""
    topology = topology or os.environ.get("KPACK_VARIANT_TOPOLOGY") or TOPOLOGY
    path, numbers = _nodes(topology)
    found = (_node(os.path.join(path, str(n), "properties")) for n in numbers)
    return list(dict.fromkeys(name for name in found if name))
