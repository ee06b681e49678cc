#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Wheels split by architecture: pip installs them and their code loads; threads; two runs at once.
# Wheels themselves, and what is refused, are in tests/golden/wheel*.

load packing

mkwheel() { $python "$tools/mkwheel.py" "$@"; }
split() { kpack split-wheel -q "$@"; }
TAG=py3-none-linux_x86_64
HOST=torch-2.10.0+rocm7.1-$TAG.whl

# wheel DIR OPTION...: one for this machine's Python
wheel() {
	mkwheel make --tags $TAG "${@:2}" "$1" >/dev/null
}

pip() {
	PIP_CONFIG_FILE=/dev/null PIP_NO_COMPILE=1 \
		$python -m pip --isolated --python v/bin/python --disable-pip-version-check "$@"
}

# bats test_tags=plain
@test "code that pip installs loads, the rest is reported as absent, and wheels add up" {
	local site lib
	wheel in --arches gfx942,gfx1100,gfx9-generic
	wheel more --arches gfx1201
	split --prefer in/*.whl in/*.whl more/*.whl -o dist
	mkwheel check dist/*.whl
	$python -m venv --without-pip v
	pip install -q --no-index --find-links dist 'torch[device-gfx942]'
	site=$(echo v/lib/python3*/site-packages)
	lib=$site/torch/lib/libtorch_hip.so
	loads "0 0 0" $lib gfx942 3
	loads "209 209 209" $lib gfx1100 3
	grep -q gfx1100 told
	# a GPU without a wheel of its own has those that serve it; of two inputs, both
	pip install -q --no-index --find-links dist 'torch[gfx900,gfx1201]'
	pip check
	[ "$(cd $site && ls -d amd_torch_device_* | sed 's/-2.*//; s/.*device_//' | paste -sd ' ')" = "gfx1201 gfx942 gfx9_generic" ]
	loads "0 0 0" $lib gfx1201 3
	# the host is intact without them
	pip uninstall -q -y amd-torch-device-gfx942
	loads "0 0 0" $lib gfx1201 3
	pip uninstall -q -y amd-torch-device-gfx1201 amd-torch-device-gfx9-generic
	"$KPACK_BIN/tests/stub/load" $lib
	[ ! -e $site/torch/.kpack ]
	pip uninstall -q -y torch
	[ ! -e $site/torch ]
}

# bats test_tags=threads
@test "two runs give the same wheels, whatever the threads" {
	wheel in
	split -j1 --zip-level 1 in/*.whl -o one
	split -j7 --zip-level 1 --tmp-dir "$T" in/*.whl -o two
	diff -r one two
	[ -z "$(find "$T" -name '.kpack-split-wheel*')" ]
}

# bats test_tags=single
@test "a second run meanwhile leaves one's wheels, and what lives" {
	local preload
	preload=$(ldd "$KPACK_BIN/kpack" | awk '$1 ~ /^lib[at]san/ { print $3 }' | tr '\n' ' ')
	wheel a
	wheel b --seed 1 --device-seed 1
	mkdir -p one dist/.kpack-split-wheel.abcdef/0/tree dist/.kpack-split-wheel.living
	exec 9<dist/.kpack-split-wheel.living
	flock 9
	split b/*.whl -o one
	status=0
	MOMENT_PATH=/tree MOMENT_DO="'$KPACK_BIN/kpack' split-wheel -q b/*.whl -o dist; touch meanwhile" \
		LD_PRELOAD="$preload$KPACK_BIN/tests/stub/moment.so" split a/*.whl -o dist 2>err || status=$?
	[ $status = 1 ] && [ -e meanwhile ]
	grep -q 'already exists' err
	[ "$(ls -A dist | grep kpack-split)" = .kpack-split-wheel.living ]
	exec 9<&-
	split b/*.whl -o dist
	diff -r one dist
}

# bats test_tags=slow, all
@test "a member of more than 4 GiB is written with zip64 and read again" {
	[ "$(df --output=avail -k . | tail -n 1)" -gt 16000000 ] || skip "needs 16 GB"
	wheel in --arches gfx942
	py in/*.whl "$HOST" <<-'END'
	import base64, hashlib, io, sys, zipfile
	size, piece = (4 << 30) + 5, bytes(1 << 20)
	h = hashlib.sha256()
	class WithHoles(io.FileIO):  # zeros take no room on the disk
	    def write(self, b):
	        if b is not piece:
	            return super().write(b)
	        self.seek(len(b), 1)
	        return len(b)
	with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(WithHoles(sys.argv[2], "w+"), "w") as new:
	    with new.open("torch/large.bin", "w", force_zip64=True) as f:
	        for left in range(size, 0, -len(piece)):
	            part = piece if left >= len(piece) else piece[:left]
	            f.write(part)
	            h.update(part)
	    for i in old.infolist():
	        data = old.read(i)
	        if i.filename.endswith("RECORD"):
	            raw = base64.urlsafe_b64encode(h.digest()).rstrip(b"=").decode()
	            data = ("torch/large.bin,sha256=%s,%d\n" % (raw, size)).encode() + data
	        new.writestr(i, data)
	END
	split "$HOST" -o dist
	unzip -tq "dist/$HOST"
	unzip -v "dist/$HOST" | grep -E '4294967301 .*large.bin'
}
