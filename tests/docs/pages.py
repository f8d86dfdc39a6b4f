"""Runs the code blocks of a page, and checks its links, lengths and figures."""

import os
import pathlib
import re
import subprocess
import sys

import job_text
import markers
from commands import Checker
from markdown import PageError, anchors, read

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SOURCE_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:cc|cu|h|md|proto|py|sh|tsv|txt|txtpb))`")
COMMAND = re.compile(r"^(build/|bench/|arbalest |make |cmake |export )")
TIMEOUT_SECONDS = 600

# Stops at the first command that fails, and prints its position.
PRELUDE = """set -Ee -o pipefail
docs_test_failed() { echo "docs-test: $docs_test_place: exit code $1: $2" >&2; }
trap 'docs_test_failed $? "$BASH_COMMAND"' ERR
"""


def kind_of(block):
    """Returns the block's language. An indented block names none, so it is guessed: commands, or a part of a job."""
    if block.language:
        return block.language
    if COMMAND.match(block.text):
        return "sh"
    return "textproto" if "{" in block.text else "text"


def working_directory(directory, program):
    """Makes a writable directory that looks like the repository to the commands of a page."""
    directory = pathlib.Path(directory)
    for entry in ROOT.iterdir():
        if entry.name not in {"build", "data", "runs", ".git"}:
            (directory / entry.name).symlink_to(entry)
    (directory / "build").mkdir()
    (directory / "build" / "release").symlink_to(pathlib.Path(program).resolve().parent)
    return directory


class PageRun:
    """One page in one working directory."""

    def __init__(self, page, directory, program, runs_long=False):
        self.page, self.directory, self.program, self.runs_long = page, pathlib.Path(directory), program, runs_long
        self.checker = Checker(directory, program)
        self.skipped = []  # "docs/data.md:12: needs mnist"

    def run(self):
        script = [PRELUDE]
        for block in self.page.blocks:
            markers.check(block)
            missing = markers.missing(block)
            if missing:
                self.skipped.append(f"{block.place}: needs {missing}")
            elif kind_of(block) == "sh":
                self.add_commands(block, script)
            elif "file" in block.marks:
                script.append(self.file_command(block))
            if kind_of(block) == "textproto" and not missing:
                self.check_job(block)
            if "excerpt" in block.marks:
                check_excerpt(block)
        self.run_script("".join(script))

    def add_commands(self, block, script):
        if "long" in block.marks:
            script.append(f"docs_test_place={block.place}\n")
            self.checker.check(block)
            if not self.runs_long:
                self.skipped.append(f"{block.place}: long, only checked")
                return
        script.append(f"docs_test_place={block.place}\n")
        if "exit" in block.marks:
            script.append(f"docs_test_code=0; ( trap - ERR\n{block.text}) || docs_test_code=$?\n")
            expected = block.marks["exit"]
            script.append(
                f'[ $docs_test_code -eq {expected} ] || {{ echo "docs-test: {block.place}: exit code $docs_test_code, '
                f'not {expected}" >&2; trap - ERR; exit 1; }}\n'
            )
        else:
            script.append(block.text)

    def file_command(self, block):
        return f"cat >'{block.marks['file']}' <<'docs_test_end'\n{block.text}docs_test_end\n"

    def check_job(self, block):
        text = block.text
        if "model" not in job_text.names(text) or "data" not in job_text.names(text):
            base = block.marks.get("job", "configs/lenet-digits.txtpb")
            text = job_text.with_fragment((self.directory / base).read_text(encoding="utf-8"), text)
        path = self.directory / "docs-test.txtpb"
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([self.program, "validate", str(path)], capture_output=True, text=True, check=False)
        expected = 3 if block.marks.get("exit") == "3" else 0
        if done.returncode != expected:
            raise PageError(
                f"{block.place}: as a job file the block has exit code {done.returncode}, not {expected}:\n"
                f"{text}{done.stdout}{done.stderr}"
            )

    def run_script(self, script):
        environment = {
            "PATH": f"{pathlib.Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.directory),
            "TERM": "dumb",
            "NO_COLOR": "1",
        }
        for name in ("ARBALEST_DATA", "LD_LIBRARY_PATH", "TSAN_OPTIONS", "ASAN_OPTIONS"):
            if name in os.environ:
                environment[name] = os.environ[name]
        if self.page.name != "README.md":  # the README's tour sets PATH, and other pages assume that it was read
            environment["PATH"] = f"{self.directory / 'build' / 'release'}:{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        if done.returncode != 0:
            raise PageError(f"{self.page.name}: a command failed\n{done.stdout[-4000:]}")


def check_excerpt(block):
    path = ROOT / block.marks["excerpt"]
    if not path.is_file():
        raise PageError(f"{block.place}: there is no {block.marks['excerpt']}")
    known = set(map(str.strip, path.read_text(encoding="utf-8").splitlines()))
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.strip() not in known:
            raise PageError(f"{block.page}:{number}: this line is not in {block.marks['excerpt']}: {line.strip()}")


def check_files(page):
    """Every source file that the page names must exist."""
    for number, line in enumerate(page.prose, 1):
        for path in SOURCE_FILE.findall(line):
            if not (ROOT / path).is_file():
                raise PageError(f"{page.name}:{number}: there is no {path}")


def check_links(page):
    for number, link in page.links():
        if re.match(r"^[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (ROOT / page.name).parent / path
        if path and not target.exists():
            raise PageError(f"{page.name}:{number}: the link {link} leads nowhere")
        if fragment and fragment not in anchors(read(ROOT, target.resolve().relative_to(ROOT)) if path else page):
            raise PageError(f"{page.name}:{number}: {path or page.name} has no heading #{fragment}")


def check_length(page, lines, columns, columns_of_tables):
    if len(page.lines) > lines:
        raise PageError(f"{page.name} has {len(page.lines)} lines; at most {lines} are allowed")
    for number, line in enumerate(page.lines, 1):
        most = columns_of_tables if line.startswith("|") else columns
        if len(line) > most:
            raise PageError(f"{page.name}:{number}: {len(line)} characters; at most {most} are allowed")


def check_figures(page):
    """Every number in a column of figures must stand on a page that its row links to."""
    found = 0
    for _, header, rows in page.tables():
        columns = [column for column, name in enumerate(header) if "figure" in name]
        if not columns:
            continue
        for number, cells in rows:
            links = re.findall(r"\]\(([^)#\s]+\.md)", " ".join(cells))
            if not links:
                raise PageError(f"{page.name}:{number}: the row has a figure and no link to its page")
            known = set()
            for link in links:
                text = ((ROOT / page.name).parent / link).read_text(encoding="utf-8")
                known.update(number.rstrip(",") for number in NUMBER.findall(text))
            figures = " ".join(re.sub(r"\[[^\]]*\]\([^)]*\)", "", cells[column]) for column in columns)
            for figure in NUMBER.findall(figures):
                found += 1
                if figure.rstrip(",") not in known:
                    raise PageError(f"{page.name}:{number}: {figure} stands on none of {', '.join(links)}")
    return found
