#!/usr/bin/env bats
# contrib/examples/distributed/serving.md: archives on a web server, by the command of that page.

load mounting

# bats file_tags=plain, single, all

@test "archives on a web server: little is fetched to mount them, and they are read again when it is back" {
	if ! command -v rclone >/dev/null; then
		[ "${CI-}" != true ]
		skip "needs rclone"
	fi
	mounts "$KPACK_SRC/contrib/examples/distributed/serving.md" <<-'END'
	import http.server, io, re, shlex, threading
	sent = 0
	class Handler(http.server.SimpleHTTPRequestHandler):  # which knows no ranges
	    def send_head(self):
	        asked = re.fullmatch("bytes=([0-9]+)-([0-9]+)", self.headers.get("Range", ""))
	        if not asked:
	            return super().send_head()
	        with open(self.translate_path(self.path), "rb") as f:
	            data = f.read()
	        first, last = map(int, asked.groups())
	        part = data[first:last + 1]
	        self.send_response(206)
	        self.send_header("Content-Length", str(len(part)))
	        self.send_header("Content-Range", "bytes %d-%d/%d" % (first, first + len(part) - 1, len(data)))
	        self.end_headers()
	        return io.BytesIO(part)
	    def copyfile(self, part, to):
	        global sent
	        data = part.read()
	        sent += len(data)
	        to.write(data)
	    def log_message(self, *what):
	        pass
	class Server(http.server.ThreadingHTTPServer):
	    daemon_threads = True
	    def handle_error(self, *what):  # rclone closes what it needs no more
	        pass
	def serve(port=0):
	    server = Server(("127.0.0.1", port), Handler)
	    threading.Thread(target=server.serve_forever, daemon=True).start()
	    return server
	os.mkdir("net")
	os.mkdir("rocm")
	os.symlink("../src", "rocm/.kpack")
	objects = {"%s%d" % (gpu, i): noise(100000, i) for gpu in "ab" for i in range(60)}
	for gpu in "ab":  # noise is not compressed
	    archive("src/rocm_gfx90%s:xnack+.kpack" % gpu, {n: data for n, data in objects.items() if n[0] == gpu}, scheme="none")
	server = serve()
	page = re.search(r"^rclone mount (.*?)[^\\]$", text(sys.argv[1]), re.M | re.S).group()
	command = [w.replace("/net/rocm", whole("net")).replace("https://server", "http://127.0.0.1:%d" % server.server_port)
	           .replace("/var/cache/rocm", whole("cache")) for w in shlex.split(page.replace("\\\n", ""))]
	os.environ["RCLONE_CONFIG"] = "/dev/null"
	subprocess.run(command, check=True)
	mount = Mount("-o", "poll=1h", sources=["net"])
	assert sent < 300000, sent
	def same(name):
	    with open("mnt/" + name, "rb") as f:
	        return f.read() == objects[name]
	assert same("a0")
	server.shutdown()
	server.server_close()
	assert same("a0")
	fails(errno.EIO, same, "a50")
	fails(errno.EIO, same, "b50")
	server = serve(server.server_port)
	left = list(objects)
	while left:
	    try:
	        assert same(left[0])
	        left.pop(0)
	    except OSError as e:  # rclone repeats its last error until a download succeeds
	        assert e.errno == errno.EIO
	mount.unmount()
	subprocess.run(["fusermount3", "-u", "net"], check=True)
	os.wait()  # rclone
	END
}
