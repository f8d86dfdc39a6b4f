"""A file system in memory that loses power: what a recorded sequence of system calls may leave on disk.

Pessimistic where POSIX leaves it open. Data reach the disk with a sync of their file, names with a sync of their
directory. Before that, each sector of a write and each change of a name may be there or not, in any order; only two
changes of one name keep their order. A rename is one change.
"""


class File:
    def __init__(self):
        self.durable = b""
        self.pending = []  # (offset, data)
        self.size = 0

    def append(self, data):
        self.pending.append((self.size, data))
        self.size += len(data)

    def contents(self):
        return overlay(self.durable, self.pending)

    def sync(self):
        self.durable = self.contents()
        self.pending = []

    def after_crash(self, numbers, sector):
        """Returns the bytes on disk: each sector of the pending writes was written or not; a gap reads as zeros."""
        kept = []
        share = numbers.choice([0.0, 0.5, 1.0])
        for offset, data in self.pending:
            at = 0
            while at < len(data):
                end = min(len(data), (offset + at) // sector * sector + sector - offset)
                if numbers.random() < share:
                    kept.append((offset + at, data[at:end]))
                at = end
        contents = overlay(self.durable, kept)
        if self.pending and numbers.random() < 0.2:  # the size was written, some of the data were not
            contents += bytes(self.size - len(contents))
        return contents


class Directory:
    def __init__(self):
        self.durable = {}
        self.live = {}
        self.pending = []  # changes: dictionaries of name -> entry or None, each all or nothing

    def change(self, names):
        """Takes over names, {name: File or Directory, or None if it is gone}, in one step."""
        apply(self.live, names)
        self.pending.append(names)

    def sync(self):
        for change in self.pending:
            apply(self.durable, change)
        self.pending = []

    def after_crash(self, numbers):
        """Returns the names on disk."""
        names = dict(self.durable)
        order = numbers.choice(["none", "all", "first", "any"])
        count = numbers.randint(0, len(self.pending))
        lost = set()
        for index, change in enumerate(self.pending):
            kept = order == "all" or (order == "first" and index < count) or (order == "any" and numbers.random() < 0.5)
            # A change of a name that has lost an earlier change is lost, too.
            if kept and not lost & set(change):
                apply(names, change)
            else:
                lost |= set(change)
        return names


def apply(names, change):
    for name, entry in change.items():
        if entry is None:
            names.pop(name, None)
        else:
            names[name] = entry


def overlay(contents, writes):
    result = bytearray(contents)
    for offset, data in writes:
        if len(result) < offset:
            result += bytes(offset - len(result))
        result[offset : offset + len(data)] = data
    return bytes(result)


class FileSystem:
    """Everything below one directory, which itself is on disk. Paths are relative to it, without "." and ".."."""

    def __init__(self, ignored=()):
        self.root = Directory()
        self.ignored = tuple(ignored)  # classes whose syncs the disk ignores, so that a protection must fail

    def find(self, path):
        entry = self.root
        for name in path.split("/") if path else []:
            entry = entry.live[name]
        return entry

    def around(self, path):
        """Returns the directory of a path, and the name in it."""
        directory, _, name = path.rpartition("/")
        return self.find(directory), name

    def create(self, path, entry):
        directory, name = self.around(path)
        directory.change({name: entry})

    def remove(self, path):
        directory, name = self.around(path)
        directory.change({name: None})

    def rename(self, old, new, exchange):
        directory, old_name = self.around(old)
        other, new_name = self.around(new)
        if directory is not other:
            raise ValueError(f"a rename across directories: {old} to {new}")
        directory.change({old_name: directory.live[new_name] if exchange else None, new_name: directory.live[old_name]})

    def sync(self, path):
        if not isinstance(self.find(path), self.ignored):
            self.find(path).sync()

    def crash(self, target, numbers):
        """Writes what is on disk after a crash into the empty directory `target`."""
        sector = numbers.choice([512, 4096])

        def write(directory, path):
            for name, entry in directory.after_crash(numbers).items():
                if isinstance(entry, Directory):
                    (path / name).mkdir()
                    write(entry, path / name)
                else:
                    (path / name).write_bytes(entry.after_crash(numbers, sector))

        write(self.root, target)
