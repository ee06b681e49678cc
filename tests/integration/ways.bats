#!/usr/bin/env bats
# kpackfs --in-place: files that packing moved into archives are at their old places again, by mounts and
# overlays; and systemd's units.  The threads of their mounts are those of mount.bats.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load mounting
contrib=$BATS_TEST_DIRNAME/../../contrib

setup() {
	begin_test
	own_run
	# names that must be quoted
	P="$T/rocm 6,1:a'b"
	make_prefix
}

teardown() {
	cd /
	for _ in 1 2 3; do
		awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/self/mounts | sed 's/\\/\\0/g' | tac |
			while IFS= read -r m; do umount -l "$(printf %b "$m")" || fusermount3 -uz "$(printf %b "$m")"; done
	done
	gone
	end_own_run
	rm -rf "$T"
}

mounts() { awk -v t="$T/" 'index($2, t) == 1 { n++ } END { print n + 0 }' /proc/self/mounts; }
in_place() { kpackfs --in-place "$@"; }

# An install tree as packing leaves it, and what it was before in whole/
make_prefix() {
	py "$P" <<-'END'
	import mkarchive, os, sys
	prefix = sys.argv[1]
	def put(root, path, data):
	    os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
	    open(f"{root}/{path}", "wb").write(data)
	packed = {
	    "lib/rocblas/library/TensileLibrary_lazy_gfx942.dat": "gfx942",
	    "lib/rocblas/library/Kernels.so-000-gfx942.hsaco": "gfx942",
	    "lib/hipblaslt/library/gfx942/TensileLibrary_lazy_gfx942.dat": "gfx942",
	    "lib/hipblaslt/library/gfx942/hipblasltExtOpLibrary.dat": "gfx942",
	    "lib/hipblaslt/library/gfx942/hipblasltTransform.hsaco": "gfx942",
	    "lib/aotriton.images/amd-gfx942/flash/attn\uff0afp16.aks2": "gfx942",
	    "lib/rocfft/rocfft_kernel_cache.db": "generic",
	    "share/miopen/db/gfx942130.db.txt": "gfx942",
	    "share/miopen/db/gfx1100_36.db.txt": "gfx1100",
	}
	plain = ["lib/librocblas.so.4", "lib/libMIOpen.so.1", "share/doc/README", "lib/rocblas/notes"]
	archives = {a: mkarchive.Archive() for a in sorted(set(packed.values()))}
	for path, arch in packed.items():
	    data = path.encode() * 100
	    archives[arch].add(path, arch, data, type="bin", path=path)
	    put("whole", path, data)
	    os.makedirs(os.path.dirname(f"{prefix}/{path}"), exist_ok=True)
	for path in plain:
	    put(prefix, path, path.encode())
	    put("whole", path, path.encode())
	os.mkdir(prefix + "/.kpack")
	for arch, a in archives.items():
	    a.write(f"{prefix}/.kpack/math_{arch}.kpack")
	END
}

same_as_whole() { diff -r -x .kpack whole "$P"; }

# tree PATH...: a tree and its archive; "+x" is packed, "x/" an empty directory, "x" another file
tree() {
	rm -rf tree
	mkdir -p tree/.kpack
	py "$@" <<-'END'
	import mkarchive, os, sys
	a = mkarchive.Archive()
	for path in sys.argv[1:]:
	    os.makedirs(os.path.dirname("tree/" + path.lstrip("+")), exist_ok=True)
	    if path.startswith("+"):
	        a.add(path[1:], "gfx942", b"packed", type="bin", path=path[1:])
	    elif not path.endswith("/"):
	        open("tree/" + path, "w").write("text")
	a.write("tree/.kpack/a.kpack")
	END
}

# places EXPECTED PATH...: "x" for a mount, "x:" for an overlay, sorted
places() {
	local want=$1
	shift
	tree "$@"
	in_place tree >said
	awk -v t="$T/tree" '$1 == "kpackfs" || $3 == "fuse.kpackfs" {
		if (index($2, t) == 1) print substr($2, length(t) + 2) ($3 == "overlay" ? ":" : "") }' /proc/self/mounts |
		sort | paste -sd ' ' >have
	[ "$(cat have)" = "$want" ] || { echo "$*: have $(cat have), want $want"; return 1; }
	for path; do
		[[ $path != +* ]] || [ "$(cat "tree/${path#+}")" = packed ]
		[[ $path == [+]* || $path == */ ]] || [ "$(cat "tree/$path")" = text ]
	done
	in_place --undo tree 2>said
	[ ! -s said ]
	! grep "$T/tree" /proc/self/mounts || false
}

@test "the places: a mount where nothing else is, an overlay where other files are, no higher than needed" {
	must_be_root
	places '' lib/a.so share/empty/
	places lib/rocblas/library lib/a.so +lib/rocblas/library/x +lib/rocblas/library/gfx90a/y lib/rocblas/library/gfx90a/
	places 'lib/hipblaslt/library lib/rocblas/library' lib/x +lib/rocblas/library/x +lib/hipblaslt/library/gfx942/y
	# the overlay shows the library below it, but not the other tree
	places 'lib: share/miopen/db' lib/a.so +lib/ck +lib/rocblas/library/x +share/miopen/db/a
	places 'a: b/c:' a/x +a/y b/c/x +b/c/y
	places 'lib/rocblas/library lib/rocfft:' lib/a.so +lib/rocblas/library/x +lib/rocfft/a lib/rocfft/1.0/helper
	places ':' +ck b/c +b/y +d/x d/
	# an empty directory that no archive has stays visible; a packed file without its directory is none
	places 'l:' l/empty/ +l/x
	places 'l' +l/m/x l/m/ +l/x
	places 'a' a.c +a/x a/
	tree a/x +gone/y
	rmdir tree/gone
	in_place tree
	[ "$(mounts)" = 0 ]
	# files that are in the tree, too, need no mount; entries by key and links are no places
	tree +a/x a/x toc/lib/
	ln -s a b
	in_place tree
	[ "$(mounts)" = 0 ]
}

@test "all comes back, for one GPU too, from other places; twice is once" {
	must_be_root
	in_place "$P" >said
	diff <(sort said) - <<-END
	$P/lib/aotriton.images
	$P/lib/hipblaslt/library
	$P/lib/rocblas/library
	$P/lib/rocfft
	$P/share/miopen/db
	END
	same_as_whole
	nobody cat "$P/share/miopen/db/gfx942130.db.txt" >/dev/null
	[ -z "$(in_place "$P")" ]
	[ "$(mounts)" = 5 ]
	# what is missing is mounted again, and what daemons left that were killed
	umount "$P/lib/rocfft"
	in_place "$P" >said
	[ "$(cat said)" = "$P/lib/rocfft" ]
	same_as_whole
	kill -9 $(daemons)
	gone
	in_place "$P" >said
	[ -s said ]
	same_as_whole
	in_place --undo "$P"
	in_place --undo "$P"
	[ "$(mounts)" = 0 ]
	gone
	mv "$P/.kpack" "$T/archives, all"
	run -1 in_place "$P"
	in_place -o arch=gfx1100 "$T/archives, all" "$P"
	[ "$(ls "$P/share/miopen/db")" = gfx1100_36.db.txt ]
	[ "$(mounts)" = 2 ]
}

@test "an overlay: read-only, mapped, with new archives, and gone with its daemon" {
	must_be_root
	mkdir -p "$P/lib/rocfft"
	echo note >"$P/lib/rocfft/readme"
	echo note >whole/lib/rocfft/readme
	touch "$P/lib/rocfft/setuid" whole/lib/rocfft/setuid
	mount --bind "$P" "$P"
	mount -o remount,bind,nosuid "$P"
	in_place "$P"
	same_as_whole
	findmnt -no OPTIONS "$P/lib/rocfft" | grep -q nosuid
	! touch "$P/lib/rocfft/new" || false
	nobody cmp "$P/lib/rocfft/rocfft_kernel_cache.db" whole/lib/rocfft/rocfft_kernel_cache.db
	$python - "$P/lib/rocblas/library/Kernels.so-000-gfx942.hsaco" "$P/lib/rocfft/rocfft_kernel_cache.db" <<-'END'
	import mmap, sys
	for path in sys.argv[1:]:
	    with open(path, "rb") as f:
	        assert mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)[:4] == b"lib/"
	END
	# in use: it goes, and what is open can be read
	exec 7<"$P/lib/rocfft/rocfft_kernel_cache.db"
	run -0 in_place --undo "$P"
	[[ $output == *"/lib/rocfft: in use: unmounted all the same"* ]]
	cmp - whole/lib/rocfft/rocfft_kernel_cache.db <&7
	exec 7<&-
	[ "$(cat "$P/lib/rocfft/readme")" = note ]
	gone
	umount "$P"
	# over the archives themselves: the daemon does not hold the overlay
	tree a/x +y
	in_place "$T/tree"
	[ "$(cat tree/y)" = packed ]
	in_place --undo "$T/tree"
	[ "$(mounts)" = 0 ]
	gone
	[ "$(ls -A /run/kpackfs)" = .lock ]
}

@test "a failure, or a signal, leaves nothing mounted that was not mounted before" {
	must_be_root
	run -2 in_place
	run -2 in_place -f "$P"
	run -2 in_place -o auto_unmount "$P"
	run -2 kpackfs --undo "$P"
	run -2 in_place --undo "$P/.kpack" "$P"
	run -1 in_place "$T/nowhere"
	run -1 in_place "$T/mnt"
	run -2 in_place -o nonsense "$P"
	# one of them cannot be mounted: the kernel stacks overlays twice, and not more
	mkdir -p a b one
	touch a/readme
	mount -t overlay overlay -o lowerdir=a:b one
	mount -t overlay overlay -o lowerdir=one:b "$P/lib/rocfft"
	run -1 in_place "$P"
	[[ $output == *"$P/lib/rocfft: no overlay can be mounted here"* ]]
	gone
	umount "$P/lib/rocfft" one
	[ "$(mounts)" = 0 ]
	# an archive that cannot be read is left out
	echo text >"$P/.kpack/damaged.kpack"
	run -0 in_place "$P"
	[[ $output == *damaged.kpack:* ]]
}

@test "root follows no link of another user's, and mounts where it looked" {
	must_be_root
	mkdir -p victim/library
	tree +lib/rocblas/library/a lib/x
	rm -rf tree/lib/rocblas
	ln -s "$T/victim" tree/lib/rocblas
	chown -hR 65534:65534 tree/lib
	in_place tree
	[ "$(mounts)" = 0 ]
	ln -s "$T/tree" theirs
	chown -h 65534 theirs
	chmod 1777 .
	run -1 in_place "$T/theirs"
	chmod 0755 .
	# another user's tree is one to work on
	rm tree/lib/rocblas
	mkdir -p tree/lib/rocblas/library
	chown -hR 65534:65534 tree
	in_place tree
	[ "$(cat tree/lib/rocblas/library/a)" = packed ]
	in_place --undo tree
	[ "$(mounts)" = 0 ]
}

@test "an ordinary user mounts what needs no overlay" {
	chmod 0755 "$T"
	mkdir -p "$P/lib/rocfft"
	touch "$P/lib/rocfft/readme"
	as=()
	[ "$(id -u)" != 0 ] || { chown -R 65534:65534 "$P" && as=(nobody); }
	run -0 --separate-stderr "${as[@]}" "$KPACK_BIN/kpackfs" --in-place "$P"
	[ "${#lines[@]}" = 4 ]
	[[ $stderr == *"/lib/rocfft: packed files belong beside others here: only root can show them, by an overlay" ]]
	"${as[@]}" cmp "$P/share/miopen/db/gfx942130.db.txt" whole/share/miopen/db/gfx942130.db.txt
	"${as[@]}" "$KPACK_BIN/kpackfs" --in-place --undo "$P"
	[ "$(mounts)" = 0 ]
}

# unit FILE KEY
unit() { sed -n "s/^$2=//p" "$contrib/systemd/$1"; }

@test "systemd's units do what they say" {
	must_be_root
	mkdir -p opt
	mv "$P" opt/rocm
	P=$T/opt/rocm
	# to this test's places, and mount(8)'s way to a program that is not installed
	local unit=mnt-kernels.mount what where options type
	what=$(unit $unit What | sed "s|^/opt|$T/opt|")
	where=$(unit $unit Where | sed "s|^/mnt/kernels|$T/mnt|")
	options=$(unit $unit Options | sed 's/arch=auto/arch=all/')
	type=$(unit $unit Type | sed "s|kpackfs|$KPACK_BIN/kpackfs|")
	mount -t "$type" "$what" "$where" -o "$options"
	[ -e mnt/lib/rocblas/library/Kernels.so-000-gfx942.hsaco ]
	unit=kpackfs-in-place@.service
	OPTIONS=arch=all
	eval "$(unit $unit ExecStart | sed "s|%f|$P|")"
	same_as_whole
	eval "$(unit $unit ExecStop | sed "s|%f|$P|")"
	[ "$(mounts)" = 1 ]
	where=$(unit mnt-kernels.mount Where)
	[ mnt-kernels.mount = "$(echo "${where#/}" | tr / -).mount" ]
}

@test "systemd takes the units" {
	# where there is no systemd nobody can judge
	mkdir units
	for f in "$contrib"/systemd/*.mount "$contrib"/systemd/*policies.service; do
		sed "s|=kpack |=$KPACK_BIN/kpack |" "$f" >"units/${f##*/}"
	done
	sed "s|=kpackfs |=$KPACK_BIN/kpackfs |" "$contrib/systemd/kpackfs-in-place@.service" >units/kpackfs-in-place@opt.service
	! command -v systemd-analyze || systemd-analyze verify --man=no units/*
}
