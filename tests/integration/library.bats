#!/usr/bin/env bats
# A program that was built for AMD's library, without any of our headers, runs on ours.
# tests/stub/amd_client calls everything that AMD's header declares.  It was linked with a
# stand-in for AMD's library whose functions all fail.

bats_require_minimum_version 1.5.0
load packing

client() { "$KPACK_BIN/tests/stub/amd_client" "$T"; }

inputs() {
	mkdir -p "$T/lib"
	$python "$tools/mkarchive.py" "$T/x.kpack" <<-END
		{"scheme": "$1", "arches": ["gfx942", "gfx90a:xnack+"], "entries": [
			{"key": "lib/x.so#1", "arch": "gfx942", "data": "code for gfx942"},
			{"key": "lib/x.so#1", "arch": "gfx90a:xnack+", "data": "code for gfx90a:xnack+"}]}
	END
}

answered() { # how many functions did what they must
	sed -n 's/^ok //p' "$1" | sort -u | wc -l
}

@test "the program asks for AMD's fourteen functions and no other" {
	nm -D --undefined-only "$KPACK_BIN/tests/stub/amd_client" | awk '{ print $2 }' | grep '^kpack' | sort >asked
	[ "$(wc -l <asked)" = 14 ]
	nm -D --defined-only "$KPACK_BIN/tests/stub/amd/librocm_kpack.so.0" |
		awk '{ print $3 }' | grep '^kpack' | sort | diff asked -
	nm -D --defined-only "$KPACK_BIN/librocm_kpack.so.0" | awk '{ print $3 }' | sort | comm -23 asked - >missing
	[ ! -s missing ]
}

@test "with the library it was linked with it gets nothing" {
	inputs none
	run -1 client
	! [[ "$output" =~ (^|$'\n')"ok kpack_open" ]] || false
}

@test "with ours by LD_LIBRARY_PATH each of them works" {
	for scheme in none zstd-per-kernel; do
		inputs $scheme
		LD_LIBRARY_PATH=$KPACK_BIN client >out
		cat out
		[ "$(answered out)" = 14 ]
		! grep '^not ok' out || false
	done
}

@test "with ours in the file of the other each of them works" {
	inputs zstd-per-kernel
	mkdir amd
	cp "$KPACK_BIN/tests/stub/amd_client" .
	cp "$KPACK_BIN/librocm_kpack.so.0" amd
	./amd_client "$T" >out
	[ "$(answered out)" = 14 ]
}

@test "it reads bundles compressed with zstd, and says that it cannot read zlib" {
	case $KPACK_MODE in asan | tsan) return ;; esac # Python lacks their run time
	cat >embedded.py <<-'END'
		import ctypes, os, struct, sys, zlib
		sys.path.insert(0, os.environ["tools"])
		import mkfat
		class Error(ctypes.Structure):
		    _fields_ = [("code", ctypes.c_int), ("errno", ctypes.c_int), ("text", ctypes.c_char * 240)]
		lib = ctypes.CDLL(os.environ["KPACK_BIN"] + "/librocm_kpack.so.0")
		plain = mkfat.bundle([("gfx942", b"code for gfx942")], 0, 4096)
		zipped = struct.pack("<4sHHIQ", b"CCOB", 1, 0, len(plain), 0) + zlib.compress(plain)
		for data, want in ((plain, 0), (mkfat.bundle([("gfx942", b"code for gfx942")], 3, 4096), 0), (zipped, 8)):
		    open("embedded", "wb").write(data)
		    code, size, why = ctypes.c_void_p(), ctypes.c_size_t(), Error()
		    arches = (ctypes.c_char_p * 1)(b"gfx942")
		    got = lib.kpackx_load_embedded(b"embedded", 0, arches, 1, ctypes.byref(code), ctypes.byref(size),
		                                   ctypes.byref(why))
		    assert got == want, (got, want, why.text)
		    if got == 0:
		        assert ctypes.string_at(code.value, size.value) == b"code for gfx942"
		        lib.kpack_free_code_object(code)
		assert why.text == b"ccob at offset 0: method 0 (zlib) is not built in, only zstd", why.text
	END
	tools=$tools $python embedded.py
}
