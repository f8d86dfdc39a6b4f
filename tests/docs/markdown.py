"""Reads the parts of a Markdown page that tests need: code blocks, links, headings and tables.

A code block is fenced or indented by four spaces. An HTML comment on the line above a block marks it:

    <!-- docs-test: long needs=mnist -->

markers.py lists the marks. GitHub does not show the comment.
"""

import dataclasses
import pathlib
import re

MARK = re.compile(r"^<!-- docs-test: (.*) -->$")
FENCE = re.compile(r"^(```+)\s*([\w+-]*)\s*$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+?)\s*$")


class PageError(Exception):
    """A page breaks a rule. The message names the page and the line."""


@dataclasses.dataclass
class Block:
    """A code block. `line` is the number of its first line of code, from 1; `language` is "" if it is indented."""

    page: str
    line: int
    language: str
    text: str
    marks: dict

    @property
    def place(self):
        return f"{self.page}:{self.line}"


@dataclasses.dataclass
class Page:
    """A page in the repository. `prose` has its lines, with those of code blocks left empty."""

    name: str
    lines: list
    blocks: list
    prose: list

    def headings(self):
        return [match[1] for line in self.prose if (match := HEADING.match(line))]

    def links(self):
        """Returns (line number, target) for every link."""
        return [(number, link) for number, line in enumerate(self.prose, 1) for link in LINK.findall(line)]

    def tables(self):
        """Returns [(line number of the header, header cells, [(line number, cells)])]."""
        tables, current = [], None
        for number, line in enumerate(self.prose, 1):
            if not line.startswith("|"):
                current = None
                continue
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if current is None:
                current = (number, cells, [])
                tables.append(current)
            elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                current[2].append((number, cells))
        return tables


def read_marks(text, place):
    """Returns {"long": "", "needs": "mnist"} for "long needs=mnist"."""
    marks = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name in marks:
            raise PageError(f"{place}: the mark {name} is given twice")
        marks[name] = value
    return marks


def parse(name, text):
    lines = text.splitlines()
    page = Page(name, lines, [], list(lines))
    at = 0
    marks = {}
    while at < len(lines):
        line = lines[at]
        mark, fence = MARK.match(line), FENCE.match(line)
        if line.startswith("<!-- docs-test") and not mark:
            raise PageError(f"{name}:{at + 1}: write the mark as <!-- docs-test: NAME[=VALUE] ... -->")
        if mark:
            marks = read_marks(mark[1], f"{name}:{at + 1}")
            page.prose[at] = ""
            at += 1
            continue
        if fence or line.startswith("```"):
            if not fence:
                raise PageError(f"{name}:{at + 1}: a fence has at most one word behind it, the language")
            end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == fence[1]), None)
            if end is None:
                raise PageError(f"{name}:{at + 1}: the code block has no end")
            page.blocks.append(Block(name, at + 2, fence[2] or "none", "\n".join(lines[at + 1 : end]) + "\n", marks))
            page.prose[at : end + 1] = [""] * (end + 1 - at)
            at, marks = end + 1, {}
            continue
        if line.startswith("    ") and (at == 0 or not lines[at - 1].strip() or MARK.match(lines[at - 1])):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            code = [code[4:] for code in lines[at:end]]
            page.blocks.append(Block(name, at + 1, "", "\n".join(code).strip("\n") + "\n", marks))
            page.prose[at:end] = [""] * (end - at)
            at, marks = end, {}
            continue
        if line.strip() and marks:
            raise PageError(f"{name}:{at + 1}: the mark above stands before no code block")
        at += 1
    return page


def read(root, name):
    return parse(name, (pathlib.Path(root) / name).read_text(encoding="utf-8"))


def anchor(heading):
    """Returns the anchor that GitHub gives to a heading."""
    plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
    return plain.replace(" ", "-")


def anchors(page):
    found, seen = set(), {}
    for heading in page.headings():
        name = anchor(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    return found
