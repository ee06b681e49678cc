#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack index: pip reads the index from a directory.  What else it writes and refuses is in tests/golden.

# bats file_tags=single

load packing

install_into() { # SITE ARGUMENT...: pip without configuration and caches
	local site=$1
	shift
	PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX='' $python -m pip --isolated install --quiet \
		--disable-pip-version-check --no-cache-dir --target "$site" "$@"
}

# bats test_tags=plain
@test "pip installs from a moved index, with extras, and what kpack detect prints for split wheels" {
	mkdir 'a b'
	py <<-EOF
	import ziptricks as t
	t.make("a b/x-1.0-py3-none-any.whl", more="Requires-Python: >=3.8,<4\n")
	t.make("a b/x-1.1+rocm7-py3-none-any.whl", {"x/__init__.py": b"b = 1\n"}, version="1.1+rocm7",
	       more='Provides-Extra: device-gfx942\nRequires-Dist: Y.Dev == 2.0; extra == "device-gfx942"\n')
	t.make("a b/y_dev-2.0-py3-none-any.whl", {"x/dev.py": b"c = 1\n"}, name="y_dev", version="2.0")
	EOF
	list=gfx90a:xnack+,gfx90a:xnack-,gfx906:sramecc+:xnack-,gfx942
	wheel=$($python "$tools/mkwheel.py" make --dist fat --version 1.0 --tags py3-none-any \
		--metadata <(printf 'Metadata-Version: 2.1\nName: Fat\nVersion: 1.0\n') --root fat --arches $list .)
	kpack split-wheel -q "$wheel" -o 'a b'
	kpack index -q 'a b'
	mv 'a b' ü
	install_into site --index-url "file://$T/%C3%BC/simple/" 'x[device-gfx942]' \
		"$(kpack detect --arch gfx90a:xnack-,gfx906:sramecc+:xnack- --dist Fat --pip)"
	[ -e site/x-1.1+rocm7.dist-info ]
	[ -e site/y_dev-2.0.dist-info ]
	[ "$(cd site/fat/.kpack && echo *)" = \
		"fat_gfx906:sramecc+:xnack-.kpack fat_gfx90a:xnack+.kpack fat_gfx90a:xnack-.kpack" ]
}
