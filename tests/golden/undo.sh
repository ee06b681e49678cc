# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2086
# For the cases of "kpack pack --undo": "tree" has binaries and files of databases; "before" what it is.

facts() { (cd "$1" && find . -printf '%p %y %m %T@ %n %l\n' | LC_ALL=C sort; find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2); }
same() { facts "$1" >now; diff before now && echo "as before"; }
lib=tree/share/miopen/db
mkdir -p $lib tree/lib tree/share/empty
cp -p $IN/library/lib.so tree/lib/lib.so.1
cp -p $IN/variety/ccob.so tree/lib/
ln tree/lib/lib.so.1 tree/also.so && ln -s lib.so.1 tree/lib/lib.so
seq 7000 >$lib/gfx942130.db.txt && seq 900 >$lib/gfx1030_36.db.txt && ln $lib/gfx1030_36.db.txt $lib/gfx1030_40.db.txt
seq 80 >$lib/gfx1100_48.db.txt && chmod 600 $lib/gfx1100_48.db.txt && setfattr -n user.note -v x $lib/gfx1100_48.db.txt
chmod 755 tree/lib/*.so*
find tree -exec touch -h -d 2020-02-02T02:02:02.5 {} +
facts tree >before

# change_names FILE: as by another tool, in what the original has, too: a byte of a section of names
change_names() {
	python3 - "$1" <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
at, = struct.unpack_from("<Q", data, 40)
for n in range(struct.unpack_from("<H", data, 60)[0]):
    row = struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * n)
    if row[1] == 3 and row[2] == 0:
        data[row[4]] = 88
with open(sys.argv[1], "r+b") as f:
    f.write(data)
END
}
