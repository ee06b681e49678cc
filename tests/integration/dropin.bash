# SPDX-License-Identifier: MIT
# clang-22 with LLVM's own bundler and packager, and with stand-ins for them.

# The directory of the stand-ins; tests of the tests set it to a directory of LLVM's
# tools.
standins=${DROPIN_TOOLS-$KPACK_BIN/clang}
llvm=$(dirname "$(readlink -f "$(command -v clang-22)")")

# DIR for clang's -B: each of FROM's tools under a shim that writes down its calls, and what
# looks for the tools beside itself before it looks anywhere else.
toolbox() { # DIR FROM
	local tool
	mkdir -p "$1"
	for tool in clang-offload-bundler clang-offload-packager llvm-offload-binary; do
		[ -x "$2/$tool" ] || continue
		cat >"$1/$tool" <<-END
		#!/bin/sh
		"$2/$tool" "\$@"
		status=\$?
		echo "$tool \$status \$*" >>'$PWD/${1%.tools}.calls'
		exit \$status
		END
		chmod +x "$1/$tool"
	done
	cp "$llvm/clang-linker-wrapper" "$1"
	ln -s "$llvm/clang" "$1/clang"
}

# The unit's ID would else follow from the command line.
compile() { # NAME OPTION...
	clang-22 -x hip -nogpuinc -nogpulib -O1 "${offload[@]}" "${tools[@]}" -cuid="id_$1" "${@:2}" \
		-c "$1.hip" -o "$1.o"
}

# Link by clang-22, which links code for GPUs too.
hip_link() { # OPTION... FILE...
	link "${tools[@]}" --hip-link "${offload[@]}" -shared -fuse-ld=lld "$@"
}

# Run BUILD, which makes lib.so, in one place with both; what it leaves goes to real and ours.
both() { # BUILD ARGUMENT...
	local side
	for side in real ours; do
		rm -rf "$side" "$side.calls" here
		mkdir here
		cp ./*.hip ./*.c here
		tools=(-B "$PWD/$side.tools")
		(cd here && side=$side "$@") || { echo "$side: $* failed"; cat "$side.calls"; return 1; }
		mv here "$side"
	done
}

# Every call of ours succeeded, there were COUNT ones of TOOL, and LLVM's got the same.
called() { # TOOL COUNT
	[ "$(grep -c "^$1 0 " ours.calls)" -eq "$2" ] || { cat ours.calls; return 1; }
	! grep -v '^[^ ]* 0 ' ours.calls || false
	# names of temporary files aside
	diff <(unnamed real.calls) <(unnamed ours.calls)
}

unnamed() { # FILE
	sed -E 's/-[0-9a-f]{6}\>//g' "$1"
}

# The stub runtime gets the same from both, and something.
same_objects() { # FILE [FUNCTION]
	local who side
	record "real/$1" "" "${2-answer}" >real.log
	[ "$(awk 'NF == 5' real.log | wc -l)" -gt 0 ] || { echo "$1: registers nothing"; return 1; }
	who=$(agents real.log)
	for side in real ours; do
		record "$side/$1" "" "${2-answer}" >$side.has
		record "$side/$1" "$who" "${2-answer}" >$side.log
	done
	diff real.has ours.has
	diff real.log ours.log
}

same_bytes() { # FILE...
	local file
	for file; do
		cmp "real/$file" "ours/$file"
	done
}
