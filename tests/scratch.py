# SPDX-License-Identifier: MIT
"""Where tests make thousands of small files."""
import os
import tempfile


def in_memory(programs=False):
    """A directory in memory, if there is one in which files can have what ours have, and PROGRAMS can be run;
    or None.  Commands that wait for the disk, as fsync(2) does, need longer for that than for all else."""
    where = "/dev/shm"
    try:
        st = os.statvfs(where)
        with tempfile.NamedTemporaryFile(dir=where) as f:
            os.setxattr(f.name, "user.note", b"x")
    except OSError:
        return None
    noexec = programs and st.f_flag & os.ST_NOEXEC
    with open("/proc/meminfo", encoding="ascii") as f:  # what is written there needs memory
        memory = {line.split(":")[0]: int(line.split()[1]) << 10 for line in f}
    return None if "TMPDIR" in os.environ or noexec or st.f_bavail * st.f_frsize < 2 << 30 or \
        memory.get("MemAvailable", 0) < 4 << 30 else where
