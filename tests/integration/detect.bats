#!/usr/bin/env bats
# The GPUs of a machine, the names of the packages and archives they need, and the
# archives they can use.

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

archive() { # FILE GROUP ARCH...
	local file=$1 group=$2 arch entries=
	shift 2
	for arch; do
		entries+="{\"key\": \"lib/x.so#0\", \"arch\": \"$arch\", \"data\": \"$arch\"},"
	done
	echo "{\"group\": \"$group\", \"entries\": [${entries%,}]}" | $python "$tools/mkarchive.py" "$file"
}

@test "a line for each kind, in the order of the nodes" {
	topology 0 110001 90402 90402 120001 150000
	detects 0 --topology top <<-END
		gfx1101 gfx110x gfx11 gfx110X gfx11-generic
		gfx942 gfx9_4 gfx9 gfx94X gfx9-4-generic
		gfx1201 gfx12_0 gfx12 gfx120X gfx12-generic
		gfx1500 - - - -
	END
	[ ! -s err ]
	kpack detect --topology top/nodes | diff got -
}

@test "--arch auto: those of the machine, with others" {
	topology 0 110001 90402
	kpack detect --arch gfx1201,auto,gfx942 --topology top | cut -d ' ' -f 1 >got
	[ "$(paste -sd ' ' got)" = "gfx1201 gfx942 gfx1101" ]
	topology 0
	detects 1 --arch gfx1201,auto --topology top <<<'gfx1201 gfx12_0 gfx12 gfx120X gfx12-generic'
	[ "$(cat err)" = "kpack: top: no GPU: name the GPUs with --arch" ]
}

@test "names of archives, packages and wheels" {
	topology 0 110000 90010
	detects 0 --topology top --group torch <<-END
		torch_gfx1100.kpack
		torch_gfx90a.kpack
	END
	detects 0 --topology top --package rocm-blas <<-END
		rocm-blas-gfx1100
		rocm-blas-gfx90a
	END
	detects 0 --topology top --dist torch <<-END
		torch[device-gfx1100]
		torch[device-gfx90a]
	END
	detects 0 --topology top --group g --package pp --dist D <<-END
		g_gfx1100.kpack
		pp-gfx1100
		D[device-gfx1100]
		g_gfx90a.kpack
		pp-gfx90a
		D[device-gfx90a]
	END
	detects 0 --topology top --dist torch --pip <<<'torch[device-gfx1100,device-gfx90a]'
	detects 0 --topology top --package rocm-blas --apt <<<'rocm-blas-gfx1100 rocm-blas-gfx90a'
}

@test "families, each once" {
	topology 110000 110003 90010 90006 110501
	detects 0 --topology top --family <<-END
		gfx110X
		gfx90X
		gfx115X
	END
	detects 0 --topology top --family --group torch --package rocm-blas <<-END
		torch-gfx110X.kpack
		rocm-blas-gfx110x
		torch-gfx90X.kpack
		rocm-blas-gfx90x
		torch-gfx115X.kpack
		rocm-blas-gfx115x
	END
	detects 0 --topology top --family --dist torch --pip <<<'torch[device-gfx110X,device-gfx90X,device-gfx115X]'
	# an unknown one is reported, and the other ones are listed
	topology 150000 90402
	detects 1 --topology top --family --dist torch --pip <<<'torch[device-gfx94X]'
	grep -qxF 'kpack: gfx1500: its family is not known' err
	topology 150000
	detects 1 --topology top --family --dist torch --pip </dev/null
	detects 1 --topology top --family --package torch --apt </dev/null
	detects 1 --topology top --family --json <<-END
		[
		{"arch":"gfx1500","subfamily":null,"family":null,"series":null,"generic":null}
		]
	END
}

@test "JSON says the same" {
	topology 0 110000 90010
	kpack detect --topology top --json --group g --package pp --dist D >out.json
	py <<-END
		import json
		a, b = json.load(open("out.json"))
		assert a == {"arch": "gfx1100", "subfamily": "gfx110x", "family": "gfx11", "series": "gfx110X",
		             "generic": "gfx11-generic", "archive": "g_gfx1100.kpack", "package": "pp-gfx1100",
		             "wheel": "D[device-gfx1100]", "extras": ["device-gfx1100", "gfx1100"]}, a
		assert b["arch"] == "gfx90a" and b["generic"] is None, b
	END
	kpack detect --topology top --json --family --dist D >out.json
	[ "$(jq -r '.[0].wheel + .[1].extras[1]' out.json)" = 'D[device-gfx110X]gfx90X' ]
}

@test "no GPU, no driver, nonsense: exit 1, and nothing for a script to take" {
	topology 0 0
	for options in "" "--dist torch --pip" "--package x1 --apt" "--family"; do
		# shellcheck disable=SC2086 # words are meant
		detects 1 --topology top $options </dev/null
		grep -qxF 'kpack: top: no GPU: name the GPUs with --arch' err
		# shellcheck disable=SC2086
		detects 1 --topology nowhere $options </dev/null
		grep -qxF 'kpack: nowhere: no GPU, because the KFD driver is missing: name the GPUs with --arch' err
	done
	[ "$(kpack detect --topology top --json 2>/dev/null | jq -c .)" = '[]' ]
	touch file
	detects 1 --topology file </dev/null
	grep -q '^kpack: file: cannot open: ' err
	# a node that makes no sense leaves the others
	topology 0 nonsense 90402
	detects 0 --topology top --group g <<<g_gfx942.kpack
	grep -qF 'top/nodes/1/properties: gfx_target_version "nonsense" is no number' err
	topology 990000000000 161716 0
	detects 1 --topology top </dev/null
}

@test "other GPUs than this machine's" {
	detects 0 --arch gfx90a:xnack+,gfx90a:xnack+,gfx12-generic --group g --package pp --dist d <<-END
		g_gfx90a:xnack+.kpack
		pp-gfx90a-xnack-on
		d[device-gfx90a]
		g_gfx12-generic.kpack
		pp-gfx12-generic
		d[device-gfx12-generic]
	END
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

@test "usage" {
	for options in "--pip" "--apt --dist a" "--pip --package pp" "--dist a;b" "--group a/b" "--package P" \
		"--dist d --pip --json" "--arch gfx90a:no" "--arch gfx942 --topology top" "--arch all" "--nothing" \
		"--package pp --apt --dist d --pip" "--package pp --apt archive.kpack"; do
		# shellcheck disable=SC2086
		detects 2 $options </dev/null
		grep -q '^usage: kpack detect' err
	done
}

@test "which archives serve" {
	topology 0 110000 90010
	mkdir .kpack
	archive .kpack/blas_gfx1100.kpack blas gfx1100
	archive .kpack/blas_gfx90a.kpack blas gfx90a:xnack+
	archive .kpack/blas_generic.kpack blas generic
	archive .kpack/dnn-gfx11.kpack dnn gfx11-generic
	archive .kpack/notes_generic.kpack notes generic
	detects 1 --topology top .kpack <<-END
		gfx1100 .kpack/blas_generic.kpack
		gfx1100 .kpack/blas_gfx1100.kpack
		gfx1100 .kpack/dnn-gfx11.kpack
		gfx1100 .kpack/notes_generic.kpack
		gfx90a .kpack/blas_generic.kpack
		gfx90a .kpack/blas_gfx90a.kpack
		gfx90a .kpack/notes_generic.kpack
	END
	# a group for every GPU alone is not missed
	[ "$(cat err)" = "kpack: gfx90a: missing: dnn_gfx90a.kpack" ]
	detects 0 --topology top --group blas .kpack <<-END
		gfx1100 .kpack/blas_generic.kpack
		gfx1100 .kpack/blas_gfx1100.kpack
		gfx90a .kpack/blas_generic.kpack
		gfx90a .kpack/blas_gfx90a.kpack
	END
	[ ! -s err ]
	detects 1 --topology top --group fft .kpack </dev/null
	[ "$(wc -l <err)" = 2 ]
	detects 0 --arch gfx1103 .kpack/dnn-gfx11.kpack <<<'gfx1103 .kpack/dnn-gfx11.kpack'
	detects 0 --arch gfx90a:xnack+ .kpack/blas_gfx90a.kpack <<<'gfx90a:xnack+ .kpack/blas_gfx90a.kpack'
	detects 1 --arch gfx90a:xnack- .kpack/blas_gfx90a.kpack </dev/null
	kpack detect --topology top --json .kpack >out.json || [ $? -eq 1 ]
	[ "$(jq -c 'map([.arch, (.archives | map(ltrimstr(".kpack/") | rtrimstr(".kpack"))), .missing])' out.json)" = \
		'[["gfx1100",["blas_generic","blas_gfx1100","dnn-gfx11","notes_generic"],[]],["gfx90a",["blas_generic","blas_gfx90a","notes_generic"],["dnn"]]]' ]
}

@test "archives that cannot be read, names that are no text" {
	topology 110000
	mkdir k
	archive k/a.kpack $'a' gfx1100
	head -c 100 k/a.kpack >k/b.kpack
	detects 1 --topology top k <<<'gfx1100 k/a.kpack'
	grep -q '^kpack: k/b.kpack: ' err
	detects 1 --topology top nowhere </dev/null
	mkdir empty
	detects 1 --topology top empty </dev/null
	grep -q '^kpack: empty: no archives' err
	mv k/a.kpack $'k/\033[1m.kpack'
	rm k/b.kpack
	detects 0 --topology top k <<<'gfx1100 k/\033[1m.kpack'
}

@test "lost output is reported" {
	topology 110000
	status=0
	kpack detect --topology top >/dev/full 2>err || status=$?
	[ "$status" = 1 ]
	grep -q '^kpack: standard output: ' err
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
