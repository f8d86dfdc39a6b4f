#!/usr/bin/env python3
"""R4: loses power at random instants while checkpoints are saved, replaced and deleted; none that was saved is lost.

checkpoint_probe saves five checkpoints, one of them twice, and deletes old ones. strace records its system calls. A trial
replays them up to a random one on a file system in memory (crash_file_system.py), which then loses power, and starts a
resume on what is left. The trial passes if the resume finds a checkpoint that verifies and that is the last saved one or
a newer one.

    tests/faults/power_loss.py --trials 10000 --results power-loss.jsonl
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile

import trials
from crash_file_system import Directory, File, FileSystem

CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+)")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
CALLS = "access,close,fsync,ftruncate,mkdir,openat,rename,renameat2,rmdir,unlink,unlinkat,write"


def strings_of(text):
    return [bytes.fromhex(match.replace("\\x", "")) for match in STRING.findall(text)]


def record(probe, directory):
    """Returns [(call, arguments, strings, result)] of a run of the probe on `directory`."""
    trace = directory / "trace"
    command = ["strace", "-xx", "-s", "16777216", "-e", f"trace={CALLS}", "-o", str(trace)]
    subprocess.run([*command, probe, "live", str(directory / "disk/checkpoints"), "5"], check=True)
    calls = []
    for line in trace.read_text(encoding="ascii").splitlines():
        match = CALL.match(line)
        if match and int(match[3]) >= 0 or match and match[1] == "access":
            calls.append((match[1], match[2], strings_of(match[2]), int(match[3])))
    return calls


class Replay:
    """Carries out recorded calls on a FileSystem; calls on other files are passed over."""

    def __init__(self, disk, ignored):
        self.disk = str(disk) + "/"
        self.files = FileSystem(ignored)
        self.open = {}  # descriptor -> path
        self.saved = 0  # the last checkpoint whose save has ended

    def path(self, raw, directory=None):
        """The path of a string below the disk; None if it lies elsewhere."""
        text = raw.decode()
        if not text.startswith("/"):
            return None if directory is None else f"{directory}/{text}"
        if text + "/" == self.disk:
            return ""
        return text[len(self.disk) :].rstrip("/") if text.startswith(self.disk) else None

    def step(self, call, text, strings, result):
        files = self.files
        first = text.split(",", 1)[0]
        if call == "access" and strings[0].startswith(b"/acknowledged/"):
            self.saved = int(strings[0].rsplit(b"/", 1)[1])
        elif call in ("openat", "unlinkat"):
            path = self.path(strings[0], self.open.get(first))
            if path is None:
                return
            if call == "unlinkat":
                files.remove(path)
                return
            if "O_CREAT" in text:
                files.create(path, File())
            self.open[str(result)] = path
        elif call == "close":
            self.open.pop(first, None)
        elif call == "write" and first in self.open:
            data = strings[0]
            if len(data) != result:
                raise ValueError(f"a write of {result} bytes was recorded with {len(data)}")
            files.find(self.open[first]).append(data)
        elif call == "fsync":
            files.sync(self.open[first])
        elif call == "ftruncate":
            raise ValueError("the replay knows no ftruncate")
        elif call in ("mkdir", "unlink", "rmdir"):
            path = self.path(strings[0])
            if path is not None and call == "mkdir":
                files.create(path, Directory())
            elif path is not None:
                files.remove(path)
        elif call in ("rename", "renameat2"):
            old, new = (self.path(each) for each in strings)
            files.rename(old, new, "RENAME_EXCHANGE" in text)


def trial(probe, calls, disk, number, ignored=()):
    numbers = random.Random(number)
    end = numbers.randint(1, len(calls))
    replay = Replay(disk, ignored)
    for call in calls[:end]:
        replay.step(*call)
    with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
        replay.files.crash(pathlib.Path(name), numbers)
        found = subprocess.run([probe, "check", f"{name}/checkpoints"], capture_output=True, text=True, check=False)
    answer = found.stdout.strip()
    row = {"call": end, "saved": replay.saved, "found": answer, "problem": ""}
    newest = 0 if answer == "none" else int(answer) if answer.isdigit() else -1
    if found.returncode != 0 or newest < replay.saved:
        row["problem"] = (
            f"after call {end} of {len(calls)} checkpoint {replay.saved} was saved, and the resume found '{answer}' "
            f"(exit code {found.returncode}): {found.stderr[-300:]}"
        )
    return row


def main():
    arguments = trials.parser(__doc__, 500).parse_args()
    probe = str((pathlib.Path(arguments.build) / "tests/jobs/checkpoint_probe").resolve())
    with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
        directory = pathlib.Path(name)
        (directory / "disk").mkdir()
        calls = record(probe, directory)
        disk = directory / "disk"
        # On a disk that ignores syncs checkpoints must get lost. Otherwise the trials would prove nothing.
        for ignored in (File, Directory):
            lost = sum(bool(trial(probe, calls, disk, number, [ignored])["problem"]) for number in range(40))
            if lost == 0:
                print(f"a disk without syncs of each {ignored.__name__} loses nothing: this proves nothing", file=sys.stderr)
                return 1
        return trials.run(
            arguments, lambda number: trial(probe, calls, disk, number), f"losses of power at one of {len(calls)} calls"
        )


if __name__ == "__main__":
    sys.exit(main())
