"""Unpacking of archives that attack: only the known members are written, and only to their names."""

import gzip
import io
import tarfile
import unittest

from servers import FetchTest, download, sha256

A, B = b"a" * 3000, b"b" * 512


def member(path, content, name=None, **changes):
    made = {"path": path, "name": name or path.rsplit("/", 1)[-1], "bytes": len(content), "sha256": sha256(content)}
    return {**made, **changes}


MEMBERS = [member("set/a.bin", A), member("set/b.bin", B)]
WHOLE = {"made-up/a.bin": A, "made-up/b.bin": B}


class Archive:
    def __init__(self, form=tarfile.GNU_FORMAT):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=form)

    def add(self, path, content=b"", **fields):
        info = tarfile.TarInfo(path)
        info.size = len(content)
        for name, value in fields.items():
            setattr(info, name, value)
        self.tar.addfile(info, io.BytesIO(content))
        return self

    def link(self, path, target, kind=tarfile.SYMTYPE):
        return self.add(path, type=kind, linkname=target)

    def packed(self):
        self.tar.close()
        return gzip.compress(self.bytes.getvalue())


def whole(form=tarfile.GNU_FORMAT):
    return Archive(form).add("set", type=tarfile.DIRTYPE).add("set/a.bin", A).add("set/b.bin", B)


class Unpacking(FetchTest):
    def get(self, content, code=0, members=None):
        server = self.serve(content)
        name = "set.tar.gz"
        return self.fetch([download(content, [server.url("good")], name, members or MEMBERS)], code)

    def refused(self, content, text, members=None, left=()):
        self.assertIn(text, self.get(content, 4, members).stderr)
        files = self.files()
        files.pop("made-up/set.tar.gz.part", None)
        self.assertEqual(sorted(files), sorted(left))

    def test_members_are_unpacked_and_the_archive_is_removed(self):
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            self.get(whole(form).packed())
            self.assertEqual(self.files(), WHOLE)
            (self.root / "made-up" / "a.bin").unlink()

    def test_only_what_is_missing_is_written(self):
        self.get(whole().packed())
        kept = (self.root / "made-up" / "b.bin").stat().st_ino
        (self.root / "made-up" / "a.bin").unlink()
        self.get(whole().packed())
        self.assertEqual(self.files(), WHOLE)
        self.assertEqual((self.root / "made-up" / "b.bin").stat().st_ino, kept)

    def test_paths_out_of_the_folder_are_not_written(self):
        archive = Archive()
        for path in ("../evil", "/tmp/evil", "set/../../evil", "../../outside", str(self.folder / "outside"), "x" * 300):
            archive.add(path, b"evil")
        self.get(archive.add("set/a.bin", A).add("set/b.bin", B).packed())
        self.assertEqual(self.files(), WHOLE)

    def test_links_are_not_made_and_not_followed(self):
        archive = Archive().link("set", "../..").link("made-up", str(self.folder)).link("a.bin", "../../outside")
        archive.link("b.bin", "../../outside", tarfile.LNKTYPE)
        self.get(archive.add("set/a.bin", A).add("set/b.bin", B).packed())
        self.assertEqual(self.files(), WHOLE)

    def test_a_link_with_the_name_of_a_member_is_no_member(self):
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            archive = Archive().link("set/a.bin", "../../outside", kind).add("set/b.bin", B)
            self.refused(archive.packed(), "it has no file 'set/a.bin'", left=["made-up/b.bin"])

    def test_a_link_in_place_of_a_file_is_replaced_and_not_written_through(self):
        (self.root / "made-up").mkdir()
        (self.root / "made-up" / "a.bin").symlink_to(self.folder / "outside")
        self.assertIn("is not the published file", self.get(whole().packed(), 4).stderr)
        self.assertEqual(self.files(), {"made-up/a.bin": b"outside"})

    def test_a_member_of_another_length_or_content(self):
        self.refused(Archive().add("set/a.bin", A + b"a").packed(), "'set/a.bin' has 3001 bytes")
        other = Archive().add("set/a.bin", b"b" + A[1:]).packed()
        self.refused(other, "'set/a.bin' differs from the published file")

    def test_a_member_of_unknown_length_is_small(self):
        names = [member("set/names.txt", b"", bytes=0, sha256="")]
        self.get(Archive().add("set/names.txt", b"x" * 65536).packed(), members=names)
        (self.root / "made-up" / "names.txt").unlink()
        self.refused(Archive().add("set/names.txt", b"x" * 65537).packed(), "has 65537 bytes", members=names)

    def test_a_member_that_is_missing(self):
        self.refused(Archive().add("set/a.bin", A).packed(), "it has no file 'set/b.bin'", left=["made-up/a.bin"])

    def test_an_archive_that_ends_early(self):
        content = gzip.decompress(whole().packed())
        for end in (0, 100, 512, 1024, 2000, 4608, 5000):
            self.refused(gzip.compress(content[:end]), "truncated", left=["made-up/a.bin"] if end > 4096 else [])
            if end > 4096:
                (self.root / "made-up" / "a.bin").unlink()

    def test_gzip_that_ends_early_or_is_damaged(self):
        content = whole().packed()
        for damaged in (content[: len(content) // 2], content[:40] + bytes([content[40] ^ 255]) + content[41:]):
            self.get(damaged, 4)
            self.assertEqual([name for name in self.files() if not name.endswith(".part")], [])

    def test_headers_that_are_damaged(self):
        content = bytearray(gzip.decompress(whole().packed()))
        for at in (512, 512 + 124, 512 + 156, 512 + 148):
            damaged = bytearray(content)
            damaged[at] ^= 1
            self.refused(gzip.compress(bytes(damaged)), "a header in it is damaged")

    def test_bombs(self):
        zeros = Archive().add("bomb", bytes(64 << 20)).add("set/a.bin", A).add("set/b.bin", B)
        self.refused(zeros.packed(), "it unpacks to more than")
        headers = Archive()
        for _ in range(5000):
            headers.add("x")
        self.refused(headers.add("set/a.bin", A).packed(), "it unpacks to more than")

    def test_lengths_that_overflow(self):
        content = bytearray(gzip.decompress(whole().packed()))
        for size in (b"777777777777", b"\x80" + b"\xff" * 11, b"-00000000001", b"            "):
            header = bytearray(content[512:1024])
            header[124:136] = size
            header[148:156] = b" " * 8
            header[148:156] = b"%06o\0 " % sum(header)
            self.get(gzip.compress(bytes(content[:512] + header + content[1024:])), 4)
            self.assertEqual([name for name in self.files() if not name.endswith(".part")], [])


if __name__ == "__main__":
    unittest.main()
