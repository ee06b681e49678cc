# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# For the cases of "kpack mark": root has converted binaries and their archives.

C='../.kpack/g_@GFXARCH@.kpack'

# make_root FILE: root/lib/x.so of FILE, packed and converted in place; the fat one is fat.so
make_root() {
	rm -rf root
	mkdir -p root/lib
	cp -p "$1" root/lib/x.so
	cp -p "$1" fat.so
	kpack pack -q --archives-only --group g root root
	kpack mark convert --kernel-name lib/x.so --search-path "$C" root/lib/x.so root/lib/x.so >/dev/null
}

# damage FILE OFFSET: one byte of it
damage() { printf '\377' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }

# as another tool would have converted it
forget_layout() { sed -i 's/\.rocm_kpack_layout/.somebody_elses___/' "$1"; }

m() { t kpack mark "$@"; }
