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


# A program that loads lib/x.so#0 for the binary at its argument.
asks() {
	cat >asks.c <<-'END'
	#include <rocm_kpack/kpack.h>
	#include <rocm_kpack/kpackx.h>
	#include <stdio.h>
	#include <string.h>
	#include <sys/auxv.h>

	static const char marker[] = "\x82\xb2" "kpack_search_paths\x91\xa7" "x.kpack"
				     "\xab" "kernel_name\xa8" "lib/x.so";

	int main(int argc, char **argv)
	{
		struct kpackx_error why = {0};
		const char *arch = "gfx1100";
		kpack_cache_t cache;
		size_t size;
		void *data;
		int code;

		if (argc < 2 || kpack_cache_create(&cache))
			return 2;
		if (argc == 2)
			code = kpackx_load_code_object(cache, marker, argv[1], 0, &arch, 1, &data,
						       &size, &why);
		else
			code = kpackx_load_embedded(argv[1], 0, &arch, 1, &data, &size, &why);
		if (!code)
			kpack_free_code_object(data);
		kpack_cache_destroy(cache);
		printf("secure %lu, code %d%s\n", getauxval(AT_SECURE), code,
		       strstr(why.text, "not trusted") ? ", not trusted" : "");
		return 0;
	}
	END
	cp "$KPACK_BIN/librocm_kpack.so.0" . # a user may not search the build's directory
	${CC:-cc} -I "$KPACK_SRC/core" asks.c -o asks -L "$KPACK_BIN" -lrocm_kpack -Wl,-rpath,"$T"
	cp asks plain
}

# Run a program as an ordinary user, and compare what it prints.
user_gets() { # WANTED COMMAND...
	local wanted=$1 got
	shift
	got=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$@" 2>&1) ||
		{ echo "$*: $got"; return 1; }
	[ "$got" = "$wanted" ] || { echo "$*: '$got', not '$wanted'"; return 1; }
}

# Give a program more rights than its user, in each of the ways.
raise() { # WAY PROGRAM
	chown 0:0 "$2" && chmod 755 "$2"
	setcap -r "$2" 2>/dev/null || true
	case $1 in
	user) chmod 4755 "$2" ;;
	group) chgrp 1 "$2" && chmod 2755 "$2" ;;
	capability) setcap cap_net_raw+ep "$2" ;;
	esac
}

needs_rights() {
	[ "$(id -u)" = 0 ] || skip "only root can make such a program"
	local options
	options=$(findmnt -no OPTIONS -T "$T")
	[[ ,$options, != *,nosuid,* ]] || skip "$T is mounted with nosuid"
}

@test "a program with more rights than its user ignores the environment" {
	needs_rights
	archive
	asks
	local way
	for way in none user group capability; do
		raise $way asks
		if [ $way = none ]; then
			user_gets "secure 0, code 0" ./asks "$T/lib.so"
			user_gets "secure 0, code 8" env ROCM_KPACK_DISABLE=1 ./asks "$T/lib.so"
			user_gets "secure 0, code 13" env ROCM_KPACK_PATH=/none ./asks "$T/lib.so"
			user_gets "secure 0, code 0" env ROCM_KPACK_PATH="$T/x.kpack" ./asks /none/x
			user_gets "secure 0, code 0" env ROCM_KPACK_PATH_PREFIX="$T/x.kpack" ./asks /none/x
			ROCM_KPACK_DEBUG=1 ./asks "$T/lib.so" 2>err
			grep -q '^kpack: chosen: ' err
			continue
		fi
		for variable in NONE=1 DISABLE=1 PATH=/none DEBUG=1; do
			user_gets "secure 1, code 0" env ROCM_KPACK_$variable ./asks "$T/lib.so"
		done
		for variable in PATH PATH_PREFIX; do
			user_gets "secure 1, code 13" env ROCM_KPACK_$variable="$T/x.kpack" ./asks /none/x
		done
	done
}

@test "a program with more rights than its user loads only what root has installed" {
	needs_rights
	archive
	asks
	local way place secure
	# a user's directory: with a copy of the archive, or with a link to root's
	mkdir own hard soft opt
	cp x.kpack own/ && chown 65534 own/x.kpack
	ln x.kpack hard/x.kpack
	ln -s "$T/x.kpack" soft/x.kpack
	# root's directories, in which others may write
	install -d -m 777 open && cp x.kpack open/
	install -d -m 1777 sticky && cp x.kpack sticky/
	install -d -m 755 sticky/below && cp x.kpack sticky/below/
	# root's directory with a user's archive, one that others may write to, and a link to it
	install -d his shared away
	cp x.kpack his/ && chown 65534 his/x.kpack
	cp x.kpack shared/ && chmod 666 shared/x.kpack
	ln -s ../his/x.kpack away/x.kpack
	cp x.kpack opt/
	cp plain own/binary
	ln -s "$T/plain" soft/binary
	chown 65534 own hard soft
	for way in none user group capability; do
		raise $way asks
		secure=$([ $way = none ] && echo 0 || echo 1)
		for place in own hard soft; do
			ln -f asks $place/asks
		done
		for place in own hard soft open sticky his shared away; do
			if [ $way = none ]; then
				user_gets "secure 0, code 0" "$T/$place/../asks" "$T/$place/lib.so"
			else
				user_gets "secure 1, code 13, not trusted" ./asks "$T/$place/lib.so"
				[ ! -e $place/asks ] ||
					user_gets "secure 1, code 13, not trusted" $place/asks "$PWD/$place/lib.so"
				(cd $place && user_gets "secure 1, code 13, not trusted" ../asks lib.so)
			fi
		done
		# code of the binary itself: there is none in it, where it may be opened
		if [ $way = none ]; then
			user_gets "secure 0, code 5" ./asks "$T/own/binary" embedded
			user_gets "secure 0, code 5" ./asks "$T/soft/binary" embedded
		else
			user_gets "secure 1, code 1, not trusted" ./asks "$T/own/binary" embedded
			user_gets "secure 1, code 1, not trusted" ./asks "$T/soft/binary" embedded
		fi
		user_gets "secure $secure, code 5" ./asks "$T/plain" embedded
		for place in . opt sticky/below; do
			user_gets "secure $secure, code 0" ./asks "$T/$place/lib.so"
		done
	done
}

@test "kpack with more rights than its user does not use the user's TMPDIR" {
	needs_rights
	local way
	mkfat --bundles 1 fat.so
	for way in none user group capability; do
		cp "$KPACK_BIN/kpack" tool
		raise $way tool
		status=0
		as_nobody env TMPDIR=/none ./tool report -q -o - fat.so >page 2>err || status=$?
		if [ $way = none ]; then
			grep -q /none err
		else
			[ "$status" -eq 0 ] || { cat err; false; }
			[ ! -s err ]
		fi
	done
}
