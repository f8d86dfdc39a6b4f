"""A server that behaves as the first folder of a URL says, and helpers to fetch from it."""

import hashlib
import http.server
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import unittest

PROBE = os.environ["ARBALEST_FETCH_PROBE"]
PROGRAM = os.environ["ARBALEST_PROGRAM"]
CONTENT = bytes(range(256)) * 4096  # 1 MiB


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # the client has seen enough

    def do_GET(self):
        behavior = self.path.split("/")[1]
        offset = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "") or "")
        self.offset = int(offset[1]) if offset else 0
        with self.server.lock:
            self.server.requests.append((behavior, self.offset))
        getattr(self, behavior)()

    def begin(self, status=200, length=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def times(self, behavior):
        with self.server.lock:
            return sum(name == behavior for name, _ in self.server.requests)

    def send(self, content, length=None, status=None):
        rest = content[self.offset :]
        if self.offset >= len(content) > 0:
            return self.begin(416, 0)
        headers = {}
        if self.offset > 0:
            headers["Content_Range"] = f"bytes {self.offset}-{len(content) - 1}/{len(content)}"
        self.begin(status or (206 if self.offset else 200), len(rest) if length is None else length, **headers)
        self.wfile.write(rest)
        return None

    def break_off(self):
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(2)

    # The behaviors.

    def good(self):
        self.send(self.server.content)

    def no_ranges(self):
        self.offset = 0
        self.send(self.server.content)

    def breaks_off_once(self):
        if self.times("breaks_off_once") > 1:
            return self.good()
        return self.breaks_off()

    def breaks_off(self):
        """Sends a hundred thousand bytes more each time."""
        rest = self.server.content[self.offset :]
        self.begin(206 if self.offset else 200, len(rest), Content_Range=self.content_range())
        self.wfile.write(rest[:100_000])
        self.break_off()

    def content_range(self):
        return f"bytes {self.offset}-{len(self.server.content) - 1}/{len(self.server.content)}"

    def claims_too_few(self):
        self.offset = 0
        self.send(self.server.content[:1000])

    def claims_too_many(self):
        self.begin(200, len(self.server.content) + 1)
        self.wfile.write(self.server.content)
        self.wfile.write(b"x")

    def sends_too_few(self):
        self.offset = 0
        self.begin(200, len(self.server.content))
        self.wfile.write(self.server.content[:-1])
        self.break_off()

    def endless(self):
        self.begin(200, Transfer_Encoding="chunked")
        while True:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(CONTENT), CONTENT))

    def wrong_content(self):
        self.send(self.server.content[:-1] + b"?")

    def wrong_range(self):
        """Answers a range with another one."""
        self.begin(206, 1000, Content_Range=f"bytes 7-1006/{len(self.server.content)}")
        self.wfile.write(self.server.content[7:1007])

    def missing(self):
        self.begin(404, 0)

    def busy_once(self):
        if self.times("busy_once") > 1:
            return self.good()
        return self.begin(503, 0)

    def slow(self):
        """Never ends by itself, and sends enough to be no slow server."""
        self.begin(200, len(self.server.content))
        while not self.server.closing.wait(0.05):
            self.wfile.write(b"\0" * 100)

    def redirects(self):
        self.begin(302, 0, Location=self.server.target)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, content=CONTENT):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.requests = []  # behavior, offset
        self.target = ""
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def url(self, behavior):
        return f"http://127.0.0.1:{self.server_address[1]}/{behavior}"

    def handle_error(self, *_):
        pass  # a client that went away

    def close(self):
        self.closing.set()
        self.shutdown()
        self.server_close()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def download(content, folders, name="file.bin", members=()):
    return {
        "name": name,
        "bytes": len(content),
        "sha256": sha256(content),
        "folders": list(folders),
        "members": list(members),
    }


class FetchTest(unittest.TestCase):
    """Has a data root in a folder that nothing else may write to."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.root = self.folder / "data root"
        self.root.mkdir()
        (self.folder / "outside").write_text("outside")

    def serve(self, content=CONTENT):
        server = Server(content)
        self.addCleanup(server.close)
        return server

    def fetch(self, downloads, code=0, source=None):
        """Returns the answer of the probe, after it has looked that nothing was written outside."""
        description = self.folder / "dataset.json"
        description.write_text(json.dumps({"name": "made_up", "folder": "made-up", "downloads": downloads}))
        done = subprocess.run(
            [PROBE, str(description), str(self.root), *([source] if source else [])],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual("\nerror: " in "\n" + done.stderr, code != 0, done.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["data root", "dataset.json", "outside"])
        self.assertEqual((self.folder / "outside").read_text(), "outside")
        return done

    def files(self):
        """Returns the files below the data root: name -> content."""
        return {
            str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if not path.is_dir()
        }
