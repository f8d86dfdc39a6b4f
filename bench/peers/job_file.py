"""Reads the part of protobuf's text format that is needed for peers' jobs."""

import re

TOKEN = re.compile(
    r"""
    (?P<space>[\s,;]+|\#[^\n]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?)
  | (?P<string>"[^"\\\n]*"|'[^'\\\n]*')
  | (?P<sign>[][{}:])""",
    re.VERBOSE,
)


class JobError(Exception):
    """A job file is invalid, or needs a feature that a peer lacks. `at`: line and column of the field, if known.
    """

    def __init__(self, message, at=None):
        super().__init__(message)
        self.at = at


def tokens_of(text):
    """Yields (kind, text, (line, column)) for each token. The last one is ("end", "", ...)."""
    at = 0
    while at < len(text):
        place = (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
        match = TOKEN.match(text, at)
        if match is None:
            raise JobError(f"{text[at:].splitlines()[0]!r} is beyond the peers' reader of job files", place)
        if match.lastgroup != "space":
            yield match.lastgroup, match.group(), place
        at = match.end()
    yield "end", "", (text.count("\n") + 1, 1)


class Fields:
    """A message. A reader takes the fields out one by one, so that finish() finds every field that was not read."""

    def __init__(self, path, at=None):
        self.path, self.at = path, at
        self.values = {}  # name -> [(value, (line, column))], in order

    def add(self, name, value, at):
        self.values.setdefault(name, []).append((value, at))

    def place(self, name):
        """Returns the position of the field, or of its message."""
        return self.values[name][0][1] if name in self.values else self.at

    def take_all(self, name):
        return [value for value, _ in self.values.pop(name, [])]

    def take(self, name, default=None):
        place = self.values[name][-1][1] if name in self.values else None
        values = self.take_all(name)
        if len(values) > 1:
            raise JobError(f"{self.path}{name} is there {len(values)} times; keep one", place)
        return values[0] if values else default

    def take_one_of(self, name, allowed, default=None):
        """Takes a field of which the peers support only some values."""
        place = self.place(name)
        value = self.take(name, default)
        if value not in allowed:
            known = ", ".join(
                str(one).lower() if isinstance(one, bool) else str(one) for one in allowed if one is not None
            )
            raise JobError(f"the peers cannot train with {self.path}{name}: {text_of(value)}; they know {known}", place)
        return value

    def message(self, name):
        """Takes the message with this name, or an empty message if there is none."""
        place = self.place(name)
        value = self.take(name, Fields(f"{self.path}{name}.", self.at))
        if not isinstance(value, Fields):
            raise JobError(f"{self.path}{name} must be a message: {name} {{ ... }}", place)
        return value

    def finish(self):
        """Reports the remaining fields as errors, because a peer that ignores a field would not train the job."""
        for name in self.values:
            raise JobError(
                f"the peers do not know {self.path}{name}; remove it, or compare without the peers", self.place(name)
            )

    def text(self):
        """Returns the fields in job file syntax, on one line."""
        parts = []
        for name, values in self.values.items():
            for value, _ in values:
                is_message = isinstance(value, Fields)
                parts.append(f"{name} {text_of(value)}" if is_message else f"{name}: {text_of(value)}")
        return " ".join(parts)


def text_of(value):
    if isinstance(value, Fields):
        return f"{{ {value.text()} }}" if value.values else "{}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse(text):
    """Returns the message in `text`."""
    tokens = tokens_of(text)
    stack = [Fields("")]
    for kind, token, at in tokens:
        if (kind, token) == ("sign", "}") and len(stack) > 1:
            stack.pop()
        elif kind == "end" and len(stack) == 1:
            return stack[0]
        elif kind == "name":
            read_field(token, at, tokens, stack)
        else:
            inside = f" in {stack[-1].path.rstrip('.')}" if stack[-1].path else ""
            raise JobError(f"{token or 'the end'!r} is not expected here{inside}", at)
    raise JobError("no end")


def read_field(name, at, tokens, stack):
    kind, token, place = next(tokens)
    if token == ":":
        kind, token, place = next(tokens)
    if token == "{":
        message = Fields(f"{stack[-1].path}{name}.", at)
        stack[-1].add(name, message, at)
        stack.append(message)
    elif token == "[":
        kind, token, place = next(tokens)
        while token != "]":
            stack[-1].add(name, scalar(stack[-1].path + name, kind, token, place), at)
            kind, token, place = next(tokens)
    else:
        stack[-1].add(name, scalar(stack[-1].path + name, kind, token, place), at)


def scalar(path, kind, token, place):
    if kind == "number":
        number = token.rstrip("f")
        return int(number) if re.fullmatch(r"[-+]?\d+", number) else float(number)
    if kind == "string":
        return token[1:-1]
    if kind == "name":
        return {"true": True, "false": False}.get(token, token)
    raise JobError(f"{path}: {token or 'the end'!r} is no value", place)
