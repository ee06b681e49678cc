#!/usr/bin/env bats
# The extras that split-wheel makes, and the packages that dpkg has installed; what else
# kpack detect prints is in tests/golden.

# bats file_tags=single

load packing

# topology VERSION...: nodes of these, 0 is a CPU
topology() {
	local i=0 v
	rm -rf top
	mkdir -p top/nodes
	for v; do
		mkdir -p "top/nodes/$i"
		printf 'cpu_cores_count 1\ngfx_target_version %s\nsimd_count 2\n' "$v" >"top/nodes/$i/properties"
		i=$((i + 1))
	done
}

# detects STATUS OPTION...: standard output must be what stands on standard input
detects() {
	local want=$1
	shift
	status=0
	kpack detect "$@" >got 2>err || status=$?
	[ "$status" -eq "$want" ] || { echo "exit $status:"; cat got err; return 1; }
	diff - got
}

@test "whatever features are stated, the extra is one that split-wheel makes" {
	detects 0 --arch gfx90a:xnack+,gfx90a:xnack-,gfx90a:sramecc+:xnack-,gfx1100 --dist d <<-END
		d[device-gfx90a]
		d[device-gfx1100]
	END
	list=gfx90a:xnack+,gfx90a:xnack-,gfx906:sramecc+:xnack-,gfx942
	detects 0 --arch $list --dist d --pip <<<'d[device-gfx90a,device-gfx906,device-gfx942]'
	wheel=$($python "$tools/mkwheel.py" make --arches $list .)
	kpack split-wheel -q "$wheel" -o dist
	unzip -p dist/torch-*.whl '*/METADATA' | sed -n 's/^Provides-Extra: //p' >extras
	kpack detect --arch $list --json | jq -r '.[].extras[]' | sort -u >want
	[ "$(wc -l <want)" = 6 ]
	[ -z "$(sort -u extras | comm -13 - want)" ]
	# a machine's driver says no features, nor of which target there is code
	wheel=$($python "$tools/mkwheel.py" make --arches gfx908:sramecc+:xnack-,gfx9-4-generic,gfx1250-strict odd)
	kpack split-wheel -q "$wheel" -o served
	unzip -p served/torch-*.whl '*/METADATA' | sed -n 's/^Provides-Extra: //p' >extras
	kpack detect --arch gfx1250-strict,gfx9-4-generic:xnack- --json | jq -r '.[].extras[]' | sort >want
	[ "$(wc -l <want)" = 4 ]
	[ -z "$(sort -u extras | comm -13 - want)" ]
	topology 90008 90402 120500
	kpack detect --topology top --json | jq -r '.[].extras[]' | sort >want
	[ "$(wc -l <want)" = 6 ]
	[ -z "$(sort -u extras | comm -13 - want)" ]
}

package() { # NAME STATUS FIELD...: a paragraph of dpkg's list
	printf '%s\n' "Package: $1" "Status: $2" 'Version: 1' "${@:3}" 'Description: x' ' X-Rocm-Gpu-Architecture: gfx1' ''
}

@test "installed packages: what to install, and what to remove" {
	local ok='install ok installed'
	{
		package libblas1 "$ok" 'Suggests: doc (>= 1) | manual, libblas1-device-code (= 1)'
		package libblas1-gfx1100 "$ok" 'Enhances: libblas1' 'X-Rocm-Gpu-Architecture: gfx1100'
		package libblas1-gfx1030 "$ok" 'Enhances: libblas1' 'x-rocm-gpu-architecture: gfx1030,' ' gfx1031'
		# none for a GPU is installed, and one that was removed does not count
		package libfft0 "$ok" 'Suggests: libfft0-device-code'
		package libfft0-gfx1100 'deinstall ok config-files' 'Enhances: libfft0' 'X-Rocm-Gpu-Architecture: gfx1100'
		# generic code; one whose base only an installed part states
		package librand1 "$ok" 'Suggests: x'
		package librand1-gfx11-generic "$ok" 'Enhances: librand1' 'X-Rocm-Gpu-Architecture: gfx11-generic'
		# families; what is not known stays
		package libsolver0-gfx11 "$ok" 'Enhances: libsolver0' 'X-Rocm-Gpu-Architecture: gfx110X'
		package libsolver0-new "$ok" 'Enhances: libsolver0' 'X-Rocm-Gpu-Architecture: gfx99zz'
		package libsolver0 "$ok" 'Suggests: libsolver0-device-code'
		# with code of its own: it cannot be taken apart
		package libsparse1 "$ok" 'X-Rocm-Gpu-Architecture: gfx900 gfx906'
		# no name that can be printed
		package 'x;reboot' "$ok" 'Suggests: x;reboot-device-code'
	} >list
	topology 0 110000 90010
	cat >advice <<-END
		install libblas1-gfx90a
		remove libblas1-gfx1030
		install libfft0-gfx1100
		install libfft0-gfx90a
		install librand1-gfx90a
		install libsolver0-gfx90a
	END
	detects 1 --topology top --installed --dpkg-status list <advice
	[ ! -s err ]
	detects 1 --topology top --installed --apt --dpkg-status list <<<'libblas1-gfx90a libblas1-gfx1030- libfft0-gfx1100 libfft0-gfx90a librand1-gfx90a libsolver0-gfx90a'
	sed '/^Package: lib[frs]/,/^$/d' list >less
	detects 0 --arch gfx1031 --installed --dpkg-status less <<-END
		remove libblas1-gfx1100
	END
	: >none
	detects 0 --arch gfx1100 --installed --dpkg-status none </dev/null
	detects 0 --arch gfx1100 --installed --apt --dpkg-status none </dev/null
	# what dpkg-query prints has all fields of all packages
	if command -v dpkg-query >/dev/null && unshare -m true 2>/dev/null; then
		mkdir -p admin/info admin/updates
		{
			cat list
			package libother1 "$ok" 'Enhances: libblas1'
		} | sed '/^Package: x;/,/^$/d; s/^Version: 1/&\nArchitecture: amd64\nMulti-Arch: same/' >admin/status
		# installed for two machines
		package libblas1-gfx1030 'install ok triggers-pending' 'Enhances: libblas1' \
			'Architecture: i386' 'Multi-Arch: same' 'Triggers-Pending: x' 'X-Rocm-Gpu-Architecture: gfx1030' >>admin/status
		unshare -m --propagation private sh -c 'mount --bind admin /var/lib/dpkg && dpkg-query -W >all 2>/dev/null &&
			"$KPACK_BIN/kpack" detect --topology top --installed; echo $?' >have 2>err
		cat err >&2
		grep -q libother1 all
		diff have <(cat advice; echo 1)
	fi
	# without a GPU, nothing goes
	topology 0
	detects 1 --topology top --installed --dpkg-status list </dev/null
	detects 1 --arch gfx1100 --installed --dpkg-status missing </dev/null
	grep -q '^kpack: missing: ' err
	mkdir top/nodes/2
	printf 'gfx_target_version 110000\n' >top/nodes/2/properties
	printf 'gfx_target_version x\n' >top/nodes/0/properties
	detects 1 --topology top --installed --dpkg-status list </dev/null
	detects 2 --installed --json </dev/null
	detects 2 --dpkg-status list </dev/null
	detects 2 --apt </dev/null
	# as dpkg itself writes it
	command -v dpkg >/dev/null || return 0
	mkdir -p admin/updates admin/info
	cp list admin/status
	sed -i '/x;reboot/,$d' admin/status
	dpkg-query --admindir=admin -W -f '${X-Rocm-Gpu-Architecture}\n' libblas1-gfx1030 >fields
	grep -q gfx1030 fields
}
