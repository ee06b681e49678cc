#!/usr/bin/env bats
# Wheels split by architecture, checked by Python's zipfile, pip and a runtime.
#
# The tests tagged single differ in metadata, names and options; the threads that unpack, pack and compress
# are those of the other tests.
#
# bats file_tags=long

load packing

examples=$KPACK_BIN/contrib/examples
mkwheel() { $python "$tools/mkwheel.py" "$@"; }
split() { kpack split-wheel -q "$@"; }
TAG=py3-none-linux_x86_64
HOST=torch-2.10.0+rocm7.1-$TAG.whl

device() { echo "amd_torch_device_$1-2.10.0+rocm7.1-$TAG.whl"; }
info() { echo "${1%%-*}-2.10.0+rocm7.1.dist-info/$2"; }

# wheel DIR OPTION...: one for this machine's Python
wheel() {
	mkwheel make --tags $TAG "${@:2}" "$1" >/dev/null
}

metadata() { # WHEEL
	mkwheel cat "$1" "$(info "$(basename "$1")" METADATA)"
}

# refuses STATUS TEXT OPTION...: nothing is left, nothing on stdout
refuses() {
	local want=$1 text=$2 status=0
	shift 2
	kpack split-wheel "$@" -o none >out 2>err || status=$?
	[ "$status" -eq "$want" ] || { echo "exit $status"; cat err; return 1; }
	grep -qF -e "$text" err || { echo "no '$text' in:"; cat err; return 1; }
	[ ! -s out ]
	! grep -vE '^(kpack|usage): ' err || false
	[ ! -e none ]
}

# The results of all wrappers of LIBRARY on one GPU.
launch() { # LIBRARY WRAPPERS AGENT
	LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=$3 timeout 600 $python "$tools/launch.py" \
		--wrappers "$2" "$1" 2>messages | sed 's/.*: //' | paste -sd ' '
}

site() { # VENV
	echo "$1"/lib/python3*/site-packages
}

# A fresh environment; pip is this machine's.
venv() {
	$python -m venv --without-pip "$1"
}

pip() { # VENV ARGUMENT...
	PIP_CONFIG_FILE=/dev/null PIP_NO_COMPILE=1 \
		$python -m pip --isolated --python "$1/bin/python" --disable-pip-version-check "${@:2}"
}

# What pip would install from DIST for REQUIREMENT.
resolve() { # DIST REQUIREMENT
	[ -e v ] || venv v
	pip v install --dry-run --no-compile --no-index --find-links "$1" "$2" | sed -n 's/^Would install //p'
}

# All WHEELs in the directory DIR, as an installer lays them out.
lay() { # DIR WHEEL...
	mkdir "$1"
	for w in "${@:2}"; do unzip -qo "$w" -d "$1"; done
}

@test "a wheel becomes a host wheel and one for each GPU" {
	wheel in
	split in/*.whl -o dist
	[ "$(ls -A dist)" = "$(device gfx1100)
$(device gfx90a)
$(device gfx942)
$HOST" ]
	mkwheel check dist/*.whl
	mkwheel list "dist/$(device gfx90a)" | grep -v dist-info | cut -d ' ' -f 1,3- | diff - <(cat <<-'END'
	644 torch/.kpack/torch_gfx90a:xnack+.kpack
	644 torch/.kpack/torch_gfx90a:xnack-.kpack
	END
	)
	# what was a file of the wheel is one of the host's, with its mode
	mkwheel list in/*.whl | cut -d ' ' -f 1,3- | sort >before
	mkwheel list dist/torch-*.whl | cut -d ' ' -f 1,3- | sort | diff before -
	grep -q '^755 torch/bin/tool' before
	# and what was not touched has its bytes
	mkdir old new
	# an empty member is stored: unzip refuses a deflated one without a byte
	$python -c 'import sys, zipfile
empty = [i for i in zipfile.ZipFile(sys.argv[1]).infolist() if i.file_size == 0]
assert empty and all(i.compress_type == zipfile.ZIP_STORED and i.compress_size == 0 for i in empty), empty' dist/torch-*.whl
	(cd old && unzip -q ../in/*.whl && rm -r torch/lib torch/_C.so ./*.dist-info/{RECORD,METADATA})
	(cd new && unzip -q ../dist/torch-*.whl && rm -r torch/lib torch/_C.so ./*.dist-info/{RECORD,METADATA})
	diff -r old new
}

@test "archives in wheels may share blocks" {
	wheel in
	split in/*.whl -o dist
	split --scheme zstd-shared in/*.whl -o shared
	[ "$(ls dist)" = "$(ls shared)" ]
	mkwheel check shared/*.whl
	lay plain dist/amd_*.whl
	lay blocks shared/amd_*.whl
	for a in plain/torch/.kpack/*.kpack; do
		kpack info "blocks/torch/.kpack/${a##*/}" | grep -q 'scheme *zstd-shared'
		kpack verify -q "blocks/torch/.kpack/${a##*/}"
		readkpack sums "blocks/torch/.kpack/${a##*/}" | diff <(readkpack sums "$a") -
	done
	status=0
	kpack split-wheel --scheme zstd in/*.whl -o no 2>err || status=$?
	[ "$status" -eq 2 ]
	grep -qF -- '--scheme zstd: not none, zstd-per-kernel or zstd-shared' err
}

# bats test_tags=plain
@test "code that is installed offline loads, the rest is reported as absent, and wheels add up" {
	wheel in
	split in/*.whl -o dist
	venv v
	pip v install -q --no-index --find-links dist 'torch[device-gfx942]'
	pip v check
	lib=$(site v)/torch/lib/libtorch_hip.so
	[ "$(launch "$(echo $lib)" 3 gfx942)" = "0 0 0" ]
	[ "$(launch "$(echo $lib)" 3 gfx1100)" != "0 0 0" ]
	grep -q gfx1100 messages
	pip v install -q --no-index --find-links dist 'torch[gfx1100]'
	pip v check
	[ "$(launch "$(echo $lib)" 3 gfx1100)" = "0 0 0" ]
	[ "$(launch "$(echo $lib)" 3 gfx942)" = "0 0 0" ]
	# the host is intact without the one
	pip v uninstall -q -y amd-torch-device-gfx942
	pip v check
	[ "$(launch "$(echo $lib)" 3 gfx1100)" = "0 0 0" ]
	[ "$(launch "$(echo $lib)" 3 gfx942)" != "0 0 0" ]
	"$KPACK_BIN/tests/stub/load" $lib
	pip v uninstall -q -y amd-torch-device-gfx1100
	(cd $(site v) && sed -n 's/^\(torch[^,"]*\),.*/\1/p' torch-*.dist-info/RECORD | xargs -d '\n' ls >/dev/null)
	[ ! -e $(site v)/torch/.kpack ]
	pip v uninstall -q -y torch
	[ ! -e $(site v)/torch ]
}

# bats test_tags=single
@test "databases stay files, in the wheels of their GPUs and families" {
	$python "$tools/mkdb.py" --cache "$KPACK_BIN/.objects" torch db
	wheel in --databases db/torch
	split in/*.whl -o dist
	mkwheel check dist/*.whl
	# all members are there, each once
	mkwheel list in/*.whl | cut -d ' ' -f 3- | grep -v dist-info | sort >before
	for w in dist/*.whl; do mkwheel list "$w"; done | cut -d ' ' -f 3- | grep -v -e dist-info -e '/\.kpack/' |
		sort | diff before -
	mkwheel list "dist/$(device gfx11)" | grep -q amd-gfx11xx/flash
	mkwheel list "dist/$(device gfx12_0)" | grep -q amd-gfx120x/flash
	mkwheel list "dist/$(device gfx942)" | grep -q share/miopen/db/gfx942130.db.txt
	mkwheel list "dist/$HOST" | grep -q TensileManifest.txt
	! mkwheel list "dist/$HOST" | grep -q 'gfx1100' || false
	metadata "dist/$(device gfx1100)" | grep -qx 'Requires-Dist: amd-torch-device-gfx11 == 2.10.0+rocm7.1'
	metadata "dist/$HOST" | grep -qx 'Requires-Dist: amd-torch-device-gfx110x == 2.10.0+rocm7.1; extra == "device-gfx1100"'
	lay v "dist/$HOST" "dist/$(device gfx1100)" "dist/$(device gfx11)" "dist/$(device gfx110x)"
	(cd v && find torch -type f ! -name '*.pyc' ! -path '*/.kpack/*' | sort) >installed
	[ "$(grep -c amd-gfx11 installed)" -gt 5 ]
	! grep -q gfx942 installed || false
	# and packed they are in archives
	split --databases packed in/*.whl -o packed
	mkwheel check packed/*.whl
	! mkwheel list "packed/$(device gfx942)" | grep -q miopen || false
	mkwheel list "packed/$HOST" | grep -q torch/.kpack/torch_generic.kpack
}

# bats test_tags=threads
@test "two runs are one, whatever the threads; the time is SOURCE_DATE_EPOCH" {
	wheel in
	split -j1 in/*.whl -o one
	split -j7 --tmp-dir "$T" in/*.whl -o two
	diff -r one two
	SOURCE_DATE_EPOCH=1700000000 split in/*.whl -o three
	! cmp -s "one/$HOST" "three/$HOST" || false
	py <<-'END'
	import glob, zipfile
	for path, time in (("one", (1980, 1, 1, 0, 0, 0)), ("three", (2023, 11, 14, 22, 13, 20))):
	    for w in glob.glob(path + "/*.whl"):
	        assert {i.date_time for i in zipfile.ZipFile(w).infolist()} == {time}, w
	END
	[ -z "$(find "$T" -name '.kpack-split-wheel*')" ]
}

@test "a directory is a wheel, and wheels are directories" {
	wheel in
	split in/*.whl -o dist
	mkdir un
	(cd un && unzip -q ../in/*.whl)
	split un -o dirs --output-format directory
	for w in dist/*.whl; do
		rm -rf x
		mkdir x
		(cd x && unzip -q "../$w")
		diff -r x "dirs/$(basename "$w" .whl)"
	done
	split un -o again
	mkwheel check again/*.whl
	# what is written is no part of what is read, wherever it goes
	status=0
	split un -o un/dist 2>err || status=$?
	[ "$status" = 1 ]
	grep -qxF 'kpack: un: un/dist: OUTPUT is inside INPUT' err
	refuses 1 "un: un/torch: OUTPUT is inside INPUT" un --tmp-dir un/torch
	[ ! -e un/dist ]
	split un -o .
	mkwheel check ./*.whl
	rm -r un/*.dist-info
	refuses 1 dist-info un
}

# bats test_tags=plain
@test "what families and several wheels become loads" {
	wheel in --arches gfx1100,gfx1101,gfx942
	split in/*.whl -o dist --group pt --family gfx110X=gfx1100,gfx1101,gfx1102
	lay x "dist/$HOST" "dist/torch_device_gfx110X-2.10.0+rocm7.1-$TAG.whl"
	[ "$(launch x/torch/lib/libtorch_hip.so 3 gfx1101)" = "0 0 0" ]
	wheel b --arches gfx90a:xnack+,gfx1201
	split in/*.whl b/*.whl -o both
	lay y both/*.whl
	for arch in gfx942 gfx1100 gfx1201; do
		[ "$(launch y/torch/lib/libtorch_hip.so 3 $arch)" = "0 0 0" ]
	done
}

# bats test_tags=plain
@test "pip finds what an extra means" {
	$python "$tools/mkdb.py" --cache "$KPACK_BIN/.objects" torch db
	wheel in --databases db/torch
	split in/*.whl -o dist
	resolve dist 'torch[device-gfx1100]' >got
	for part in gfx1100 gfx110x gfx11; do
		grep -qE "amd-torch-device-$part-2.10.0\+rocm7.1( |$)" got
	done
	! grep -q gfx942 got || false
	wheel variants --arches gfx942,gfx11-generic
	split --variants variants/*.whl -o both
	resolve both 'torch[device-all]' | grep -q 'amd-torch-device-gfx11-generic'
	split variants/*.whl -o family --family gfx9X=gfx942
	resolve family 'torch[gfx9x]' | grep -q 'torch-device-gfx9[Xx]-2'
}

# bats test_tags=plain
@test "a GPU without a wheel of its own has the extra of those that serve it" {
	wheel in --arches gfx906:sramecc+:xnack-,gfx906:sramecc-:xnack-,gfx942:xnack+,gfx9-generic,gfx1100,gfx11-generic
	split in/*.whl -o dist
	resolves() { # EXTRA SUFFIX...
		resolve dist "torch[$1]" | tr ' ' '\n' | sed -n 's/^amd-torch-device-\(.*\)-2\.10.*/\1/p' |
			sort | diff - <(printf '%s\n' "${@:2}")
	}
	resolves gfx906 gfx9-generic gfx906-sramecc-off gfx906-sramecc-on
	resolves device-gfx906-sramecc-on gfx9-generic gfx906-sramecc-on
	resolves device-gfx942 gfx942
	resolves device-gfx900 gfx9-generic
	resolves gfx1103 gfx11-generic
	# its own is enough where there is one
	resolves gfx1100 gfx11-generic gfx1100
	# nobody is promised what no wheel serves
	metadata "dist/$HOST" | sed -n 's/^Provides-Extra: //p' >extras
	! grep -E 'gfx(90a|908|950|1200)' extras || false
	[ -z "$(sort extras | uniq -d)" ]
	# a name that the wheel has for something else stays its own
	printf 'Metadata-Version: 2.1\nName: torch\nVersion: 2.10.0+rocm7.1\nProvides-Extra: GFX1103\n\n' >m
	wheel own --metadata m --arches gfx11-generic
	split own/*.whl -o kept
	metadata "kept/$HOST" | grep -ix 'Provides-Extra:.*gfx1103' | diff - <(
		printf 'Provides-Extra: %s\n' GFX1103 device-gfx1103)
	metadata "kept/$HOST" | grep -x 'Requires-Dist: .*gfx1103"' |
		diff - <(echo 'Requires-Dist: amd-torch-device-gfx11-generic == 2.10.0+rocm7.1; extra == "device-gfx1103"')
	# families of features are one extra for the GPU
	split in/*.whl -o families --family a=gfx906:sramecc+ --family b=gfx906:sramecc-
	metadata "families/$HOST" | grep -F 'extra == "gfx906"' | cut -d ' ' -f 2 | sort |
		diff - <(printf '%s\n' amd-torch-device-gfx9-generic torch-device-a torch-device-b)
}

# bats test_tags=plain
@test "files of a family's databases come with generic code" {
	mkdir -p db/lib/aotriton.images/amd-gfx11xx/flash
	echo x >db/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2
	wheel in --databases db --arches gfx11-generic
	split in/*.whl -o dist
	metadata "dist/$HOST" | grep -F 'extra == "gfx1101"' | cut -d ' ' -f 2 |
		diff - <(printf '%s\n' amd-torch-device-gfx11-generic amd-torch-device-gfx11)
}

# bats test_tags=single
@test "variants say for which GPU they are" {
	wheel in --arches gfx90a:sramecc+:xnack-,gfx1100,gfx11-generic
	split --variants in/*.whl -o dist
	mkwheel check dist/*.whl
	label=gfx90a.sramecc_on
	w=dist/amd_torch_device-2.10.0+rocm7.1-$TAG-$label.whl
	mkwheel cat "$w" "$(info amd_torch_device-x variant.json)" >variant.json
	py <<-'END'
	import json
	v = json.load(open("variant.json"))
	assert v["variants"] == {"gfx90a.sramecc_on": {"amd": {"gfx_arch": ["gfx90a.sramecc_on"]}}}, v
	assert v["default-priorities"]["namespace"] == ["amd"]
	assert v["$schema"].startswith("https://")
	all = json.load(open("dist/amd_torch_device-2.10.0+rocm7.1-variants.json"))
	assert sorted(all["variants"]) == ["gfx1100", "gfx11_generic", "gfx90a.sramecc_on"], all
	END
	metadata "dist/$(device gfx1100)" | grep -q 'Requires-Dist: amd-torch-device-gfx11-generic == '
}

# bats test_tags=single
@test "the variant of the host wheel that AMD's program writes" {
	wheel in --arches gfx90a:sramecc+,gfx1100,gfx11-generic,gfx942
	split --generate-variant-wheel --variant-label amd in/*.whl -o dist
	[ "$(ls dist | wc -l)" = 6 ]
	mkwheel check dist/*.whl
	mkdir host variant
	(cd host && $python -m zipfile -e "../dist/$HOST" .)
	(cd variant && $python -m zipfile -e "../dist/${HOST%.whl}-amd.whl" .)
	# by the rules of AMD's program, from what the host wheel has
	py <<-'END'
	import json, re
	info = "torch-2.10.0+rocm7.1.dist-info/"
	want, gpus = [], []
	for line in open("host/" + info + "METADATA"):
	    want.append(line)
	    m = re.fullmatch(r'(Requires-Dist: .+ == .+); extra == "device-([\w-]+)"\n', line)
	    # one GPU, as a runtime calls it without features
	    if m and re.fullmatch("gfx[0-9a-f]+", m[2]):
	        want.append('%s; "amd :: gfx_arch :: %s" in variant_properties\n' % m.groups())
	        gpus += [m[2]] if m[2] not in gpus else []
	assert want == list(open("variant/" + info + "METADATA"))
	assert {"gfx90a", "gfx1100", "gfx1103", "gfx942"} <= set(gpus), gpus
	assert json.load(open("variant/" + info + "variant.json")) == {
	    "providers": {"amd": {"install-time": True, "requires": ["amd-variant-provider >= 1.0"],
	                          "plugin-api": "amd_variant_provider.plugin:AMDVariantPlugin"}},
	    "default-priorities": {"namespace": ["amd"], "property": {"amd": {"gfx_arch": gpus}}},
	    "variants": {gpu: {"amd": {"gfx_arch": [gpu]}} for gpu in gpus}}
	END
	rm variant/*.dist-info/{METADATA,RECORD,variant.json} host/*.dist-info/{METADATA,RECORD}
	diff -r host variant
	kpack index -q dist
	grep -qF -- "-amd.whl" dist/simple/torch/index.html
	[ ! -e dist/simple/torch/*-variants.json ]
	# unpacked, and with the label that is the default
	split --generate-variant-wheel --output-format directory in/*.whl -o unpacked
	[ -f "unpacked/${HOST%.whl}-variant/torch-2.10.0+rocm7.1.dist-info/variant.json" ]
	refuses 2 "not made of [0-9a-z_.]" --generate-variant-wheel --variant-label a/b in/*.whl
}

# bats test_tags=single
@test "a stepping's code and files are in the wheel of its processor" {
	mkdir -p dbs/lib/rocblas/library
	for a in gfx1250 gfx1250-strict gfx1201; do
		echo "$a" >"dbs/lib/rocblas/library/TensileLibrary_$a.dat"
	done
	wheel both --arches gfx1250,gfx1250-strict,gfx1201 --databases dbs
	split --generate-variant-wheel --variants --device-requires-dist 'rocm-sdk-device-@GFXARCH@ == 7.14' \
		-o dist both/*.whl
	mkwheel check dist/*.whl
	# the name is nowhere but in files
	(cd dist && ls) >seen
	for w in dist/*.whl; do unzip -p "$w" '*/METADATA' '*/variant.json' 2>/dev/null || true; done >>seen
	cat dist/*.json >>seen
	grep -q gfx1250 seen
	! grep -q 'strict' seen || false
	w=dist/$(device gfx1250)
	unzip -Z1 "$w" | grep -v dist-info | sort | diff - <(printf 'torch/%s\n' .kpack/torch_gfx1250-strict.kpack \
		.kpack/torch_gfx1250.kpack lib/rocblas/library/TensileLibrary_gfx1250{-strict,}.dat)
	metadata "$w" | grep ^Requires-Dist | diff - <(printf 'Requires-Dist: %s\n' 'torch == 2.10.0+rocm7.1' \
		'rocm-sdk-device-gfx1250 == 7.14')
	metadata "dist/$HOST" | grep 'extra == "device-gfx1250"' |
		diff - <(echo 'Requires-Dist: amd-torch-device-gfx1250 == 2.10.0+rocm7.1; extra == "device-gfx1250"')
	# alone, and from a wheel of its own
	wheel strict --arches gfx1250-strict
	split strict/*.whl -o alone
	(cd alone && ls) | diff - <(printf '%s\n' "$(device gfx1250)" "$HOST")
	wheel plain --arches gfx1250
	split strict/*.whl plain/*.whl -o joined
	unzip -Z1 "joined/$(device gfx1250)" | grep -c 'torch_gfx1250.*[.]kpack$' | grep -qx 2
	# of one path: equal files are one file, others are refused, as are files and directories
	path=torch/lib/rocblas/library/gfx1250/K_gfx1250.co
	for w in strict plain; do
		echo a >a
		wheel same-$w --arches gfx1250$(sed 's/plain//; s/strict/-strict/' <<<$w) --add $path=a
		echo $w >a
		wheel other-$w --arches gfx1250$(sed 's/plain//; s/strict/-strict/' <<<$w) --add $path=a
	done
	wheel below --arches gfx1250 --add $path/K_gfx1250.co=a
	split same-*/*.whl -o same
	unzip -Z1 "same/$(device gfx1250)" | grep -cx $path | grep -qx 1
	refuses 1 "$path: different bytes" other-*/*.whl
	refuses 1 "$path: a file in same-strict/" same-strict/*.whl below/*.whl
	refuses 1 "$path: a file in same-strict/" below/*.whl same-strict/*.whl --prefer below/*.whl
}

# bats test_tags=single
@test "wheels of an earlier run are replaced, others only with --force" {
	# refused TEXT [OPTION]...: and everything is as it was
	refused() {
		rm -rf was
		cp -r dist was
		status=0
		split in/*.whl -o dist "${@:2}" 2>err || status=$?
		[ "$status" = 1 ]
		grep -qF -e "$1" err || { echo "no '$1' in:"; cat err; return 1; }
		diff -r was dist
	}
	wheel in
	for how in "--variants --generate-variant-wheel" "--variants --generate-variant-wheel --output-format directory"; do
		rm -rf dist before
		split $how in/*.whl -o dist
		cp -r dist before
		split $how in/*.whl -o dist 2>err
		[ ! -s err ]
		diff -r before dist
	done
	# with other code, and for fewer targets: what is for another target stays, and is named, with -q too
	rm -rf dist in
	wheel in
	split in/*.whl -o dist
	rm in/*.whl
	wheel in --device-seed 5 --arches gfx942,gfx1100 --seed 3
	split in/*.whl -o dist 2>err
	[ "$(cat err)" = "kpack: dist/$(device gfx90a): note: is not from this run; it stays" ]
	mkwheel check dist/*.whl
	# a file that is in no input any more
	echo >mine
	wheel more --arches gfx942,gfx1100 --add torch/mine=mine
	rm -r dist
	split more/*.whl -o dist
	refused "dist/$HOST: already exists, and torch/mine in it is not from this input; --force"
	# what others put there: a fat wheel, the device wheel of another program, no wheel
	cp in/*.whl dist
	refused "dist/$HOST: already exists, and is no output of split-wheel"
	rm -r dist
	split in/*.whl -o dist
	$python - "dist/$(device gfx942)" <<-'END'
	import sys, zipfile
	with zipfile.ZipFile(sys.argv[1]) as old: members = [(i, old.read(i)) for i in old.infolist()]
	with zipfile.ZipFile(sys.argv[1], "w") as new:
	    for i, data in members: new.writestr(i, data.replace(b"Generator: kpack", b"Generator: another"))
	END
	refused "dist/$(device gfx942): already exists, and is no output"
	echo text >"dist/$(device gfx942)"
	refused "dist/$(device gfx942): already exists, and is no output"
	split --force in/*.whl -o dist
	split --output-format directory in/*.whl -o dist
	touch "dist/${HOST%.whl}/torch/mine"
	refused "dist/${HOST%.whl}: already exists, and torch/mine in it" --output-format directory
	rm -r "dist/${HOST%.whl}"
	mkdir "dist/${HOST%.whl}"
	refused "dist/${HOST%.whl}: already exists, and is no output" --output-format directory
	# what is split must not be replaced by what it becomes
	cp in/*.whl before.whl
	status=0
	split --force in/*.whl -o in 2>err || status=$?
	[ "$status" = 1 ]
	cmp before.whl in/*.whl
	[ "$(ls -A in | wc -l)" = 1 ]
	refuses 1 "it was split already" "$(wheel again --add torch/.kpack/x_gfx942.kpack=err && echo again/*.whl)"
}

@test "hostile wheels are refused, with nothing written" {
	wheel in
	cat >hostile.py <<-'END'
	import glob, sys, zipfile
	from zipfile import ZipInfo
	source = glob.glob("in/*.whl")[0]
	name = source.split("/")[1]
	def make(kind, change):
	    import os
	    os.makedirs(kind)
	    with zipfile.ZipFile(source) as z, zipfile.ZipFile(kind + "/" + name, "w", zipfile.ZIP_DEFLATED) as out:
	        for i in z.infolist():
	            change(i, z.read(i), out)
	def plus(extra):
	    def change(i, data, out):
	        if i.filename.endswith("RECORD"):
	            extra(out)
	        out.writestr(i, data)
	    return change
	make("up", plus(lambda out: out.writestr("../evil", b"x")))
	make("absolute", plus(lambda out: out.writestr("/tmp/evil", b"x")))
	make("unlisted", plus(lambda out: out.writestr("torch/evil.py", b"x")))
	make("twice", plus(lambda out: out.writestr("torch/__init__.py", b"x")))
	make("bomb", plus(lambda out: out.writestr("torch/zeros", bytes(300 << 20))))
	link = ZipInfo("torch/link")
	link.external_attr = 0o120777 << 16
	make("link", plus(lambda out: out.writestr(link, b"/etc/passwd")))
	def lie(i, data, out):
	    out.writestr(i, data + b"x" if i.filename == "torch/__init__.py" else data)
	make("lies", lie)
	END
	py <hostile.py 2>/dev/null
	for kind in up absolute unlisted twice bomb link lies; do
		refuses 1 "" $kind/*.whl
		# the member is named, but where the whole is the fault, or the library says it
		[ $kind = bomb ] || [ $kind = twice ] || grep -qE 'evil|__init__|link' err || { echo $kind; cat err; return 1; }
	done
	[ ! -e "$T/../evil" ]
	head -c 20000 in/*.whl >cut.whl
	mkdir cut && mv cut.whl "cut/$HOST"
	refuses 1 "" cut/*.whl
	refuses 1 "" "$T/nothing-1-py3-none-any.whl"
	cp in/*.whl odd.zip
	refuses 1 "odd.zip" odd.zip
}

@test "a run that is killed leaves a directory that the next removes" {
	wheel in
	mkdir -p dist/.kpack-split-wheel.abcdef/0/tree
	echo x >dist/.kpack-split-wheel.abcdef/0/tree/y
	# one that lives is left alone
	mkdir dist/.kpack-split-wheel.living
	exec 9<dist/.kpack-split-wheel.living
	flock 9
	split in/*.whl -o dist
	[ "$(ls -A dist | grep kpack-split)" = .kpack-split-wheel.living ]
	exec 9<&-
	split --force in/*.whl -o dist
	[ "$(ls -A dist | grep -c kpack-split)" = 0 ]
	# killed at any moment: no wheel is half there
	for n in 1 2 4 8 16 32; do
		rm -rf killed
		"$KPACK_BIN/kpack" split-wheel -q in/*.whl -o killed 3>&- &
		pid=$!
		$python -c "import time; time.sleep($n / 200)"
		kill -9 $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
		for w in killed/*.whl; do
			[ ! -e "$w" ] || mkwheel check "$w"
		done
		[ ! -e "killed/$HOST" ] || [ "$(ls killed | wc -l)" = 4 ]
		split --force in/*.whl -o killed
		[ "$(ls -A killed)" = "$(ls dist)" ]
	done
}

@test "two runs at once leave one's wheels, not some of each" {
	wheel a
	wheel b --seed 1 --device-seed 1
	split a/*.whl -o one
	split b/*.whl -o other
	for n in 1 2 3; do
		rm -rf dist
		mkdir dist
		"$KPACK_BIN/kpack" split-wheel -q a/*.whl -o dist 3>&- 2>err.a &
		first=$!
		"$KPACK_BIN/kpack" split-wheel -q b/*.whl -o dist 3>&- 2>err.b || true
		wait $first || true
		diff -rq one dist >/dev/null || diff -rq other dist
		cat err.a err.b | grep -q 'already exists' # the other run reports it
	done
}

# bats test_tags=single
@test "parts are installed where the host is, whatever that says of itself" {
	wheel in
	mkdir un
	(cd un && unzip -q ../in/*.whl)
	info=un/torch-2.10.0+rocm7.1.dist-info
	printf 'Wheel-Version: 1.0\nRoot-Is-Purelib: True\nTag: py38-none-linux_x86_64\nTag: py3-none-linux_x86_64\n' >$info/WHEEL
	split un -o dist
	w=dist/amd_torch_device_gfx942-2.10.0+rocm7.1-py38.py3-none-linux_x86_64.whl
	mkwheel cat $w amd_torch_device_gfx942-2.10.0+rocm7.1.dist-info/WHEEL | grep -qx 'Root-Is-Purelib: true'
	printf 'Wheel-Version: 1.0\nTag: py3\n' >$info/WHEEL
	refuses 1 "fewer than three parts" un
}

@test "a full disk fails without a wheel" {
	as_root
	wheel in
	mkdir small
	mount -t tmpfs -o size=100k none small || skip "no tmpfs"
	status=0
	kpack split-wheel -q in/*.whl -o small 2>err || status=$?
	left=$(ls -A small)
	umount small
	[ "$status" = 1 ]
	grep -q 'No space left' err
	[ -z "$left" ]
}

# bats test_tags=single
@test "options that have no meaning are reported" {
	wheel in
	refuses 2 "WHEEL and -o DIST are needed"
	refuses 2 "not NAME=ARCH" --family x in/*.whl
	refuses 2 "--databases" --databases nonsense in/*.whl
	refuses 2 "not a requirement" --requires $'x\ny' in/*.whl
	refuses 2 "gives no file name" --group ../x in/*.whl
	refuses 2 "gives no file name" --group a@GFXARCH@b in/*.whl
	SOURCE_DATE_EPOCH=x refuses 1 "kpack: SOURCE_DATE_EPOCH is not a number" in/*.whl
	refuses 1 "torch/.kpack: it was split already" "$(wheel file --add torch/.kpack=err && echo file/*.whl)"
	refuses 2 "not a name of a distribution" --device-prefix 'a b' in/*.whl
	# AMD's spelling
	kpack split-wheel --input in/*.whl --output-dir dist --device-package-prefix amd-torch-device \
		--overlay-root torch --wheel-type torch-fat --device-requires-dist 'x-@GFXARCH@' --compression zstd \
		--compression-level 3 -j 2 --verbose --databases rocblas hipblaslt >/dev/null
	[ "$(ls dist | wc -l)" = 4 ]
	# a list, repeated, empty, before the wheel and after it
	local order
	for order in "--device-requires-dist 'x >= 1' y-@GFXARCH@ --device-requires-dist z in/*.whl" \
		"in/*.whl --device-requires-dist 'x >= 1' --device-requires-dist --device-requires-dist y-@GFXARCH@ z"; do
		rm -rf dist
		eval "split -o dist $order"
		diff - <(metadata "dist/$(device gfx942)" | grep '^Requires-Dist: [xyz]') <<-'END'
		Requires-Dist: x >= 1
		Requires-Dist: y-gfx942
		Requires-Dist: z
		END
	done
	mv in/*.whl wheel # is one, whatever its name
	mkdir unpacked
	(cd unpacked && $python -m zipfile -e ../wheel .)
	rm -rf dist
	split -o dist --device-requires-dist x unpacked
	mv wheel "in/$HOST"
	kpack split-wheel --json in/*.whl -o json >j
	py <<-'END'
	import json
	j = json.load(open("j"))
	assert [f["kind"] for f in j["files"]] == ["device"] * 3 + ["host"], j
	assert "device-all" in j["extras"] and "gfx942" in j["extras"]
	END
}
