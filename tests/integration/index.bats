#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack index: a simple index that pip reads from a directory.

# bats file_tags=single

load packing

# Two versions of x, of which one has an extra with y-dev.
wheels() {
	mkdir w
	py <<-EOF
	import ziptricks as t
	t.make("w/x-1.0-py3-none-any.whl", more="Requires-Python: >=3.8,<4\n")
	t.make("w/x-1.1+rocm7-py3-none-any.whl", {"x/__init__.py": b"b = 1\n"}, version="1.1+rocm7",
	       more='Provides-Extra: device-gfx942\nRequires-Dist: Y.Dev == 2.0; extra == "device-gfx942"\n')
	t.make("w/y_dev-2.0-py3-none-any.whl", {"x/dev.py": b"c = 1\n"}, name="y_dev", version="2.0")
	EOF
}

offline() { # pip without configuration and caches
	PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX='' $python -m pip --isolated "$@"
}

install_into() { # SITE ARGUMENT...
	local site=$1
	shift
	offline install --quiet --disable-pip-version-check --no-cache-dir --target "$site" "$@"
}

# bats test_tags=plain
@test "pip installs from the index where it stands, with extras" {
	wheels
	kpack index w >out
	[ "$(cat out)" = 'w/simple: 3 wheels of 2 projects' ]
	install_into site --index-url "file://$T/w/simple/" 'x[device-gfx942]'
	[ -e site/x-1.1+rocm7.dist-info ]
	[ -e site/y_dev-2.0.dist-info ]
	install_into old --index-url "file://$T/w/simple/" 'x==1.0'
	[ -e old/x-1.0.dist-info ]
	install_into links --no-index --find-links w 'x[device-gfx942]'
	[ -e links/y_dev-2.0.dist-info ]
}

# bats test_tags=plain
@test "pip takes what kpack detect prints for split wheels" {
	list=gfx90a:xnack+,gfx90a:xnack-,gfx906:sramecc+:xnack-,gfx942,gfx1100
	wheel=$($python "$tools/mkwheel.py" make --dist fat --version 1.0 --tags py3-none-any \
		--metadata <(printf 'Metadata-Version: 2.1\nName: Fat\nVersion: 1.0\n') --root fat --arches $list .)
	kpack split-wheel -q --family gfx110X=gfx1100 "$wheel" -o dist
	kpack index -q dist
	install_into site --index-url "file://$T/dist/simple/" \
		"$(kpack detect --arch gfx90a:xnack-,gfx906:sramecc+:xnack- --dist Fat --pip)"
	[ "$(cd site/fat/.kpack && echo *)" = \
		"fat_gfx906:sramecc+:xnack-.kpack fat_gfx90a:xnack+.kpack fat_gfx90a:xnack-.kpack" ]
	install_into family --index-url "file://$T/dist/simple/" \
		"$(kpack detect --arch gfx1101 --family --dist Fat --pip)"
	[ "$(cd family/fat/.kpack && echo *)" = "fat-gfx110X.kpack" ]
}

# bats test_tags=plain
@test "a directory that is moved or served elsewhere still works" {
	wheels
	kpack index -q w >out
	[ ! -s out ]
	mkdir 'a b'
	mv w 'a b/ü'
	$python -c 'import http.server, sys
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(s.server_port, flush=True)
s.serve_forever()' >port 2>log 3>&- &
	server=$!
	until [ -s port ]; do kill -0 $server; done
	install_into site --index-url "http://127.0.0.1:$(cat port)/a%20b/%C3%BC/simple/" 'x[device-gfx942]'
	kill $server
	[ -e site/y_dev-2.0.dist-info ]
}

@test "wheels that are variants get a file of their version" {
	mkdir w
	py <<-EOF
	import json, ziptricks as t
	def variant(label, value):
	    text = {"\$schema": "s", "default-priorities": {"namespace": ["amd"]},
	            "variants": {label: {"amd": {"gfx_arch": [value]}}}}
	    files = {"x/__init__.py": b"", "x-1.0.dist-info/variant.json": json.dumps(text).encode()}
	    t.make(f"w/x-1.0-py3-none-any-{label}.whl", files)
	variant("gfx942", "gfx942")
	variant("gfx90a", "gfx90a")
	t.make("w/x-1.0-py3-none-any.whl")
	EOF
	kpack index -q w
	$python -c 'import json
v = json.load(open("w/simple/x/x-1.0-variants.json"))
assert v["variants"] == {g: {"amd": {"gfx_arch": [g]}} for g in ("gfx942", "gfx90a")}, v
assert v["default-priorities"] == {"namespace": ["amd"]}'
	grep -F '<a href="x-1.0-variants.json#sha256=' w/simple/x/index.html
	mv w/x-1.0-py3-none-any-gfx942.whl w/x-1.0-py3-none-any-gfx950.whl
	! kpack index -q w 2>err || false
	grep -F 'not the label of the wheel' err
}

@test "usage: one directory with wheels" {
	for args in '' 'a b' '--nope w'; do
		status=0
		# shellcheck disable=SC2086 # words
		kpack index $args 2>/dev/null || status=$?
		[ $status -eq 2 ]
	done
	mkdir empty
	! kpack index empty 2>err || false
	grep -F 'kpack: empty: there are no wheels' err
	! kpack index missing 2>err || false
	grep -F 'kpack: missing: ' err
}
