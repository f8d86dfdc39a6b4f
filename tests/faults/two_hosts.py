#!/usr/bin/env python3
"""Two machines with a network between them, which is cut or slow: the processes on both sides end, or train on.

Each machine is a network namespace with a host name of its own, two processes, and an end of a pair of veth interfaces.
The cases:

    whole   the network works; the model has the bytes of a run on one machine
    slow    100 Mbit/s; the model has the same bytes
    down    the interface of the second machine goes down during the training
    silent  the network drops everything, without a word, during the training
    deaf    the first machine drops all that arrives, but what it sends gets through

After each cut a process on each machine must name a process of the other one, with its host. After `deaf` the second
machine may name one of its own instead: it hears of its own silence, unless the first one's connections, which wait for
acknowledgments in vain, stall before they have told it. All processes must end, and the daemon of mpirun on the machine that
is cut off, and mpirun with exit code 8. With --resume=auto the run must go on, on one machine, to the same bytes.

    tests/faults/two_hosts.py                                     # each case once, two minutes
    tests/faults/two_hosts.py --trials 40 --results hosts.jsonl
"""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import dead_ranks
import kill_runs
import namespaces
import processes
import trials

HOSTS = ("one", "two")
CASES = ("whole", "slow", "down", "silent", "deaf")
CUTS = ("down", "silent", "deaf")
NETWORK = "10.77.0"
TIMEOUT = 8  # seconds: processes.peer_timeout_seconds
LIMIT = 120  # seconds after which processes that were cut off are left

JOB = f"""
model {{ zoo {{ lenet {{}} }} }}
data {{ npy {{ directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 }} }}
training {{ batch_size: 8 max_epochs: 2 }}
optimizer {{ sgd {{ momentum: 0.9 }} }}
learning_rate {{ base: 0.003 }}
learners {{ per_device {{ fixed: 1 }} }}
processes {{ peer_timeout_seconds: {TIMEOUT} }}
checkpoint {{ every_batches: 40 keep_last: 2 }}
"""

# mpirun and its daemons give a connection up when the kernel does: after about 15 minutes, or 25 seconds with this. MPI does
# so, too, and ends the processes without a name, so the time must be longer than TIMEOUT.
RETRIES = "net.ipv4.tcp_retries2=6"
# mpirun calls this to start its daemon on a host.
AGENT = '#!/bin/sh\nhost=$1; shift\nexec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"\n'
# Each rank keeps what it says, because a cut network loses what goes through mpirun.
RANK = 'rank=$OMPI_COMM_WORLD_RANK; "$@" 2>"errors.$rank"; code=$?; echo $code >"code.$rank"; exit $code'


def call(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def hide_other_networks():
    """The names of network namespaces are files; from here on this test sees and makes only its own."""
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    call("mount", "-t", "tmpfs", "tmpfs", "/run/netns")


def connect_hosts():
    for host in HOSTS:
        call("ip", "netns", "add", host)
        call("ip", "-n", host, "link", "set", "lo", "up")
        call("ip", "netns", "exec", host, "sysctl", "-w", RETRIES)
    call("ip", "link", "add", "veth1", "netns", HOSTS[0], "type", "veth", "peer", "name", "veth2", "netns", HOSTS[1])
    for number, host in enumerate(HOSTS, 1):
        call("ip", "-n", host, "address", "add", f"{NETWORK}.{number}/24", "dev", f"veth{number}")
        call("ip", "-n", host, "link", "set", f"veth{number}", "up")


def disconnect_hosts():
    for host in HOSTS:
        call("ip", "netns", "delete", host)


def slow_down():
    for number, host in enumerate(HOSTS, 1):
        rate = ["tbf", "rate", "100mbit", "burst", "64kb", "latency", "50ms"]
        call("tc", "-n", host, "qdisc", "add", "dev", f"veth{number}", "root", *rate)


def cut(case):
    if case == "down":
        call("ip", "-n", HOSTS[1], "link", "set", "veth2", "down")
        return
    on_first = ["ip", "netns", "exec", HOSTS[0], "nft", "add"]
    call(*on_first, "table", "ip", "cut")
    for hook, side in (("input", "iifname"), ("output", "oifname")):
        if hook == "output" and case == "deaf":
            continue
        call(*on_first, "chain", "ip", "cut", hook, f"{{ type filter hook {hook} priority 0; policy accept; }}")
        call(*on_first, "rule", "ip", "cut", hook, side, "veth1", "drop")


def launch(program, root, run):
    network = ["--mca", "btl_tcp_if_include", f"{NETWORK}.0/24", "--mca", "oob_tcp_if_include", f"{NETWORK}.0/24"]
    words = ["mpirun", "--mca", "plm_rsh_agent", root / "agent", "--host", ",".join(f"{host}:2" for host in HOSTS)]
    words += [*network, "--mca", "btl", "self,vader,tcp", "--bind-to", "none", "-np", "4", "sh", "-c", RANK, "rank"]
    words += [program, "train", root / "job.txtpb", "--quiet", "--output", run]
    inside = f"hostname {HOSTS[0]}; exec \"$@\""
    command = ["ip", "netns", "exec", HOSTS[0], "unshare", "--uts", "sh", "-c", inside, "sh", *map(str, words)]
    # A file: a daemon that is cut off would keep a pipe open.
    with (run.parent / "mpirun.log").open("w", encoding="utf-8") as log:
        return subprocess.Popen(
            command, env=processes.environment(), cwd=run.parent, stdout=log, stderr=log, start_new_session=True
        )


def running(program):
    """The processes of a program. Those of other tests are in other namespaces."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes().split(b"\0")[0] == str(program).encode():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def seconds_until(is_over, begin):
    """Waits until LIMIT after `begin`, at most."""
    while not is_over() and time.monotonic() < begin + LIMIT:
        time.sleep(0.05)
    return round(time.monotonic() - begin, 1)


def text_of(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


def problem_of_ranks(place, case):
    """What is wrong with what the ranks of both hosts say after the network was cut; "" if nothing is."""
    of_first, of_second = f"rank [01] on host {HOSTS[0]}", f"rank [23] on host {HOSTS[1]}"
    named_on_second = f"({of_first}|{of_second})" if case == "deaf" else of_first
    for ranks, named in (((0, 1), of_second), ((2, 3), named_on_second)):
        said = "".join(text_of(place / f"errors.{rank}") for rank in ranks)
        if not re.search(rf"{named}(\) as dead| is dead)", said):
            return f"what the ranks {ranks} say does not match '{named}': {said[-600:]}"
    return ""


class Hosts:
    def __init__(self, program, root):
        self.program = program
        self.root = root
        self.expected = ""

    def train_on_one(self):
        words = [self.root / "job.txtpb", "-q", "--output", self.root / "whole"]
        code, errors = processes.end(processes.launch(self.program, 4, words, self.root))
        self.expected = dead_ranks.model_of(self.root / "whole") if code == 0 else ""
        return "" if code == 0 else f"the run on one machine ends with exit code {code}: {errors}"

    def trial(self, number):
        case = CASES[number % len(CASES)]
        place = self.root / f"trial-{number}"
        place.mkdir()
        run = place / "run"
        connect_hosts()
        try:
            if case == "slow":
                slow_down()
            process = launch(self.program, self.root, run)
            row = self.end_whole(process, run) if case not in CUTS else self.end_cut(process, run, case)
            return {"case": case, **row}
        finally:
            disconnect_hosts()
            shutil.rmtree(place)

    def end_whole(self, process, run):
        begin = time.monotonic()
        code = process.wait(timeout=processes.LIMIT)
        problem = f"exit code {code}: {text_of(run.parent / 'mpirun.log')}" if code != 0 else ""
        if code == 0 and dead_ranks.model_of(run) != self.expected:
            problem = "the model has other bytes than that of one machine"
        return {"seconds": round(time.monotonic() - begin, 1), "problem": problem}

    def end_cut(self, process, run, case):
        log = run / "metrics.jsonl"
        while process.poll() is None and '"checkpoint"' not in text_of(log):
            time.sleep(0.01)
        cut(case)
        begin = time.monotonic()
        row = {
            "seconds": seconds_until(lambda: not running(self.program), begin),
            "mpirun_seconds": seconds_until(lambda: process.poll() is not None, begin),
            "daemon_seconds": seconds_until(lambda: not running("orted"), begin),
        }
        left = [*running(self.program), *running("mpirun"), *running("orted")]
        for number in left:
            os.kill(number, signal.SIGKILL)
        row["code"] = process.wait()
        if left:
            return {**row, "problem": f"the processes {left} are left"}
        problem = problem_of_ranks(run.parent, case)
        if row["code"] != 8:
            problem = problem or f"the exit code of mpirun is {row['code']}: {text_of(run.parent / 'mpirun.log')}"
        return {**row, "problem": problem or self.problem_of_resumption(run)}

    def problem_of_resumption(self, run):
        words = [self.root / "job.txtpb", "--quiet", "--output", run, "--resume=auto", "--set", "learners.per_device.fixed=2"]
        code, errors = processes.end(processes.launch(self.program, 2, words, self.root))
        if code != 0:
            return f"resumed with exit code {code}: {errors[-400:]}"
        return "" if dead_ranks.model_of(run) == self.expected else "the resumed run has other bytes"


def missing():
    """Why two hosts cannot be made here; "" if they can."""
    for tool in ("tc", "nft"):
        if shutil.which(tool) is None:
            return f"there is no {tool} (Debian: iproute2, nftables)"
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    return namespaces.missing()


def main():
    arguments = trials.parser(__doc__, len(CASES)).parse_args()
    program = pathlib.Path(arguments.build).resolve() / "arbalest"
    reason = processes.missing(program) or missing()
    if reason:
        print(f"skipped: {reason}")
        return processes.SKIPPED
    namespaces.enter()
    hide_other_networks()
    arguments.at_once = 1  # four processes already share the cores
    with processes.scratch() as name:
        root = pathlib.Path(name)
        kill_runs.write_images(root / "images28", 28, 1, 640, random.Random(1))
        (root / "job.txtpb").write_text(JOB, encoding="utf-8")
        (root / "agent").write_text(AGENT, encoding="ascii")
        (root / "agent").chmod(0o755)
        hosts = Hosts(program, root)
        problem = hosts.train_on_one()
        if problem:
            print(problem, file=sys.stderr)
            return 1

        def text(rows):
            slowest = max(row.get("seconds", 0) for row in rows if row.get("case") in CUTS)
            return f"runs on two hosts ended as they must; after a cut all processes ended within {slowest:.1f} s"

        return trials.run(arguments, hosts.trial, text)


if __name__ == "__main__":
    sys.exit(main())
