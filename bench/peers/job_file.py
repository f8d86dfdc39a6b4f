"""Job files: protobuf's text format, as far as a job that a peer can train needs it."""

import re

TOKEN = re.compile(
    r"""
    (?P<space>[\s,;]+|\#[^\n]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?)
  | (?P<string>"[^"\\\n]*"|'[^'\\\n]*')
  | (?P<sign>[{}:])""",
    re.VERBOSE,
)


class JobError(Exception):
    """What is wrong with a job file, or in it beyond what a peer can do."""


def tokens_of(text):
    """(kind, text) of each token; ends with ("end", "")."""
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise JobError(f"line {line}: {text[at:].splitlines()[0]!r} is beyond this reader of job files")
        if match.lastgroup != "space":
            yield match.lastgroup, match.group()
        at = match.end()
    yield "end", ""


class Fields:
    """A message. Fields are taken out one by one, so that one which nobody has asked for can be found."""

    def __init__(self, path):
        self.path = path
        self.values = {}  # name -> values in their order

    def add(self, name, value):
        self.values.setdefault(name, []).append(value)

    def take_all(self, name):
        return self.values.pop(name, [])

    def take(self, name, default=None):
        values = self.take_all(name)
        if len(values) > 1:
            raise JobError(f"{self.path}{name} is there {len(values)} times")
        return values[0] if values else default

    def message(self, name):
        """An empty one where there is none."""
        return self.take(name, Fields(f"{self.path}{name}."))

    def finish(self):
        """Complains of what is left: a peer that ignores a field does not train what the job says."""
        for name in self.values:
            raise JobError(f"the peers do not know {self.path}{name}")


def parse(text):
    """The message that `text` holds."""
    tokens = tokens_of(text)
    stack = [Fields("")]
    for kind, token in tokens:
        if (kind, token) == ("sign", "}") and len(stack) > 1:
            stack.pop()
        elif kind == "end" and len(stack) == 1:
            return stack[0]
        elif kind == "name":
            read_field(token, tokens, stack)
        else:
            raise JobError(f"{stack[-1].path}: {token or 'the end'!r} is not expected here")
    raise JobError("no end")


def read_field(name, tokens, stack):
    kind, token = next(tokens)
    if token == ":":
        kind, token = next(tokens)
    if token == "{":
        message = Fields(f"{stack[-1].path}{name}.")
        stack[-1].add(name, message)
        stack.append(message)
    elif kind == "number":
        number = token.rstrip("f")
        stack[-1].add(name, int(number) if re.fullmatch(r"[-+]?\d+", number) else float(number))
    elif kind == "string":
        stack[-1].add(name, token[1:-1])
    elif kind == "name":
        stack[-1].add(name, {"true": True, "false": False}.get(token, token))
    else:
        raise JobError(f"{stack[-1].path}{name}: {token or 'the end'!r} is no value")
