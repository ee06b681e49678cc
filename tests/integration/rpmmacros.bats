#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# RPM's macro for packages with GPU code: built, installed into a root of its own, and loaded
# from there by a runtime.

bats_require_minimum_version 1.5.0

# bats file_tags=plain, all

load packing

examples=$KPACK_BIN/contrib/examples

# A library and a kernel database for gfx1030, gfx1100 and gfx90a:xnack+, and a spec
source_package() { # GPU...
	local gpu
	mkdir -p tree/rocblas/library/gfx1030
	mkfat --arches gfx1030,gfx1100,gfx90a:xnack+,gfx11-generic tree/libtoy.so.1
	for gpu in gfx1100 gfx1030; do
		yes "$gpu" | head -c 5000 >tree/rocblas/library/TensileLibrary_lazy_$gpu.dat
	done
	mv tree/rocblas/library/TensileLibrary_lazy_gfx1030.dat tree/rocblas/library/gfx1030
	echo all >tree/rocblas/library/TensileManifest.txt
	echo other >tree/other
	cat >toy.spec <<-END
		%{load:$KPACK_SRC/contrib/rpm/macros.kpack}
		%global __kpack $KPACK_BIN/kpack
		%global debug_package %{nil}
		Name: toy
		Version: 1
		Release: 2
		Epoch: 3
		Summary: toys
		License: MIT
		%description
		toys
		%package other
		Summary: other
		%description other
		other
		%kpack_packages -d /usr/lib/rocm-kpack $*
		%install
		mkdir -p %{buildroot}/usr/lib
		cp -a %{_sourcedir}/tree/. %{buildroot}/usr/lib/
		%files -f %{kpack_files}
		/usr/lib/libtoy.so.1
		/usr/lib/rocblas
		%files other -f %{kpack_excluded}
		/usr/lib/other
	END
}

build() {
	rpmbuild -bb --define "_topdir $T/top" --define "_sourcedir $T" --define "_tmppath $T/tmp" toy.spec >log 2>&1
}

launch() { # LIBRARY AGENT
	LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=$2 $python "$tools/launch.py" --wrappers 3 "$1" 2>messages |
		sed 's/.*: //' | sort -u
}

@test "a base package, and one for each GPU" {
	command -v rpmbuild >/dev/null || skip "no rpmbuild"
	source_package gfx1030 gfx1100 gfx90a
	build || { tail -n 40 log; return 1; }
	for one in toy toy-other toy-gfx1030 toy-gfx1100 toy-gfx90a; do
		rpm -qpl top/RPMS/*/$one-1-2.*.rpm | sort | sed "s/^/$one /"
	done >have
	diff - have <<-'END'
		toy /usr/lib/libtoy.so.1
		toy /usr/lib/rocblas
		toy /usr/lib/rocblas/library
		toy /usr/lib/rocblas/library/TensileManifest.txt
		toy /usr/lib/rocm-kpack
		toy /usr/lib/rocm-kpack/toy_gfx11-generic.kpack
		toy-other /usr/lib/other
		toy-gfx1030 /usr/lib/rocblas/library/gfx1030
		toy-gfx1030 /usr/lib/rocblas/library/gfx1030/TensileLibrary_lazy_gfx1030.dat
		toy-gfx1030 /usr/lib/rocm-kpack
		toy-gfx1030 /usr/lib/rocm-kpack/toy_gfx1030.kpack
		toy-gfx1100 /usr/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat
		toy-gfx1100 /usr/lib/rocm-kpack
		toy-gfx1100 /usr/lib/rocm-kpack/toy_gfx1100.kpack
		toy-gfx90a /usr/lib/rocm-kpack
		toy-gfx90a /usr/lib/rocm-kpack/toy_gfx90a:xnack+.kpack
	END
	rpm -qp --requires top/RPMS/*/toy-gfx1100-1*.rpm | grep -qE '^toy(\(.*\))? = 3:1-2$'
	rpm -qp --provides top/RPMS/*/toy-gfx1100-1*.rpm | grep -qx 'toy-device-code = 3:1-2'
	mkdir root
	rpm --root "$T/root" --dbpath /db --nodeps -i top/RPMS/*/toy-1*.rpm top/RPMS/*/toy-gfx1100-1*.rpm
	[ "$(launch root/usr/lib/libtoy.so.1 gfx1100)" = 0 ]
	[ "$(launch root/usr/lib/libtoy.so.1 gfx1030)" = 209 ]
	rpm --root "$T/root" --dbpath /db --nodeps -i top/RPMS/*/toy-gfx1030-1*.rpm
	[ "$(launch root/usr/lib/libtoy.so.1 gfx1030)" = 0 ]
}

@test "GPUs that are not listed, or for which the package has nothing" {
	command -v rpmbuild >/dev/null || skip "no rpmbuild"
	source_package gfx1030 gfx1100
	! build || false
	grep -qx 'kpack_packages: toy has code for gfx90a:xnack+, which is not listed' log || { tail -n 40 log; return 1; }
	sed -i 's/ gfx1030 gfx1100$/& gfx90a gfx942/' toy.spec
	! build || false
	grep -qx 'kpack_packages: toy has no code for gfx942' log || { tail -n 40 log; return 1; }
}

@test "debugging information, of the GPU's code too, goes into the package that %debug_package makes" {
	command -v rpmbuild >/dev/null || skip "no rpmbuild"
	source_package gfx1030 gfx1100 gfx90a
	cp "$with_id" tree/rocblas/library/Kernels.so-000-gfx1100.hsaco
	debug_library tree/libdebug.so 0 "$with_id"
	sed -i 's|^/usr/lib/libtoy.*|&\n/usr/lib/libdebug.so|' toy.spec
	# binutils does not know code objects
	sed -i 's|^Name:|%global __strip /bin/true\n&|' toy.spec
	# where a distribution's %install has it
	sed -i '/debug_package/d; s|^%install|%debug_package\n&|; s|^cp -a|mkdir %{buildroot}/usr/bin\n&|' toy.spec
	echo 'int main(void) { return 0; }' >toy.c
	sed -i 's|^%files -f .*|gcc -g -o %{buildroot}/usr/bin/toy %{_sourcedir}/toy.c\n&\n/usr/bin/toy|' toy.spec
	build || { tail -n 40 log; return 1; }
	rpm -qpl top/RPMS/*/toy-debuginfo-1-2.*.rpm >have
	grep '^/usr/lib/debug/usr/bin/toy.*\.debug$' have
	rpm -qpl top/RPMS/*/toy-gfx1100-1-2.*.rpm | grep -x /usr/lib/rocm-kpack/toy_gfx1100.kpack
	mkdir root
	install_all() { rpm --root "$T/root" --dbpath /db --nodeps --force -i top/RPMS/*/toy-{1,gfx1100,debuginfo}-*.rpm; }
	sums() {
		{
			readkpack sums root/usr/lib/rocm-kpack/toy_gfx1100.kpack | grep libdebug
			sha256sum root/usr/lib/rocblas/library/*.hsaco
		} | cut -d ' ' -f 1 | sort -u
	}
	install_all
	[ "$(sums)" = $with_id_stripped ]
	# debuggers find it by build ID
	[ "$(sha256sum <root/usr/lib/debug/.build-id/$build_id.debug)" = "$with_id_debug  -" ]
	grep -x "/usr/lib/debug/usr/lib/rocm-kpack/${build_id/\//}.debug" have
	rpm -qp --provides top/RPMS/*/toy-debuginfo-*.rpm | grep -qx "debuginfo(build-id) = ${build_id/\//}"
	! grep '^warning' log || false
	# or it stays
	sed -i 's/^%kpack_packages/& -g/' toy.spec
	build || { tail -n 40 log; return 1; }
	install_all
	[ "$(sums)" = "$(sha256sum <"$with_id" | cut -d ' ' -f 1)" ]
	rpm -qpl top/RPMS/*/toy-debuginfo-*.rpm >have
	! grep rocm-kpack have || false
}
