#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Act like programs that load librocm_kpack.

process.py constructor LIBRARY USER
                              dlopen USER, whose constructor loads an object
process.py unloaded LIBRARY   dlopen it, make a cache, destroy it, dlclose it, then fork
process.py left LIBRARY       the same without destroying the cache
process.py forked LIBRARY ARCHIVE KEY ARCH
                              threads load an object through one cache, and so do processes
                              that are forked meanwhile
"""

import _ctypes
import ctypes
import multiprocessing
import os
import sys
import threading

import msgpack


def library(path):
    lib = ctypes.CDLL(path)
    lib.kpack_cache_create.argtypes = [ctypes.c_void_p]
    lib.kpack_cache_destroy.argtypes = [ctypes.c_void_p]
    lib.kpack_free_code_object.argtypes = [ctypes.c_void_p]
    lib.kpack_load_code_object.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p,
        ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    return lib


def create(lib):
    cache = ctypes.c_void_p()
    assert lib.kpack_cache_create(ctypes.byref(cache)) == 0
    return cache


def load(lib, cache, archive, key, arch):
    name, _, index = key.partition("#")
    marker = msgpack.packb({"kpack_search_paths": [archive], "kernel_name": name})
    archs = (ctypes.c_char_p * 1)(arch.encode())
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    code = lib.kpack_load_code_object(cache, marker, b"/none", int(index), archs, 1,
                                      ctypes.byref(data), ctypes.byref(size))
    assert code == 0, code
    out = ctypes.string_at(data, size.value)
    lib.kpack_free_code_object(data)
    return out


def forked():
    """Fork, and wait for a child that does nothing."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def unload(path, destroy):
    for _ in range(3):
        lib = library(path)
        cache = create(lib)
        forked()
        if destroy:
            lib.kpack_cache_destroy(cache)
        _ctypes.dlclose(lib._handle)
        with open("/proc/self/maps") as maps:
            assert os.path.realpath(path) not in maps.read()
        forked()


def fork_while_loading(path, *what):
    lib = library(path)
    cache = create(lib)
    want = load(lib, cache, *what)
    done = threading.Event()
    bad = []

    def load_on():
        while not done.is_set():
            if load(lib, cache, *what) != want:
                bad.append(1)

    def load_in_child():
        assert load(lib, cache, *what) == want
        lib.kpack_cache_destroy(cache)

    threads = [threading.Thread(target=load_on) for _ in range(3)]
    for t in threads:
        t.start()
    make = multiprocessing.get_context("fork").Process
    for _ in range(30):
        os.utime(what[0])  # another file, as far as a cache can know
        child = make(target=load_in_child)
        child.start()
        child.join()
        bad += [child.exitcode] if child.exitcode else []
    done.set()
    for t in threads:
        t.join()
    assert not bad, bad
    lib.kpack_cache_destroy(cache)


if __name__ == "__main__":
    case, path, *what = sys.argv[1:]
    if case == "constructor":
        assert ctypes.CDLL(*what).answer() == 100000
    elif case == "forked":
        fork_while_loading(path, *what)
    else:
        unload(path, case == "unloaded")
