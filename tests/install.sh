#!/bin/sh
# Install into an empty root, try what is there, uninstall, and see that nothing stays.
# Prints TAP.  The root holds a file of somebody else, which must survive.
# shellcheck disable=SC2317 # t calls them
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL MODE O
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

n=0
failed=0
t() # DESCRIPTION COMMAND...
{
	what=$1
	shift
	n=$((n + 1))
	if "$@" >"$root.out" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		tail -n 30 "$root.out" | sed 's/^/# /'
		failed=1
	fi
	rm -f "$root.out"
}
in_root() { make --no-print-directory "$@" "DESTDIR=$root/d" PREFIX=/usr; }
resolves() { [ "$(readlink -f "$root/d/usr/$1")" = "$root/d/usr/$2" ]; }
holds() { [ -s "$root/d/usr/$1" ]; }
only_theirs()
{
	left=$(find "$root/d" ! -type d ! -path '*/bin/theirs')
	echo "$left"
	[ -z "$left" ] && [ -e "$root/d/usr/bin/theirs" ]
}

mkdir -p "$root/d/usr/bin"
echo theirs >"$root/d/usr/bin/theirs"
t "make install" in_root install
t "kpack runs" "$root/d/usr/bin/kpack" --version
t "kpackfs runs" "$root/d/usr/bin/kpackfs" --version
t "kpack-pack is kpack" resolves bin/kpack-pack bin/kpack
t "kpack-mark is kpack" resolves bin/kpack-mark bin/kpack
t "mount.kpackfs is kpackfs" resolves sbin/mount.kpackfs bin/kpackfs
for page in kpackfs kpack kpack-pack kpack-mark; do
	t "$page(1) is there" holds "share/man/man1/$page.1"
done
t "bash completion is there" holds share/bash-completion/completions/kpack
t "bash completion of kpack-mark is kpack's" \
	resolves share/bash-completion/completions/kpack-mark share/bash-completion/completions/kpack
t "zsh completion is there" holds share/zsh/site-functions/_kpack
t "fish completion is there" holds share/fish/vendor_completions.d/kpack.fish
t "installing again works" in_root install
t "make uninstall" in_root uninstall
t "nothing stays, and nothing else went" only_theirs

echo "1..$n"
exit $failed
