#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Register the wrappers of a library, as its constructors do or, if mkfat.py made it, would do.

hipcalls.py [options] LIBRARY

  --wrappers N   number of wrappers in it (1), at its symbol "wrappers"
  --segment      all that are in its section .hipFatBinSegment, as in libraries of compilers
  --runtime NAME file name of the runtime (libamdhip64.so.5)
  --threads N    number of threads, each of which registers all wrappers (1)
  --fork         register in a child too, while a thread of the parent registers
  --before COMMAND, --after COMMAND
                 command to run before the wrappers are registered, or before kernels of
                 them are launched
  --rounds N     how often to register, launch and unregister (1)

Prints "N set, N NULL", the number of handles, and "N kept" if N more bundles than those of
the library's constructors stay in memory after all is unregistered.  Names are looked up in all of the program, as the references of
libraries are; the runtime is found as the dynamic linker finds it.
"""
import argparse
import ctypes
import os
import struct
import subprocess
import threading
import warnings

p = argparse.ArgumentParser(usage=__doc__)
p.add_argument("--wrappers", type=int, default=1)
p.add_argument("--segment", action="store_true")
p.add_argument("--runtime", default="libamdhip64.so.5")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--fork", action="store_true")
p.add_argument("--before")
p.add_argument("--after")
p.add_argument("--rounds", type=int, default=1)
p.add_argument("library")
o = p.parse_args()

WRAPPER_SIZE = 24


def segment(path):
    """(address, size) of the section .hipFatBinSegment."""
    with open(path, "rb") as f:
        header = f.read(64)
        offset, = struct.unpack_from("<Q", header, 40)
        size, count, names = struct.unpack_from("<3H", header, 58)
        f.seek(offset)
        sections = [struct.unpack("<2I6Q", f.read(size)[:56]) for _ in range(count)]
        f.seek(sections[names][4])
        text = f.read(sections[names][5])
    return next((s[3], s[5]) for s in sections if text[s[0]:].startswith(b".hipFatBinSegment\0"))


ctypes.CDLL(o.runtime, mode=ctypes.RTLD_GLOBAL)
hip = ctypes.CDLL(None)
library = ctypes.CDLL(o.library)
if o.segment:
    address, size = segment(o.library)
    o.wrappers = size // WRAPPER_SIZE
    # a handle is the address of a struct link_map, which begins with the address of the library
    first = address + ctypes.c_size_t.from_address(library._handle).value
else:
    first = ctypes.addressof(ctypes.c_char.in_dll(library, "wrappers"))
register = hip["__hipRegisterFatBinary"]
register.restype = ctypes.c_void_p


def bundles():
    with open("/proc/self/maps") as maps:
        return sum("/memfd:kpack:" in line for line in maps)


def register_all(handles, barrier=None):
    if barrier:
        barrier.wait()
    handles += [(i, register(ctypes.c_void_p(first + WRAPPER_SIZE * i))) for i in range(o.wrappers)]


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


at_first = bundles()
if o.before:
    subprocess.run(o.before, shell=True, check=True)
if o.fork:
    in_child([])
for _ in range(o.rounds):
    one_round()
if bundles() > at_first:
    print("%d kept" % (bundles() - at_first))
