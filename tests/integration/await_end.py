# SPDX-License-Identifier: MIT
"""await_end.py PID...: wait until none of these processes runs any more."""
import os, select, sys

for pid in sys.argv[1:]:
    try:
        select.select([os.pidfd_open(int(pid))], [], [])
    except ProcessLookupError:
        pass
