"""Fetching from servers that lie about length and content, break off, and redirect."""

import fcntl
import os
import ssl
import subprocess
import threading
import unittest

from servers import CONTENT, FetchTest, download

WHOLE = {"made-up/file.bin": CONTENT}
PART = "made-up/file.bin.part"


class Transfer(FetchTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()

    def get(self, behavior, code=0):
        return self.fetch([download(CONTENT, [self.server.url(behavior)])], code)

    def put_part(self, content):
        (self.root / "made-up").mkdir()
        (self.root / PART).write_bytes(content)

    def offsets(self):
        return [offset for _, offset in self.server.requests]

    def refused(self, behavior, text, kept=b""):
        done = self.get(behavior, code=4)
        self.assertIn(text, done.stderr)
        self.assertEqual(self.files(), {PART: kept} if kept else {})

    def test_a_whole_file(self):
        self.get("good")
        self.assertEqual(self.files(), WHOLE)

    def test_a_file_that_is_there_is_kept_and_not_fetched(self):
        self.get("good")
        self.assertIn('"was_there":true', self.get("missing").stdout)
        self.assertEqual(self.offsets(), [0])

    def test_another_file_of_that_name_is_kept(self):
        (self.root / "made-up").mkdir()
        (self.root / "made-up" / "file.bin").write_text("mine")
        self.assertIn("is not the published file: its length differs; move it away", self.get("good", code=4).stderr)
        self.assertEqual(self.files(), {"made-up/file.bin": b"mine"})

    def test_a_part_is_completed(self):
        self.put_part(CONTENT[:700_000])
        self.get("good")
        self.assertEqual(self.files(), WHOLE)
        self.assertEqual(self.offsets(), [700_000])

    def test_a_whole_part_is_not_fetched_again(self):
        self.put_part(CONTENT)
        self.get("good")
        self.assertEqual(self.files(), WHOLE)
        self.assertEqual(self.offsets(), [])

    def test_a_part_that_is_too_long_is_dropped(self):
        self.put_part(CONTENT + b"more")
        self.get("good")
        self.assertEqual(self.files(), WHOLE)

    def test_a_part_with_other_bytes_is_found_out(self):
        self.put_part(b"?" * 700_000)
        self.get("good")
        self.assertEqual(self.files(), WHOLE)
        self.assertEqual(self.offsets(), [700_000, 0])

    def test_a_server_without_ranges_sends_all(self):
        self.put_part(CONTENT[:700_000])
        self.get("no_ranges")
        self.assertEqual(self.files(), WHOLE)

    def test_a_server_that_answers_with_another_range(self):
        self.put_part(CONTENT[:700_000])
        self.get("wrong_range", code=4)
        self.assertNotIn("made-up/file.bin", self.files())

    def test_a_connection_that_breaks_off_is_made_again(self):
        done = self.get("breaks_off_once")
        self.assertIn("trying again", done.stderr)
        self.assertEqual(self.files(), WHOLE)
        self.assertEqual(self.offsets()[0], 0)
        self.assertGreater(self.offsets()[1], 0)

    def test_what_has_come_stays_for_the_next_time(self):
        self.refused("breaks_off", "fetch again to continue", kept=CONTENT[:500_000])
        self.assertEqual(len(self.offsets()), 5)
        self.get("good")
        self.assertEqual(self.files(), WHOLE)
        self.assertEqual(self.offsets()[-1], 500_000)

    def test_a_length_that_is_too_small(self):
        self.get("claims_too_few", code=4)
        self.assertNotIn("made-up/file.bin", self.files())

    def test_a_length_that_is_too_large(self):
        self.get("claims_too_many", code=4)
        self.assertNotIn("made-up/file.bin", self.files())

    def test_a_file_that_lacks_its_last_byte(self):
        self.get("sends_too_few", code=4)
        self.assertNotIn("made-up/file.bin", self.files())

    def test_an_endless_file(self):
        done = self.get("endless", code=4)
        self.assertIn("the server sends more than the 1048576 bytes of the file", done.stderr)
        self.assertLessEqual(sum(map(len, self.files().values())), len(CONTENT))

    def test_other_content_of_the_same_length(self):
        self.refused("wrong_content", "its SHA-256 is not that of the published file")
        self.assertEqual(len(self.offsets()), 1)

    def test_a_missing_file(self):
        self.refused("missing", "404")
        self.assertEqual(len(self.offsets()), 1)

    def test_a_busy_server_is_asked_again(self):
        self.get("busy_once")
        self.assertEqual(self.files(), WHOLE)

    def test_a_server_that_is_not_there(self):
        address = self.server.url("good")
        self.server.close()
        self.assertIn("cannot be fetched", self.fetch([download(CONTENT, [address])], code=4).stderr)
        self.assertEqual(self.files(), {})

    def test_the_next_place_is_asked_when_one_fails(self):
        places = [self.server.url(behavior) for behavior in ("missing", "wrong_content", "good")]
        self.fetch([download(CONTENT, places)])
        self.assertEqual(self.files(), WHOLE)

    def test_a_redirect_of_the_same_scheme(self):
        self.server.target = self.server.url("good") + "/file.bin"
        self.get("redirects")
        self.assertEqual(self.files(), WHOLE)

    def test_redirects_to_other_schemes(self):
        secret = self.folder / "outside"
        for target in (
            f"file://{secret}",
            "file:///etc/passwd",
            f"ftp://127.0.0.1:{self.server.server_address[1]}/good/file.bin",
            f"https://127.0.0.1:{self.server.server_address[1]}/good/file.bin",
            f"gopher://127.0.0.1:{self.server.server_address[1]}/good/file.bin",
        ):
            with self.subTest(target):
                self.server.requests.clear()
                self.server.target = target
                self.refused("redirects", "not supported or disabled")
                self.assertEqual(len(self.server.requests), 1)

    def test_redirects_without_an_end(self):
        self.server.target = self.server.url("redirects")
        self.refused("redirects", "Maximum (5) redirects followed")
        self.assertEqual(len(self.server.requests), 6)

    def test_a_link_in_place_of_the_part_is_not_followed(self):
        (self.root / "made-up").mkdir()
        (self.root / PART).symlink_to(self.folder / "outside")
        self.get("good", code=2)
        self.assertNotIn("made-up/file.bin", self.files())

    def test_two_processes_do_not_write_to_the_same_file(self):
        self.put_part(CONTENT[:10])
        with open(self.root / PART, "rb") as part:
            fcntl.flock(part, fcntl.LOCK_EX)
            self.assertIn("another process is fetching", self.get("good", code=2).stderr)
        self.get("good")
        self.assertEqual(self.files(), WHOLE)

    def test_a_certificate_that_nobody_has_signed(self):
        key, certificate = self.folder / "key", self.folder / "certificate"
        try:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                 "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out",
                 str(certificate)],
                check=True,
                capture_output=True,
            )
        except FileNotFoundError:
            self.skipTest("openssl is not installed")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        key.unlink()
        certificate.unlink()
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        url = self.server.url("good").replace("http:", "https:")
        done = self.fetch([download(CONTENT, [url])], code=4)
        self.assertIn("certificate", done.stderr)
        self.assertEqual(self.files(), {})

    def test_a_mirror_is_asked_in_place_of_the_publisher(self):
        places = [self.server.url("missing")]
        self.fetch([download(CONTENT, places)], source=self.server.url("good"))
        self.assertEqual([behavior for behavior, _ in self.server.requests], ["good"])

    def test_a_folder_is_a_mirror(self):
        mirror = self.root / "mirror"
        for place in (mirror, mirror / "made-up"):
            with self.subTest(place):
                place.mkdir(parents=True)
                (place / "file.bin").write_bytes(CONTENT)
                self.fetch([download(CONTENT, [])], source=str(mirror))
                self.assertEqual(self.files()["made-up/file.bin"], CONTENT)
                (self.root / "made-up" / "file.bin").unlink()
                (place / "file.bin").write_bytes(CONTENT[:-1])
                self.assertIn("is not the published file", self.fetch([download(CONTENT, [])], 4, str(mirror)).stderr)
                self.assertNotIn("made-up/file.bin", self.files())
                (place / "file.bin").unlink()

    def test_a_wrong_file_in_a_mirror_does_not_cost_the_part(self):
        self.put_part(CONTENT[:700_000])
        mirror = self.root / "mirror"
        mirror.mkdir()
        for wrong in (b"", CONTENT[:-1], CONTENT[:-1] + b"?", CONTENT + b"?"):
            (mirror / "file.bin").write_bytes(wrong)
            done = self.fetch([download(CONTENT, [])], code=4, source=str(mirror))
            self.assertIn("is not the published file; the downloaded part is kept", done.stderr)
            self.assertEqual(self.files()[PART], CONTENT[:700_000])
        self.get("good")
        self.assertEqual(self.offsets(), [700_000])

    def test_a_pipe_in_a_mirror_is_not_waited_for(self):
        mirror = self.root / "mirror"
        mirror.mkdir()
        missing = self.fetch([download(CONTENT, [])], 4, str(mirror)).stderr
        self.assertIn(f"neither '{mirror}/file.bin' nor '{mirror}/made-up/file.bin' is there; name another mirror", missing)
        os.mkfifo(mirror / "file.bin")
        self.assertIn("cannot be read", self.fetch([download(CONTENT, [])], 4, str(mirror)).stderr)

    def test_a_failure_leaves_no_new_folder(self):
        top, self.root = self.root, self.root / "new" / "root"
        self.refused("missing", "404")
        self.assertEqual(list(top.iterdir()), [])

    def test_other_mirrors_are_refused(self):
        for mirror in ("ftp://127.0.0.1/", "file:///etc", str(self.root / "none"), "http:/127.0.0.1"):
            self.fetch([download(CONTENT, [])], code=2, source=mirror)
        self.assertEqual(self.files(), {})

    def test_a_password_is_not_shown(self):
        url = self.server.url("missing").replace("http://", "http://me:secret@")
        self.assertNotIn("secret", self.fetch([download(CONTENT, [url])], code=4).stderr)


if __name__ == "__main__":
    assert threading.current_thread() is threading.main_thread()
    unittest.main()
