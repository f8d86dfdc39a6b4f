"""Tables of the pages in bench/results."""

HEADING = "## Tables"


def table(header, rows):
    """Returns a table in Markdown. Cells are texts."""
    lines = ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(lines) + "\n"


def replace_tables(page, tables):
    """Replaces everything below the heading "## Tables" of a page."""
    before, heading, _ = page.read_text(encoding="utf-8").partition(f"{HEADING}\n")
    if not heading:
        raise ValueError(f'{page}: there is no heading "{HEADING}"')
    page.write_text(f"{before}{HEADING}\n\n{tables}", encoding="utf-8")
