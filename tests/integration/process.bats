#!/usr/bin/env bats
# librocm_kpack in programs that load from constructors, unload it, fork, or are set-user-ID.
# bats file_tags=plain

load packing.bash

process() {
	$python "$tools/process.py" "$1" "$KPACK_BIN/librocm_kpack.so.0" "${@:2}"
}

archive() {
	echo '{"entries": [{"key": "lib/x.so#0", "arch": "gfx1100",
		"data": {"size": 100000, "seed": 1}}]}' | $python "$tools/mkarchive.py" x.kpack
}

@test "a constructor may load, while its library is being loaded itself" {
	archive
	cat >user.c <<-'END'
	#include <rocm_kpack/kpack.h>

	static const char marker[] = "\x82\xb2" "kpack_search_paths\x91\xa7" "x.kpack"
				     "\xab" "kernel_name\xa8" "lib/x.so";
	static size_t size;

	__attribute__((constructor)) static void load(void)
	{
		const char *arch = "gfx1100";
		kpack_cache_t cache;
		char path[4096];
		void *data;

		if (kpack_discover_binary_path(marker, path, sizeof(path), NULL) ||
		    kpack_cache_create(&cache))
			return;
		if (!kpack_load_code_object(cache, marker, path, 0, &arch, 1, &data, &size))
			kpack_free_code_object(data);
		kpack_cache_destroy(cache);
	}

	int answer(void);
	int answer(void)
	{
		return (int)size;
	}
	END
	${CC:-cc} -shared -fPIC -I "$KPACK_SRC/core" user.c -o libuser.so \
		-L "$KPACK_BIN" -lrocm_kpack -Wl,-rpath,"$(realpath "$KPACK_BIN")"
	process constructor "$T/libuser.so"
}

@test "it can be unloaded, and nothing of it is called afterwards" {
	process unloaded
	process left
}

@test "children made while threads load go on loading" {
	archive
	process forked "$T/x.kpack" "lib/x.so#0" gfx1100
}

@test "a program with more rights than its user is not told anything by the environment" {
	[ "$(id -u)" = 0 ] || skip "only root can make such a program"
	archive
	cat >asks.c <<-'END'
	#include <rocm_kpack/kpack.h>
	#include <stdio.h>
	#include <sys/auxv.h>

	static const char marker[] = "\x82\xb2" "kpack_search_paths\x91\xa7" "x.kpack"
				     "\xab" "kernel_name\xa8" "lib/x.so";

	int main(int argc, char **argv)
	{
		const char *arch = "gfx1100";
		kpack_cache_t cache;
		size_t size;
		void *data;
		int code;

		if (argc != 2 || kpack_cache_create(&cache))
			return 2;
		code = kpack_load_code_object(cache, marker, argv[1], 0, &arch, 1, &data, &size);
		if (!code)
			kpack_free_code_object(data);
		kpack_cache_destroy(cache);
		printf("secure %lu, code %d\n", getauxval(AT_SECURE), code);
		return 0;
	}
	END
	${CC:-cc} -I "$KPACK_SRC/core" asks.c -o asks \
		-L "$KPACK_BIN" -lrocm_kpack -Wl,-rpath,"$(realpath "$KPACK_BIN")"
	ROCM_KPACK_DISABLE=1 ./asks "$T/lib.so" >out
	[ "$(cat out)" = "secure 0, code 8" ]
	ROCM_KPACK_PATH=/none ./asks "$T/lib.so" >out
	[ "$(cat out)" = "secure 0, code 13" ]
	ROCM_KPACK_DEBUG=1 ./asks "$T/lib.so" >out 2>err
	grep -q '^kpack: chosen: ' err
	chmod 4755 asks
	setpriv --reuid 65534 --regid 65534 --clear-groups ./asks "$T/lib.so" >out
	grep -q 'secure 1' out || skip "set-user-ID does nothing here"
	for variable in DISABLE=1 PATH=/none PATH_PREFIX=/none DEBUG=1; do
		env ROCM_KPACK_$variable setpriv --reuid 65534 --regid 65534 --clear-groups \
			./asks "$T/lib.so" >out 2>&1
		[ "$(cat out)" = "secure 1, code 0" ]
	done
}
