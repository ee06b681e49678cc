#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Launch kernels of a library that mkfat.py made, as code in the library would do.

launch.py [options] LIBRARY

  --wrappers N   number of wrappers in it (1)
  --devices N    number of devices to launch on (1)
  --threads N    number of threads, each of which launches all kernels (1)
  --then COMMAND command to run after the wrappers are registered, before the first launch
  --rounds N     how often to register, launch and unregister (1)

For each launch of the first thread a line "wrapper N device N: RESULT" is printed.  The
runtime is the libamdhip64.so.5 that LD_LIBRARY_PATH leads to.
"""
import argparse
import ctypes
import subprocess
import threading

p = argparse.ArgumentParser(usage=__doc__)
p.add_argument("--wrappers", type=int, default=1)
p.add_argument("--devices", type=int, default=1)
p.add_argument("--threads", type=int, default=1)
p.add_argument("--then")
p.add_argument("--rounds", type=int, default=1)
p.add_argument("library")
o = p.parse_args()

hip = ctypes.CDLL("libamdhip64.so.5")
library = ctypes.CDLL(o.library)
first = ctypes.addressof(ctypes.c_char.in_dll(library, "wrappers"))
register = hip["__hipRegisterFatBinary"]
register.restype = ctypes.c_void_p
barrier = threading.Barrier(o.threads)


def kernel(wrapper):
    """Where its stub would be."""
    return ctypes.c_void_p(first + 24 * wrapper + 1)


def launch_all(say):
    barrier.wait()
    for wrapper in range(o.wrappers):
        for device in range(o.devices):
            result = hip.hipSetDevice(device) or hip.hipLaunchKernel(kernel(wrapper))
            assert hip.hipGetLastError() == result and hip.hipGetLastError() == 0
            if say:
                print("wrapper %d device %d: %d" % (wrapper, device, result), flush=True)


for number in range(o.rounds):
    modules = [ctypes.c_void_p(register(ctypes.c_void_p(first + 24 * i))) for i in range(o.wrappers)]
    for i, module in enumerate(modules):
        hip["__hipRegisterFunction"](module, kernel(i))
    if o.then:
        subprocess.run(o.then, shell=True, check=True)
    threads = [threading.Thread(target=launch_all, args=(i == 0,)) for i in range(o.threads)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for module in modules:
        hip["__hipUnregisterFatBinary"](module)
    # what is gone cannot be launched: hipErrorInvalidDeviceFunction
    assert hip.hipLaunchKernel(kernel(0)) == 98 and hip.hipGetLastError() == 98
