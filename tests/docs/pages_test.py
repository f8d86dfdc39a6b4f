"""Tests the pages of the repository: commands run, parts of job files are valid, and links have targets."""

import os
import sys
import tempfile
import unittest

from markdown import PageError, parse, read
from pages import ROOT, PageRun, check_figures, check_files, check_length, check_links, working_directory

PROGRAM = os.environ["ARBALEST_PROGRAM"]
RUN = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
LINKED = [*RUN, "bench/README.md", "bench/results/README.md"]
GUIDES = [
    "guide", "jobs", "data", "models", "tuning", "benchmarks", "checkpoints", "cuda", "design", "distributed", "onnx", "parallelism", "predict", "synchronization", "testing", "weights"
]


class Commands(unittest.TestCase):
    """One test for each page: its commands run. CMake makes a ctest test of each, so that pages run in parallel."""

    def run_page(self, name):
        with tempfile.TemporaryDirectory() as directory:
            run = PageRun(
                read(ROOT, name), working_directory(directory, PROGRAM), PROGRAM, "ARBALEST_DOCS_LONG" in os.environ
            )
            run.run()
        for skipped in run.skipped:
            print(f"not run: {skipped}", file=sys.stderr)


class Pages(unittest.TestCase):
    @unittest.skipUnless("ARBALEST_DOCS_PAGES" in os.environ, "only ctest has a list of pages")
    def test_ctest_runs_every_page(self):
        self.assertEqual(os.environ["ARBALEST_DOCS_PAGES"].split(), [test_name(name) for name in RUN])

    def test_links(self):
        for name in LINKED:
            with self.subTest(name):
                check_links(read(ROOT, name))

    def test_files_that_contributors_touch_are_there(self):
        check_files(read(ROOT, "docs/adding.md"))

    def test_the_readme_is_short(self):
        page = read(ROOT, "README.md")
        check_length(page, lines=150, columns=120, columns_of_tables=200)
        results = [table for table in page.tables() if "figure" in table[1]]
        self.assertEqual(len(results), 1)
        self.assertLessEqual(len(results[0][2]), 7)
        for number, cells in results[0][2]:
            figure = cells[results[0][1].index("figure")]
            self.assertRegex(figure, r"^\**[\d,.]+( [%s]| times)?\**$", f"README.md:{number}: one figure a cell")

    def test_the_contributing_page_is_short(self):
        self.assertLessEqual(len((ROOT / "CONTRIBUTING.md").read_bytes()), 6144)

    def test_figures_stand_on_the_pages_behind_them(self):
        for name in ("README.md", "bench/results/README.md"):
            self.assertGreater(check_figures(read(ROOT, name)), 0)

    def test_every_guide_begins_with_an_example(self):
        for guide in GUIDES:
            page = read(ROOT, f"docs/{guide}.md")
            sections = [number for number, line in enumerate(page.prose, 1) if line.startswith("## ")]
            self.assertLess(page.blocks[0].line, min(sections), f"{page.name} has no example before its first section")


def test_name(page):
    """ "docs/guide.md" -> "docs_guide" """
    return page.replace("/", "_").removesuffix(".md")


def add_page(name):
    setattr(Commands, f"test_{test_name(name)}", lambda self: self.run_page(name))


for page_name in RUN:
    add_page(page_name)


class Runner(unittest.TestCase):
    """Tests that a wrong page fails with a message that names the line."""

    def failure(self, text, runs_long=False):
        with tempfile.TemporaryDirectory() as directory, self.assertRaises(PageError) as raised:
            PageRun(parse("page.md", text), working_directory(directory, PROGRAM), PROGRAM, runs_long).run()
        return str(raised.exception)

    def run_text(self, text, runs_long=False):
        with tempfile.TemporaryDirectory() as directory:
            run = PageRun(parse("page.md", text), working_directory(directory, PROGRAM), PROGRAM, runs_long)
            run.run()
            return run.skipped

    def test_a_command_that_fails(self):
        text = "# A\n\n```sh\ntrue\n```\n\nmore\n\n```sh\narbalest validate configs/absent.txtpb\n```\n"
        self.assertIn("docs-test: page.md:10: exit code 3: arbalest validate configs/absent.txtpb", self.failure(text))
        self.assertIn("page.md:3: exit code 1", self.failure("# A\n\n    bench/absent.sh || false\n"))

    def test_an_unknown_program_and_a_failure_in_a_pipe(self):
        self.assertIn("exit code 127", self.failure("```sh\nno-such-program\n```\n"))
        self.assertIn("exit code 1", self.failure("```sh\nfalse | cat\n```\n"))

    def test_variables_and_files_live_for_the_whole_page(self):
        self.run_text(
            "```sh\nexport A=7\n```\n\n"
            '<!-- docs-test: file=own.txtpb -->\n```textproto\nname: "own"\n```\n\n'
            "```sh\ntest $A = 7 && grep own own.txtpb\n```\n"
        )

    def test_an_expected_exit_code(self):
        self.run_text("<!-- docs-test: exit=3 -->\n```sh\nexit 3\n```\n\n```sh\ntrue\n```\n")
        text = "<!-- docs-test: exit=3 -->\n```sh\narbalest devices\n```\n"
        self.assertIn("page.md:3: exit code 0, not 3", self.failure(text))

    def test_a_job_that_is_wrong(self):
        self.assertIn("page.md:2: as a job file", self.failure("```textproto\ntraining { batch_sice: 3 }\n```\n"))
        self.run_text("```textproto\ntraining { batch_size: 3 }\n```\n")
        self.run_text("<!-- docs-test: exit=3 -->\n```textproto\ntraining { batch_sice: 3 }\n```\n")
        fragment = "model {{ zoo {{ matrix_factorization {{}} }} }}"
        text = f"<!-- docs-test: job=configs/{{}} -->\n```textproto\n{fragment}\n```\n"
        self.run_text(text.format("matrix-factorization-ratings.txtpb"))
        self.assertIn("page.md:3: as a job file", self.failure(text.format("lenet-digits.txtpb")))

    def long(self, command):
        return f"<!-- docs-test: long -->\n```sh\n{command}\n```\n"

    def test_a_long_command_is_checked_and_not_run(self):
        good = "arbalest train configs/lenet-digits.txtpb --set training.max_epochs=500 \\\n    --output DIR"
        self.assertEqual(self.run_text(self.long(good)), ["page.md:3: long, only checked"])
        self.assertEqual(self.run_text(self.long("false && true")), ["page.md:3: long, only checked"])
        self.assertIn("exit code 1", self.failure(self.long("false"), runs_long=True))
        job = "configs/lenet-digits.txtpb"
        for command, said in {
            f"arbalest train {job} --outputs DIR": "no option --outputs",
            "arbalest trian JOB": "trian",
            "arbalest train configs/absent.txtpb": "absent.txtpb",
            f"arbalest bench {job} --set training.batch_sice=1": "batch_sice",
            f"arbalest bench {job} --vary synchronization=sma,s_sgdd": "s_sgdd",
            f"arbalest bench {job} --vary 'synchronization=sma{{period:2, alpha:9}},s_sgd'": "alpha",
            "make demonstration": "demonstration",
            "cmake --preset relaese": "no preset relaese",
            "bench/compare.sh --quickly": "no option --quickly",
            "build/release/bench/speed_bench": "there is no build/release/bench/speed_bench",
            "no-such-program": "there is no program no-such-program",
            "for": "syntax error",
        }.items():
            with self.subTest(command):
                said_by = self.failure(self.long(command))
                self.assertIn("page.md:3", said_by)
                self.assertIn(said, said_by)

    def test_what_is_missing_here_is_said(self):
        text = "<!-- docs-test: needs=no-such-data -->\n```sh\nfalse\n```\n"
        self.assertEqual(self.run_text(text), ["page.md:3: needs no-such-data"])

    def test_blocks_and_marks_that_nothing_checks(self):
        for text, said in {
            "```bash\ntrue\n```\n": "a block of 'bash' is not checked",
            "```\ntrue\n```\n": "a block of 'none' is not checked",
            "```sh\ntrue\n": "has no end",
            "<!-- docs-test: slow -->\n```sh\ntrue\n```\n": "no mark is called slow",
            "```cpp\nint x;\n```\n": "needs the mark excerpt",
            "```cmake\nproject(x)\n```\n": "needs the mark excerpt",
            "<!-- docs-test: excerpt=LICENSE -->\n```cpp\nint x;\n```\n": "page.md:3: this line is not in LICENSE",
            "<!-- docs-test: excerpt=LICENCE -->\n```cpp\nint x;\n```\n": "there is no LICENCE",
            "<!-- docs-test: long=yes -->\n```sh\ntrue\n```\n": "the mark long needs no value",
            "<!-- docs-test:long -->\n```sh\ntrue\n```\n": "write the mark as",
            "<!-- docs-test: long -->\ntext\n": "before no code block",
        }.items():
            with self.subTest(text):
                self.assertIn(said, self.failure(text))

    def test_links_lengths_and_figures(self):
        for text, said in {
            "[a](absent.md)\n": "leads nowhere",
            "[a](README.md#absent)\n": "no heading #absent",
        }.items():
            with self.assertRaises(PageError) as raised:
                check_links(parse("CONTRIBUTING.md", text))
            self.assertIn(said, str(raised.exception))
        text = "# A `b` c!\n\n[a](#a-b-c) [b](https://example.org)\n\n    [c](no link in code)\n"
        check_links(parse("page.md", text))
        with self.assertRaises(PageError):
            check_files(parse("page.md", "`engine/absent.h`\n"))
        for lines, columns in ((1, 9), (9, 3)):
            with self.assertRaises(PageError):
                check_length(parse("page.md", "long line\nanother\n"), lines, columns, 200)
        page = "bench/results/2026-11-22-batch-norm-statistics.md"
        table = f"| question | figure | page |\n|---|---|---|\n| a | {{}} | [b]({page}) |\n"
        self.assertEqual(check_figures(parse("page.md", table.format("**99.44** (89.46)"))), 2)
        for wrong in ("99.43", "99.44 (1.234)"):
            with self.assertRaises(PageError):
                check_figures(parse("page.md", table.format(wrong)))
        with self.assertRaises(PageError):
            check_figures(parse("page.md", table.replace("](", "] (").format("99.44")))


if __name__ == "__main__":
    unittest.main()
