#!/usr/bin/env bats
# kpack mark: what golden cases cannot see: attributes of files, links of other users, a full disk, and
# programs that the dynamic linker starts.

# bats file_tags=single

load packing

mark() { kpack mark "$@"; }

convert() { # IN OUT [OPTION...]
	mark convert --kernel-name lib/x.so --search-path '../.kpack/g_@GFXARCH@.kpack' "${@:3}" "$1" "$2"
}

# A run that ends with STATUS and has TEXT in its output
ends() { # STATUS TEXT COMMAND...
	run "${@:3}"
	[ "$status" -eq "$1" ] || { echo "exit $status of: ${*:3}"; echo "$output"; return 1; }
	[[ "$output" == *"$2"* ]] || { echo "no '$2' from: ${*:3}"; echo "$output"; return 1; }
}

everything_of() { # FILE: attributes and times, without the bytes
	stat -c '%a %u %g %Y' "$1"
	getfattr -d -m - --absolute-names "$1" 2>/dev/null | grep -v '^#' || true
}

@test "attributes stay, in place and elsewhere; and links are followed" {
	mkdir -p root/lib
	mkfat --size 300 fat.so
	chmod 6751 fat.so
	setfattr -n user.note -v hello fat.so 2>/dev/null || true
	if [ "$(id -u)" = 0 ]; then
		chown 12:34 fat.so
		chmod 6751 fat.so
		# user 12345 may read; cap_net_raw+ep
		setfattr -n system.posix_acl_access -v 0x0200000001000700ffffffff020004003930000004000500ffffffff10000500ffffffff20000100ffffffff fat.so 2>/dev/null || true
		setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 fat.so 2>/dev/null || true
	fi
	touch -d '2001-02-03 04:05:06' fat.so
	before=$(everything_of fat.so)
	cp -a fat.so root/lib/x.so
	kpack pack -q --archives-only --group g root root
	convert fat.so other.so
	convert root/lib/x.so root/lib/x.so
	ln -s x.so root/lib/link.so
	mark set --kernel-name lib/y.so root/lib/link.so
	for file in other.so root/lib/x.so; do
		[ "$(everything_of $file)" = "$before" ]
	done
	inode=$(stat -c %i root/lib/x.so)
	mark set --kernel-name lib/y.so root/lib/x.so
	mark strip-safe root/lib/x.so
	[ "$(stat -c %i root/lib/x.so)" = "$inode" ] # nothing was to be done
	mark set --kernel-name lib/x.so root/lib/x.so
	mark restore -o back.so root/lib/x.so
	mark restore root/lib/link.so
	[ -L root/lib/link.so ]
	for file in back.so root/lib/x.so; do
		cmp fat.so $file
		[ "$(everything_of $file)" = "$before" ]
	done
	[ -z "$(find . -name '.kpack-*')" ]
}

@test "restore: a full disk is an error, also in the gaps of a bundle" {
	[ "$(id -u)" = 0 ] || skip "only root can mount a tmpfs"
	local mib full=0
	# mapped pages of gaps, of up to 2 MiB, would be the last that find no room
	mkfat --ccob all --bundles 1 --size 13000000 --align 2097152 large.so
	kpack pack -q --group g large.so root
	mkdir small
	mount -t tmpfs none small
	for mib in 36 42 64; do
		rm -f small/back.so
		mount -o "remount,size=${mib}m" small
		run mark restore -o small/back.so root/large.so
		[ "$status" = 0 ] && continue
		[ "$status" = 1 ]
		[[ "$output" == *"temporary file: No space left on device"* ]]
		[ -z "$(ls -A small)" ]
		full=$((full + 1))
	done
	[ "$status" = 0 ] && [ "$full" -eq 2 ]
	umount small
}

@test "root follows no link that another user may have put there" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkfat --size 300 fat.so
	kpack pack -q --group g fat.so out
	mkdir theirs
	cp out/fat.so target
	cp target before
	ln -s ../target theirs/link
	ln -s ../none theirs/dangling
	chown -h 1234:4321 theirs theirs/link
	ends 1 "is a symbolic link that is not followed" convert fat.so theirs/link
	ends 1 "is a symbolic link that is not followed" mark restore -o theirs/link out/fat.so
	ends 1 "is a symbolic link that is not followed" convert fat.so theirs/dangling
	cmp target before
	[ -L theirs/link ] && [ ! -e none ]
	# what is no link is replaced
	cp out/fat.so theirs/x.so
	chown 1234:4321 theirs/x.so
	ends 0 "" mark set --kernel-name lib/other.so theirs/x.so
	[ "$(stat -c %u:%g theirs/x.so)" = 1234:4321 ]
	# where only root may write, its links are followed
	chown 0:0 theirs
	ends 0 "theirs/link: converted" convert fat.so theirs/link
}

# bats test_tags=all
@test "check: search paths without end" {
	mkdir -p root/lib names
	mkfat --size 300 root/lib/x.so
	kpack pack -q --group g root out
	(cd names && seq 3000 | xargs touch)
	# shellcheck disable=SC2046 # words
	mark set $(seq -f '--search-path ../../names/@GFXARCH@/%g' 100) out/lib/x.so
	ends 1 "marker: more than 262144 names where its search paths lead" mark check out
	# shellcheck disable=SC2046 # words
	mark set $(seq -f '--search-path ../../names/@GFXARCH@/%g' 80) --search-path '../.kpack/g_@GFXARCH@.kpack' out/lib/x.so
	ends 0 " 0 faults" mark check out
}

# --- what a program finds by itself --------------------------------------------------

# A program and a library that compare the program headers at the ELF header in memory, and the
# build ID that they lead to, with those of the loader; and look for what is appended to the file.
objects() {
	cat >self.c <<-'END'
	#define _GNU_SOURCE
	#include <link.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <string.h>
	extern const char code[] __attribute__((visibility("hidden")));
	extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
	struct wrapper { unsigned magic, version; const void *binary; void *unused; };
	__attribute__((section(".hipFatBinSegment"), used)) struct wrapper w = {0x48495046, 1, code, 0};
	static char zeros[9000];
	static const ElfW(Phdr) *real;
	static int n_real;
	static int find(struct dl_phdr_info *i, size_t size, void *arg)
	{
		for (int k = 0; k < i->dlpi_phnum; k++)
			if ((unsigned long)&w - i->dlpi_addr - i->dlpi_phdr[k].p_vaddr < i->dlpi_phdr[k].p_memsz &&
			    i->dlpi_phdr[k].p_type == PT_LOAD)
				real = i->dlpi_phdr, n_real = i->dlpi_phnum;
		return 0;
	}
	int look(const char *file)
	{
		const char *header = (const char *)&__ehdr_start, *base = NULL;
		const ElfW(Phdr) *p = (const void *)(header + __ehdr_start.e_phoff);
		int n = __ehdr_start.e_phnum, ids = 0;
		char line[64] = "", tag[8] = "";
		FILE *f = fopen(file, "r");
		dl_iterate_phdr(find, NULL);
		if (n != n_real || memcmp(p, real, n * sizeof(*p)))
			return 1;
		for (int k = n; k-- > 0;)
			if (p[k].p_type == PT_LOAD)
				base = header + p[k].p_offset - p[k].p_vaddr;
		for (int k = 0; k < n; k++)
			if (p[k].p_type == PT_NOTE)
				ids += memmem(base + p[k].p_vaddr, p[k].p_memsz, "\3\0\0\0GNU", 8) != NULL;
		for (size_t k = 0; k < sizeof(zeros); k++)
			if (zeros[k])
				return 2;
		if (!ids || (w.magic == 0x48495046 ? memcmp(w.binary, "__CLANG_OFFLOAD", 15)
						   : (*(const unsigned char *)w.binary & 0xf0) != 0x80))
			return 3;
		fseek(f, -16, SEEK_END);
		if (fread(tag, 1, 8, f) == 8 && memcmp(tag, "APPENDED", 8) == 0) {
			unsigned long at = 0;
			if (fread(&at, 1, 8, f) != 8 || fseek(f, at, SEEK_SET) || !fgets(line, 64, f) ||
			    strcmp(line, "found by its offset\n"))
				return 4;
		}
		fclose(f);
		return 42;
	}
	END
	echo '#include <dlfcn.h>
	int main(int n, char **a) { return ((int (*)(const char *))dlsym(dlopen(a[1], RTLD_NOW), "look"))(a[1]); }' >load.c
	echo 'int look(const char *); int main(void) { return look("/proc/self/exe"); }' >main.c
	echo '.hidden code
	.globl code
	.section .hip_fatbin,"a",@progbits
	.balign 4096
	code: .incbin "code"
	.section .note.GNU-stack,"",@progbits' >code.S
	cc -o load load.c -ldl
	for kind in -fPIC -fPIE -fno-pie; do
		cc -O1 $kind -c self.c -o self$kind.o
		cc -O1 $kind -c main.c -o main$kind.o
	done
}

# in/*: a library and programs of each linker and its options, with device code of SIZE bytes
link_all() { # SIZE
	local ld options at
	mkfat --bare --bundles 1 --size "$1" --arches gfx90a,gfx942 code
	cc -c code.S
	for ld in bfd gold lld; do
		command -v ld.$ld >/dev/null || continue
		for options in -z,relro -z,max-page-size=65536 -z,noseparate-code; do
			[ $ld$options != gold-z,noseparate-code ] || continue
			[ "$1$options" != 300-z,noseparate-code ] || continue
			at=in/$1-$ld${options##*-}-
			cc -shared -fuse-ld=$ld -Wl,--build-id,$options -o "${at}lib" self-fPIC.o code.o
			cc -pie -fuse-ld=$ld -Wl,--build-id,$options -o "${at}pie" self-fPIE.o main-fPIE.o code.o
			cc -no-pie -fuse-ld=$ld -Wl,--build-id,$options -o "${at}fixed" self-fno-pie.o main-fno-pie.o code.o
		done
	done
}

all_work() { # DIRECTORY
	local file status
	for file in "$1"/*; do
		status=0
		case $file in
		*lib*) ./load "./$file" || status=$? ;;
		*) "./$file" || status=$? ;;
		esac
		[ $status = 42 ] || { echo "$file: $status"; readelf -lSW "$file"; return 1; }
	done
}

@test "program headers, build IDs and appended bytes are found as before, whatever the linker" {
	command -v ld.bfd >/dev/null || skip "no GNU ld"
	mkdir in
	objects
	link_all 300
	link_all 5000
	py <<-'END'
	import glob, os, struct
	for name in glob.glob("in/*z,relro*"):
	    data = open(name, "rb").read()
	    open(name + "-appended", "wb").write(data + b"found by its offset\n" + bytes(3000) + b"APPENDED" + struct.pack("<Q", len(data)))
	    os.chmod(name + "-appended", 0o755)
	END
	kpack pack -q --group g in out
	/usr/bin/python3 "$BATS_TEST_DIRNAME/elfcheck.py" in out
	mark strip-safe --check out
	cp -r in thin
	kpack thin -q --arch gfx942 thin
	mkdir again
	for file in in/*; do
		mark restore -o "again/${file#in/}" "out/${file#in/}"
	done
	diff -r in again
	cp -r out long
	mark set --kernel-name "$(printf %0200d 0)" long/*
	for dir in in out thin long; do
		all_work $dir
	done
	py <<-'END'
	import os
	for name in os.listdir("in"):
	    old, new, thin = (open(d + name, "rb").read() for d in ("in/", "out/", "thin/"))
	    assert len(new) <= len(old) and len(thin) <= len(old), name
	    assert "appended" not in name or old[-3036:] == new[-3036:], name
	END
}

# Linux before 5.18 gives a program the first segment's address as that of its headers - its
# offset + e_phoff; are they mapped there?
old_kernel_starts() { # PROGRAM
	$python - "$1" <<-'END'
	import struct, sys
	data = open(sys.argv[1], "rb").read()
	at, = struct.unpack_from("<Q", data, 32)
	size, n = struct.unpack_from("<HH", data, 54)
	rows = [struct.unpack_from("<IIQQQQQQ", data, at + i * size) for i in range(n)]
	loads = [r for r in rows if r[0] == 1]
	told = loads[0][3] - loads[0][2] + at
	real = [r[3] + at - r[2] for r in loads if r[2] <= at and at + n * size <= r[2] + r[5]]
	sys.exit(told not in real)
	END
}

# bats test_tags=all
@test "strip-safe: a stripped program" {
	command -v clang-22 >/dev/null && command -v llvm-strip-22 >/dev/null || skip "no clang-22 or llvm-22"
	cat >a.hip <<-'END'
	#define __global__ __attribute__((global))
	struct dim3 { unsigned x, y, z; };
	extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
	extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
	extern "C" __global__ void kernel_a(int *p) { p[0] += 1; }
	END
	cat >stub.c <<-'END'
	void **__hipRegisterFatBinary(const void *d) { static void *h; return &h; }
	void __hipRegisterFunction(void) {}
	void __hipUnregisterFatBinary(void **m) {}
	int hipLaunchKernel(void) { return 0; }
	unsigned __hipPopCallConfiguration(void) { return 0; }
	int main(void) { return 42; }
	END
	clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=gfx{90a,942,1030,1100,1200,1201} -fPIC -c a.hip -o a.o
	clang-22 -fPIC -c stub.c -o stub.o
	clang-22 -pie a.o stub.o -o prog
	kpack pack -q --archives-only --group g --key-prefix lib prog .
	mark convert --kernel-name lib/prog --search-path '.kpack/g_@GFXARCH@.kpack' prog prog
	ends 0 "prog: ok" mark strip-safe prog
	ends 42 "" ./prog
	old_kernel_starts prog
	llvm-strip-22 --strip-debug prog
	if old_kernel_starts prog; then return 1; fi # else strip-safe is needed no more
	ends 1 "kpack: ./prog: its program headers are where Linux before 5.18 does not look: repair it" mark strip-safe --check .
	chmod 711 prog
	before=$(everything_of prog)
	ends 0 "prog: repaired" mark strip-safe prog
	ends 0 "1 program, 0 faults" mark strip-safe --check .
	old_kernel_starts prog
	[ "$(everything_of prog)" = "$before" ]
	ends 0 "prog: ok" mark strip-safe prog
	ends 42 "" ./prog
	ends 0 "6 objects in 6 archives, 0 faults" mark check --arch gfx1100 prog
	ends 0 "bit-identical" mark restore prog
	ends 42 "" ./prog
	ends 0 "prog: fat" mark show prog
}
