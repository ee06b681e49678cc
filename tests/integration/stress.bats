#!/usr/bin/env bats
# Many concurrent readers while the caches are dropped and the daemon is killed.

bats_require_minimum_version 1.5.0

load mounting

# COUNT files of some bytes to 2 MB in src/, their sums in sums.
make_files() { # COUNT
	py "$1" <<-'END'
	import hashlib, mkarchive, random, sys
	rng = random.Random(9)
	a = mkarchive.Archive(level=1)
	with open("sums", "w") as sums:
	    for i in range(int(sys.argv[1])):
	        size = int(2 ** rng.uniform(0, 21))
	        data = mkarchive.noise(size, i)
	        chunk = {"chunk": 65536} if i % 5 == 0 else {}
	        path = f"d{i % 7}/f{i}"
	        a.add(path, "generic", data, type="dat", path=path, **chunk)
	        print(hashlib.sha256(data).hexdigest(), f"mnt/{path}", sep="  ", file=sums)
	a.write("src/a.kpack")
	END
}

check_sums() { sha256sum --quiet -c sums; }

drop_caches() { echo 3 >/proc/sys/vm/drop_caches; }

# All that is in the background, each with success.
all_end_well() { # PID...
	for p; do wait "$p"; done
}

# bats test_tags=all
@test "fio: blocks with checksums that were written before packing, read in every way" {
	mkdir files
	cat >write.fio <<-END
	[global]
	directory=files
	rw=write
	ioengine=psync
	verify=crc32c
	do_verify=0
	randseed=7
	buffer_compress_percentage=60
	[small]
	filename=small
	bs=4k
	size=1m
	[large]
	filename=large
	bs=64k
	size=6m
	END
	fio write.fio >log
	py <<-'END'
	import mkarchive
	a, none = mkarchive.Archive(), mkarchive.Archive(scheme="none")
	for name in ("small", "large"):
	    data = open(f"files/{name}", "rb").read()
	    a.add(f"whole/{name}", "generic", data, type="dat", path=f"whole/{name}")
	    a.add(f"parts/{name}", "generic", data, type="dat", path=f"parts/{name}", chunk=131072)
	    none.add(f"none/{name}", "generic", data, type="dat", path=f"none/{name}")
	    wrong = bytearray(data)
	    wrong[len(data) * 2 // 3 + 2000] ^= 1
	    a.add(f"wrong/{name}", "generic", bytes(wrong), type="dat", path=f"wrong/{name}")
	a.write("src/a.kpack")
	none.write("src/none.kpack")
	END
	m -o cache_size=4m
	{
		cat <<-END
		[global]
		verify=crc32c
		verify_fatal=1
		randseed=7
		iodepth=8
		END
		for dir in whole parts none; do
			for engine in $(engines); do
				jobs $dir "$engine" direct=0 rw=read
				jobs $dir "$engine" direct=1 rw=randread
			done
		done
	} >verify.fio
	fio --readonly --output=log --output-format=json verify.fio
	py log "$(grep -c '^filename' verify.fio)" <<-'END'
	import json, sys
	text = open(sys.argv[1]).read()
	jobs = json.loads(text[text.index("{"):])["jobs"]
	assert len(jobs) == int(sys.argv[2]) > 60, len(jobs)
	for j in jobs:
	    assert j["error"] == 0, j["jobname"]
	    assert j["read"]["io_bytes"] in (1 << 20, 6 << 20), j["jobname"]
	END
	# one wrong bit is found
	for file in small:4k:1m large:64k:6m; do
		IFS=: read -r name blocks size <<<"$file"
		run fio --name=verify --filename="mnt/wrong/$name" --bs="$blocks" --size="$size" \
			--readonly --randseed=7 --verify=crc32c --verify_fatal=1 --rw=randread
		[ "$status" != 0 ]
		[[ $output == *crc32c:\ verify\ failed* ]]
	done
}

engines() {
	echo psync mmap pvsync2 libaio posixaio splice | tr ' ' '\n'
	if [ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo 2)" = 0 ]; then
		echo io_uring
	else
		echo "# this kernel does no io_uring" >&3
	fi
}

# jobs DIR ENGINE OPTION...: for each of its files
jobs() {
	local file name blocks size
	for file in small:4k:1m large:64k:6m; do
		IFS=: read -r name blocks size <<<"$file"
		printf '[%s]\nfilename=mnt/%s\nbs=%s\nsize=%s\nioengine=%s\n' "$*" "$1/$name" \
			"$blocks" "$size" "$2"
		printf '%s\n' "${@:3}"
	done
}

# bats test_tags=all
@test "fio: several jobs in one file, of odd blocks, mapped and read" {
	make_files 40
	big=$(find_largest)
	m
	fio --readonly --runtime=2 --time_based --thread --group_reporting --filename="mnt/$big" \
		--name=a --rw=randread --bsrange=512-300k --bs_unaligned --numjobs=3 --ioengine=psync \
		--name=b --rw=randread --bs=4k --ioengine=mmap --numjobs=2 \
		--name=c --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=32 >log
	! grep -q 'err=[^ ]*[1-9]' log || false
	check_sums
}

find_largest() {
	py <<-'END'
	import readkpack
	a = readkpack.Archive("src/a.kpack")
	print(max((e["original_size"], e["metadata"]["path"]) for _, _, e in a.entries())[1])
	END
}

@test "checksums by 32 at once, with little memory for decoded bytes" {
	make_files 150
	m -o cache_size=1m
	for _ in 1 2; do
		cut -c 67- sums | tr '\n' '\0' | xargs -0 -P 32 -n 5 sha256sum | sort >have
		sort sums | cmp - have
	done
}

@test "checksums while the kernel's caches are dropped all the time" {
	must_be_root
	make_files 100
	m -o cache_size=2m
	pids=
	for _ in 1 2 3; do
		(for _ in 1 2 3; do check_sums; done) 3>&- &
		pids="$pids $!"
	done
	running() { for p in $pids; do ! kill -0 "$p" 2>/dev/null || return 0; done; false; }
	while running; do drop_caches; done
	# shellcheck disable=SC2086 # words
	all_end_well $pids
	unmount
	m -s -o open,threads=1
	check_sums 3>&- &
	pids=$!
	while running; do drop_caches; done
	all_end_well $pids
}

@test "stopped: processes that wait can be killed, and nothing is lost" {
	make_files 60
	m
	# shellcheck disable=SC2046 # words
	stop $(daemons)
	# these two are not there, so kpackfs is asked
	stat mnt/none1 >/dev/null 2>&1 3>&- &
	waiting=$!
	stat mnt/none2 >have 2>&1 3>&- &
	patient=$!
	# a reader of a control file, too
	cat mnt/.kpackfs/stats >stats 3>&- &
	reader=$!
	run timeout 0.3 tail --pid=$waiting -f /dev/null
	[ "$status" = 124 ]
	kill -KILL $waiting
	wait $waiting || [ $? = 137 ]
	kill -0 $patient
	kill -0 $reader
	[ ! -s have ] && [ ! -s stats ]
	# shellcheck disable=SC2046 # words
	kill -CONT $(daemons)
	wait $patient || [ $? = 1 ]
	grep -q 'No such file' have
	wait $reader
	[ -s stats ]
	check_sums
}

@test "stopped and started again and again under load" {
	make_files 100
	m -o cache_size=1m
	(for _ in 1 2; do check_sums; done) 3>&- &
	reader=$!
	while kill -0 $reader 2>/dev/null; do
		# shellcheck disable=SC2046 # words
		kill -STOP $(daemons)
		read -rt 0.03 <> <(:) || :
		# shellcheck disable=SC2046 # words
		kill -CONT $(daemons)
		read -rt 0.02 <> <(:) || :
	done
	wait $reader
}

overlay() { # OPTION...
	mkdir -p over upper
	mount -t tmpfs none upper
	mkdir upper/up upper/work
	mount -t overlay none -o "lowerdir=$T/mnt,upperdir=$T/upper/up,workdir=$T/upper/work$1" over
}

@test "overlayfs: files are made, replaced, removed and moved above the mount" {
	must_be_root
	make_files 30
	m
	ls -lR mnt >before
	for options in "" ,xino=on ,metacopy=on,redirect_dir=on ,index=on,nfs_export=on; do
		overlay "$options"
		(
			cd over
			sed 's,mnt/,,' ../sums | sha256sum --quiet -c
			py <<-'PY'
			import errno, os
			def fails(number, call):
			    try:
			        call()
			    except OSError as e:
			        assert e.errno == number, e
			    else:
			        raise AssertionError(number)
			want = open("d1/f1", "rb").read()
			os.close(os.open("new", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
			os.close(os.open("d1/new", os.O_CREAT | os.O_RDWR))
			os.close(os.open("d1/f1", os.O_CREAT | os.O_RDONLY))
			fails(errno.EEXIST, lambda: os.open("d1/f1", os.O_CREAT | os.O_EXCL | os.O_RDWR))
			fails(errno.EISDIR, lambda: os.open("d1", os.O_CREAT | os.O_WRONLY))
			fails(errno.ENOENT, lambda: os.open("d9/new", os.O_CREAT | os.O_WRONLY))
			fd = os.open("d1", os.O_TMPFILE | os.O_RDWR)
			os.close(fd)
			os.chmod("d1/f1", 0o600)
			assert open("d1/f1", "rb").read() == want
			with open("d1/f1", "ab") as f:
			    f.write(b"more")
			assert open("d1/f1", "rb").read() == want + b"more"
			os.truncate("d1/f8", 0)
			os.link("d2/f2", "d2/linked")
			os.rename("d2/f9", "d1/moved")
			assert not os.path.exists("d2/f9") and os.path.exists("d1/moved")
			os.rename("d2/f2", "d2/f16")
			os.unlink("d3/f3")
			fails(errno.ENOENT, lambda: os.stat("d3/f3"))
			open("d3/f3", "w").write("again")
			for name in os.listdir("d4"):
			    os.unlink(f"d4/{name}")
			os.rmdir("d4")
			os.mkdir("d4")
			assert os.listdir("d4") == []
			os.utime("d5/f5", (1, 1))
			assert os.stat("d5/f5").st_mtime == 1
			assert sorted(os.listdir("d3")) == ["f10", "f17", "f24", "f3"]
			assert sorted(os.listdir("d1")) == ["f1", "f15", "f22", "f29", "f8", "moved", "new"]
			PY
			rm -rf d6
			[ ! -e d6 ]
		)
		umount over
		umount upper
	done
	ls -lR mnt | cmp before -
	check_sums
}

# bats test_tags=all
@test "stress-ng above the mount, and readers below" {
	must_be_root
	make_files 60
	m -o cache_size=2m
	overlay
	ls -lR mnt >before
	(for _ in 1 2 3; do check_sums; done) 3>&- &
	reader=$!
	(
		cd over
		chmod 0777 .
		timeout 600 stress-ng --temp-path . --timeout 2 --quiet --verify --getdent 1 --dir 1 \
			--dentry 1 --filename 1 --link 1 --symlink 1 --rename 1 --chmod 1 --access 1 \
			--utime 1 --copy-file 1 --sendfile 1 --readahead 1 --mmap 1 --mmap-file \
			--mmap-bytes 8m --fstat 1 --flock 1 --tee 1 >../log 2>&1
	)
	wait $reader
	! grep -i fail log || false
	umount over
	umount upper
	ls -lR mnt | cmp before -
	check_sums
}
