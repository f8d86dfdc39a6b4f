"""Puts a fragment of a job file into a whole job: the fragment's top-level fields replace those of the job."""

import re

TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<open>[{<\[])|(?P<close>[}>\]])|(?P<word>[^\s{}<>\[\]\#"':;,]+)|(?P<colon>:)|(?P<other>[;,])"""
)


def top_level_fields(text):
    """Returns [(name, begin, end)]: the position of each field of the message in its text."""
    fields = []
    depth, begin, name, has_value, after_colon = 0, None, None, False, False
    for token in TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "comment":
            continue
        if depth == 0 and kind == "word" and (name is None or (has_value and not after_colon)):
            if name is not None:
                fields.append((name, begin, token.start()))
            name, begin, has_value = token.group(), token.start(), False
        elif kind == "open":
            depth += 1
            has_value = True
        elif kind == "close":
            depth -= 1
        elif kind != "colon":
            has_value = True
        after_colon = kind == "colon"
    if name is not None:
        fields.append((name, begin, len(text)))
    return fields


def names(text):
    return [name for name, _, _ in top_level_fields(text)]


def with_fragment(job, fragment):
    """Returns the job's text without the fields of the fragment, followed by the fragment."""
    replaced = set(names(fragment))
    kept, at = [], 0
    for name, begin, end in top_level_fields(job):
        if name in replaced:
            kept.append(job[at:begin])
            at = end
    kept.append(job[at:])
    return "".join(kept).rstrip("\n") + "\n" + fragment
