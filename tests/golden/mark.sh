# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2046,SC2086
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

# hosts SET [MAKER ORACLE OPTION]: of hosts.py, packed, with longer and shorter markers, with their code kept, restored, thinned; an oracle
# looks at all of them
hosts() {
	oracle="python3 $SRC/tests/integration/${3-elfcheck.py}"
	python3 $SRC/tests/golden/${2-hosts}.py "$1" fat
	kpack pack -q ${4-} --group g fat packed 2>&1
	$oracle fat packed
	kpack mark strip-safe --check packed
	kpack mark check packed
	mkdir long short kept back thin
	cp packed/* long
	kpack mark set --kernel-name "$(printf %0500d 0)" --search-path "$(printf %04000d 0)" long/* 2>&1
	cp long/* short
	kpack mark set --kernel-name k --search-path s short/* 2>&1
	$oracle fat short
	cp -r fat/* thin
	kpack thin -q ${4-} --arch gfx1100 thin 2>&1 | grep -v 'would not become smaller'
	for f in fat/*; do
		n=${f##*/}
		kpack mark convert --keep-device-code ${4-} --kernel-name k --search-path s $f kept/$n >said 2>&1 || cat said
		kpack mark restore -o back/$n packed/$n >said 2>&1 || cat said
		cmp -s $f back/$n && same="" || same="not the same"
		echo $n $(cat packed/$n long/$n short/$n kept/$n 2>/dev/null | sha256sum | cut -c 1-32) \
			$($oracle --hash packed/$n long/$n short/$n) $(cat back/$n thin/$n | sha256sum | cut -c 1-8) $(stat -c %s $f packed/$n long/$n short/$n thin/$n) $same
	done
	for d in long kept back thin; do $oracle --alone $d; done
	rm -rf fat packed long short kept back thin said
}

# fat OPTION... FILE: a library of mkfat.py, with small objects
fat() { python3 $SRC/tests/integration/mkfat.py --size 300 "$@"; }
