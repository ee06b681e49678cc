#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Register the wrappers of a library that mkfat.py made, as its constructors would do.

hipcalls.py [options] LIBRARY

  --wrappers N   number of wrappers in it (1)
  --threads N    number of threads, each of which registers all wrappers (1)
  --fork         register in a child too, while a thread of the parent registers
  --before COMMAND, --after COMMAND
                 command to run before the wrappers are registered, or before kernels of
                 them are launched
  --rounds N     how often to register, launch and unregister (1)

Prints "N set, N NULL", the number of handles, and "N kept" if N bundles stay in memory
after all is unregistered.  Names are looked up in all of the program, as the references of
libraries are; the runtime is the libamdhip64.so.5 that LD_LIBRARY_PATH leads to.
"""
import argparse
import ctypes
import os
import signal
import subprocess
import threading
import warnings

p = argparse.ArgumentParser(usage=__doc__)
p.add_argument("--wrappers", type=int, default=1)
p.add_argument("--threads", type=int, default=1)
p.add_argument("--fork", action="store_true")
p.add_argument("--before")
p.add_argument("--after")
p.add_argument("--rounds", type=int, default=1)
p.add_argument("library")
o = p.parse_args()

ctypes.CDLL("libamdhip64.so.5", mode=ctypes.RTLD_GLOBAL)
hip = ctypes.CDLL(None)
library = ctypes.CDLL(o.library)
first = ctypes.addressof(ctypes.c_char.in_dll(library, "wrappers"))
register = hip["__hipRegisterFatBinary"]
register.restype = ctypes.c_void_p


def bundles():
    with open("/proc/self/maps") as maps:
        return sum("/memfd:kpack:" in line for line in maps)


def register_all(handles, barrier=None):
    if barrier:
        barrier.wait()
    handles += [(i, register(ctypes.c_void_p(first + 24 * i))) for i in range(o.wrappers)]


def in_child(handles):
    """Fork while another thread registers; the child must not wait for that thread."""
    stop = threading.Event()
    warnings.simplefilter("ignore", DeprecationWarning)  # Python's, of a fork beside threads

    def busy():
        while not stop.is_set():
            for _, h in [(0, register(ctypes.c_void_p(first)))]:
                hip["__hipUnregisterFatBinary"](ctypes.c_void_p(h))

    t = threading.Thread(target=busy)
    t.start()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            register_all(handles)
            os._exit(0 if all(h for _, h in handles) else 1)
        assert os.waitpid(child, 0)[1] == 0, "a child has no handle"
    stop.set()
    t.join()


def one_round():
    handles = []
    barrier = threading.Barrier(o.threads)
    threads = [threading.Thread(target=register_all, args=(handles, barrier)) for _ in range(o.threads)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for number, (i, handle) in enumerate(handles):
        hip["__hipRegisterFunction"](ctypes.c_void_p(handle), ctypes.c_void_p(number + 1), b"kernel%d" % i)
    if o.after:
        subprocess.run(o.after, shell=True, check=True)
    for number, (_, handle) in enumerate(handles):
        if handle:
            assert hip.hipLaunchKernel(ctypes.c_void_p(number + 1)) == 0
    print("%d set, %d NULL" % (sum(1 for _, h in handles if h), sum(1 for _, h in handles if not h)))
    for _, handle in handles:
        if handle:
            hip["__hipUnregisterFatBinary"](ctypes.c_void_p(handle))


if o.before:
    subprocess.run(o.before, shell=True, check=True)
if o.fork:
    in_child([])
for _ in range(o.rounds):
    one_round()
if bundles():
    print("%d kept" % bundles())
