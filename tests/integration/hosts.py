#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make a random host for HIP code: a library or program as compilers and linkers lay it out.

hosts.py [--machine aarch64|powerpc64le] DIR STUB <SEEDS

Writes DIR/host-SEED for each line, and prints on stdout how it was made.  A seed always gives the same host, as
long as the compilers are the same.  The host registers its wrappers with the HIP runtime (directory
STUB), launches a kernel, and checks the content of its sections: if all is well, int
answer(void *, long) returns 42, or a program's exit status is 0.
With --machine it is made only of assembly, by lld, and cannot be run here.
"""
import argparse, os, random, shutil, struct, subprocess, sys, tempfile
import mkfat

ARCHES = ["gfx906:xnack-", "gfx908", "gfx90a:sramecc-:xnack+", "gfx90a", "gfx1030", "gfx1100",
          "gfx942", "gfx1201"]
PAGE = 4096


def code_object_alone(arch, size, seed):
    """With a section header at its end, which tells its size."""
    data = bytearray(mkfat.code_object(arch, size, seed))
    struct.pack_into("<Q", data, 40, len(data))
    struct.pack_into("<HHH", data, 58, 64, 1, 0)
    return bytes(data) + bytes(64)


def container(r):
    """A bundle, a compressed one, or a code object by itself."""
    size = r.choice([100, 1000, 5000, 40000])
    arches = r.sample(ARCHES, r.randrange(1, 5))
    seed = str(r.random())
    if r.random() < 0.1:
        return code_object_alone(arches[0], size, seed)
    objects = [(a, mkfat.code_object(a, size, seed)) for a in arches]
    return mkfat.bundle(objects, r.choice([0, 0, 0, 2, 3]), r.choice([1, 16, 64, PAGE]))


def small(r, size):
    """One bundle that leaves no more than zeros up to SIZE."""
    data = mkfat.bundle([(a, mkfat.code_object(a, size // 4, str(r.random())))
                         for a in ("gfx1100", "gfx90a")], 0, 16)
    assert len(data) <= size, len(data)
    return data + bytes(size - len(data)), [0], 16


def fatbin(r):
    """The section's bytes, where its containers begin, and its alignment."""
    if r.random() < 0.15:
        return small(r, r.choice([600, 1000, 3000, PAGE]))
    align = r.choice([16, 64, PAGE, PAGE, PAGE])
    data, starts = b"", []
    for _ in range(r.randrange(1, 5)):
        data += bytes(-len(data) % align)
        starts.append(len(data))
        data += container(r)
    shape = r.randrange(4)
    if shape == 0:
        data += bytes(-len(data) % PAGE)
    elif shape == 1:
        data += bytes(1)
    return data, starts, align


class Host:
    def __init__(self, seed, machine):
        r = self.r = random.Random(seed)
        self.machine = machine
        self.kind = r.choice(["shared", "shared", "pie", "no-pie"])
        self.data, self.starts, self.align = fatbin(r)
        self.linker = r.choice(["bfd", "bfd", "gold", "lld"])
        self.compiler = r.choice(["gcc", "clang-22"])
        if machine or self.linker == "lld":
            self.linker, self.compiler = "lld", "clang-22"
        self.blocks = [self.block(i) for i in range(r.randrange(2, 9))]
        # a wrapper for each container, some twice, in any order
        self.wrappers = list(range(len(self.starts)))
        self.wrappers += [r.choice(self.wrappers) for _ in range(r.randrange(3))]
        r.shuffle(self.wrappers)
        self.global_symbol = r.random() < 0.25
        self.zones = r.choice([0, 0, 1])
        self.place = None
        self.options = self.link_options()

    def block(self, i):
        """section, symbol, flags, size, alignment"""
        r = self.r
        name, flags = r.choice([(".rodata", "a"), (".data", "aw"), (".bss", "aw"), (".text", "ax"),
                                (".init_more", "aw"), (".eeprom", "a"), (".zz_last", "aw")])
        size = r.choice([0, 1, 24, 500, PAGE - 1, PAGE, PAGE + 1, 20000, 70000])
        return name, "block_%d" % i, flags, size, r.choice([1, 8, 64, PAGE])

    def link_options(self):
        r, lld = self.r, self.linker == "lld"
        some = []

        def maybe(chance, *texts):
            if r.random() < chance:
                some.append(r.choice(texts))
        if self.linker != "gold":
            maybe(0.7, "-z,separate-code", "-z,noseparate-code")
            maybe(0.3, "-z,pack-relative-relocs")
        else:
            maybe(0.3, "--rosegment")
        if lld:
            maybe(0.2, "-z,separate-loadable-segments")
            maybe(0.2, "--no-rosegment")
        maybe(0.3, "-z,max-page-size=0x10000", "-z,max-page-size=0x200000")
        maybe(0.6, "-z,relro", "-z,norelro", "-z,relro,-z,now")
        some.append(r.choice(["--build-id=sha1", "--build-id=none"]))
        some.append("--hash-style=" + r.choice(["gnu", "sysv", "both"]))
        maybe(0.3, "-s", "-q", "-S")
        # without a C library there is no .data to put it behind
        if self.linker != "gold" and not self.machine and r.random() < 0.4:
            places = ["AFTER .data", "AFTER .text", "BEFORE .text", "BEFORE .rodata", "AFTER .bss",
                      "AFTER .eh_frame"]
            # lld keeps what is read-only after relocation together
            self.place = r.choice(places if lld else places + ["BEFORE .dynamic"])
            some.append("-T,place.ld")
        return some

    def fat_source(self):
        text = '.section .hip_fatbin,"a",%%progbits\n.p2align %d\n' % (self.align.bit_length() - 1)
        if self.global_symbol:
            text += ".globl fat_code\n.type fat_code,%object\n"
        text += 'fat_code: .incbin "fat.bin"\n'
        # constant where nothing relocates, as clang makes it
        flags = "a" if self.kind == "no-pie" else "aw"
        text += '.section .hipFatBinSegment,"%s",%%progbits\n.p2align 3\n' % flags
        for i, w in enumerate(self.wrappers):
            text += ".globl wrapper_%d\n.hidden wrapper_%d\nwrapper_%d:\n" % (i, i, i)
            text += ".long 0x48495046, 1\n.quad fat_code + %d, 0\n" % self.starts[w]
            if self.zones:
                text += ".zero 40\n"
        for name, symbol, flags, size, align in self.blocks:
            kind = "nobits" if name == ".bss" else "progbits"
            text += '.section %s,"%s",%%%s\n.p2align %d\n' % (name, flags, kind,
                                                             align.bit_length() - 1)
            text += ".globl %s\n.hidden %s\n%s:\n" % (symbol, symbol, symbol)
            if size:
                text += ".fill %d, 1, %d\n" % (size, 0 if kind == "nobits" else size % 251)
        if self.machine:
            text += '.text\n.globl _start\n_start: %s\n.data\n.quad _start\n' % (
                "ret" if self.machine == "aarch64" else "blr")
        return text + '.section .note.GNU-stack,"",%progbits\n'

    def host_source(self):
        text = """
extern void **__hipRegisterFatBinary(const void *);
extern void __hipRegisterFunction(void **, const void *, const char *);
extern void __hipUnregisterFatBinary(void **);
extern int hipLaunchKernel(const void *);
static __thread int per_thread = 7;
static int kernel(void) { return per_thread; }
static int (*const table[])(void) = {kernel};
static void **handle;
int unused_bss[300];
"""
        for i, _ in enumerate(self.wrappers):
            text += "extern const char wrapper_%d[] __attribute__((visibility(\"hidden\")));\n" % i
        for b in self.blocks:
            text += "extern const unsigned char %s[] __attribute__((visibility(\"hidden\")));\n" % b[1]
        text += "__attribute__((constructor)) static void begin(void)\n{\n"
        for i, _ in enumerate(self.wrappers):
            text += "\thandle = __hipRegisterFatBinary(wrapper_%d);\n" % i
            text += "\t__hipRegisterFunction(handle, (void *)kernel, \"kernel_%d\");\n" % i
        text += "}\n__attribute__((destructor)) static void end(void)\n{\n"
        text += "\t__hipUnregisterFatBinary(handle);\n}\n"
        text += """
static int holds(const unsigned char *p, int size, int value)
{
	int i;
	for (i = 0; i < size && *(const volatile unsigned char *)(p + i) == value; i++)
		;
	return i == size;
}

int answer(void *out, long number)
{
	if (table[number]() != 7 || hipLaunchKernel((void *)kernel) != 0 || unused_bss[299])
		return 1;
"""
        for name, symbol, _, size, _ in self.blocks:
            text += "\tif (!holds(%s, %d, %d))\n\t\treturn 2;\n" % (
                symbol, size, 0 if name == ".bss" else size % 251)
        return text + "\treturn 42;\n}\n" + (
            "" if self.kind == "shared" else "int main(void)\n{\n\treturn answer(0, 0) != 42;\n}\n")

    def commands(self, stub):
        """To compile host.c, and to link host."""
        pic = {"shared": "-fPIC", "pie": "-fPIE", "no-pie": "-fno-pic"}[self.kind]
        mode = {"shared": "-shared", "pie": "-pie", "no-pie": "-no-pie"}[self.kind]
        link = [self.compiler, "-O1", pic, mode, "-fuse-ld=" + self.linker, "-o", "host"]
        link += ["-Wl," + o for o in self.options]
        if self.machine:
            return None, link + ["--target=%s-linux-gnu" % self.machine, "-nostdlib", "fat.s"]
        # the stub may want a sanitizer's runtime
        link.append("-Wl,--allow-shlib-undefined")
        return [self.compiler, "-O1", pic, "-c", "host.c"], link + ["host.o", "fat.s", "-L" + stub, "-l:libamdhip64.so.5"]

    def make(self, stub, compiled):
        """In the current directory; COMPILED has what host.o is for commands and texts."""
        with open("fat.bin", "wb") as f:
            f.write(self.data)
        with open("fat.s", "w") as f:
            f.write(self.fat_source())
        with open("host.c", "w") as f:
            f.write(self.host_source())
        if self.place:
            with open("place.ld", "w") as f:
                f.write("SECTIONS { .hip_fatbin : { *(.hip_fatbin) } } INSERT %s;\n" % self.place)
        compile, link = self.commands(stub)
        print("%s; %s, %d bytes, containers at %s, wrappers to %s%s" % (
            " ".join(link), self.place or "in its place", len(self.data), self.starts,
            self.wrappers, ", through a symbol" if self.global_symbol else ""), flush=True)
        if compile:
            key = *compile, self.host_source()
            if key not in compiled:
                subprocess.run(compile, check=True)
                with open("host.o", "rb") as f:
                    compiled[key] = f.read()
            with open("host.o", "wb") as f:
                f.write(compiled[key])
        subprocess.run(link, check=True)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--machine", choices=["aarch64", "powerpc64le"])
    p.add_argument("dir")
    p.add_argument("stub")
    o = p.parse_args()
    out = os.path.abspath(o.dir)
    os.makedirs(out)
    compiled = {}
    with tempfile.TemporaryDirectory(dir=".") as work:
        os.chdir(work)
        for line in sys.stdin:
            seed = int(line)
            print("seed %d: " % seed, end="")
            Host(seed, o.machine).make(o.stub, compiled)
            shutil.move("host", os.path.join(out, "host-%d" % seed))
        os.chdir("..")


if __name__ == "__main__":
    main()
