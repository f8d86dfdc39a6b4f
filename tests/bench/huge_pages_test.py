"""Tests huge pages for the peers' memory: bench/peers/huge_pages.py."""

import os
import subprocess
import sys
import unittest

from peers import huge_pages

MEASURED = "from peers import huge_pages; kept = b'x' * (64 << 20); print(huge_pages.resident_bytes())"


class HugePages(unittest.TestCase):
    def test_the_environment_keeps_what_else_it_says(self):
        self.assertEqual(
            huge_pages.environment({}, True),
            {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "THP_MEM_ALLOC_ENABLE": "1"},
        )
        before = {"GLIBC_TUNABLES": "glibc.malloc.check=1:glibc.malloc.hugetlb=2", "THP_MEM_ALLOC_ENABLE": "0"}
        self.assertEqual(
            huge_pages.environment(before, True)["GLIBC_TUNABLES"], "glibc.malloc.check=1:glibc.malloc.hugetlb=1"
        )
        self.assertEqual(
            huge_pages.environment(before, False),
            {"GLIBC_TUNABLES": "glibc.malloc.check=1", "THP_MEM_ALLOC_ENABLE": None},
        )
        self.assertIsNone(huge_pages.environment({}, False)["GLIBC_TUNABLES"])

    def test_this_process_has_its_environment_back_afterwards(self):
        before = dict(os.environ)
        for asked_for in (True, False):
            with huge_pages.asked_for_by_children(asked_for):
                self.assertEqual("THP_MEM_ALLOC_ENABLE" in os.environ, asked_for)
            self.assertEqual(dict(os.environ), before)

    def test_where_there_is_no_choice(self):
        self.assertEqual(huge_pages.mode("always [madvise] never\n"), "madvise")
        self.assertIn("nobody", huge_pages.reason_against_choosing("never", "glibc 2.36"))
        self.assertIn("everybody", huge_pages.reason_against_choosing("always", "glibc 2.36"))
        self.assertIn("glibc 2.34 asks for none", huge_pages.reason_against_choosing("madvise", "glibc 2.34"))
        for glibc in ("glibc 2.35", "glibc 2.40", "glibc 3.0"):
            self.assertIsNone(huge_pages.reason_against_choosing("madvise", glibc))

    def test_a_process_has_its_memory_in_huge_pages_if_it_asks_and_only_then(self):
        if reason := huge_pages.reason_against_choosing():
            self.skipTest(reason)
        for asked_for in (True, False):
            with huge_pages.asked_for_by_children(asked_for):
                found = int(subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, check=True).stdout)
            if asked_for:
                self.assertGreater(found, 32 << 20)  # the system may not have enough for all
            else:
                self.assertEqual(found, 0)


if __name__ == "__main__":
    unittest.main()
