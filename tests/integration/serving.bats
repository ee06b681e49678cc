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
	import http.server, re, shlex, threading, urllib.parse
	sent = 0
	class Handler(http.server.BaseHTTPRequestHandler):
	    def do_GET(self):
	        global sent
	        name = "src/" + urllib.parse.unquote(self.path).partition("rocm/.kpack/")[2]
	        first, size = 0, None
	        if os.path.isfile(name):
	            data = open(name, "rb").read()
	            first, last = re.fullmatch("bytes=([0-9]+)-([0-9]+)", self.headers.get("Range", "bytes=0-%d" % len(data))).groups()
	            first, size, data = int(first), len(data), data[int(first):int(last) + 1]
	        elif not self.path.endswith("/"):
	            return self.send_error(404)
	        else:
	            data = "".join('<a href="%s"></a>' % urllib.parse.quote(n, safe="") for n in os.listdir("src")).encode()
	        self.send_response(206 if "Range" in self.headers else 200)
	        self.send_header("Content-Length", str(len(data)))
	        self.send_header("Content-Type", "text/html")
	        if size:
	            self.send_header("Content-Range", "bytes %d-%d/%d" % (first, first + len(data) - 1, size))
	        self.end_headers()
	        if self.command == "GET":
	            sent += len(data)
	            self.wfile.write(data)
	    do_HEAD = do_GET
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
