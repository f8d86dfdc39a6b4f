#!/usr/bin/env python3
"""Facts about the compiled kernels, read without a GPU.

    kernel_facts.py ARCHIVE                    prints the table of the kernels in a library or program
    kernel_facts.py ARCHIVE --compare TABLE    tells what differs from the table
    kernel_facts.py ARCHIVE --loops PATTERN    prints the inner loops of the kernels with this in their names: how many of
                                               their instructions are fused multiply-adds in FP32, and all of them

Columns: registers of a thread, bytes of shared memory and of stack, blocks that an SM holds at once and their share of
its warps, and the number of instructions that read and write global memory, by the bytes that a thread moves with one.
Exit codes: 0 done, 1 something differs, 2 usage, 4 skipped: cuobjdump is not installed, or another compiler made ARCHIVE.
"""

import argparse
import collections
import difflib
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTHS = (1, 2, 4, 8, 16)  # bytes of a load or store of one thread

# CUDA C++ Programming Guide, technical specifications by compute capability: bytes of an SM's shared memory, and its
# maximum numbers of warps and blocks.
Processor = collections.namedtuple("Processor", "shared warps blocks")
PROCESSORS = {"sm_80": Processor(164 * 1024, 64, 32), "sm_90": Processor(228 * 1024, 64, 32)}
REGISTERS = 65536  # per SM
REGISTERS_AT_ONCE = 256  # a warp gets a multiple of this number
SHARED_AT_ONCE = 128  # bytes; a block gets a multiple of this number
SHARED_RESERVED = 1024  # bytes that CUDA reserves in each block
REPORTED_WITH_RESERVED = {"sm_90"}  # cuobjdump adds SHARED_RESERVED to a kernel's own shared memory
COLUMNS = ["kernel", "processor", "registers", "shared", "stack", "threads", "blocks per SM", "occupancy %"] + [
    f"{what} {width} B" for what in ("loads", "stores") for width in WIDTHS]


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


def round_up(value, multiple):
    return -(-value // multiple) * multiple


def occupancy(processor, registers, shared, threads):
    """Returns the number of blocks that an SM holds at once, and their share of its warps."""
    of = PROCESSORS[processor]
    warps = round_up(threads, 32) // 32
    by_registers = REGISTERS // round_up(registers * 32, REGISTERS_AT_ONCE) // warps
    by_shared = of.shared // round_up(shared + SHARED_RESERVED, SHARED_AT_ONCE)
    blocks = min(by_registers, by_shared, of.warps // warps, of.blocks)
    return blocks, blocks * warps / of.warps


def plain_name(mangled, demangled):
    """The name without return type, parameters and our namespaces: "weight_update: step_averaged<AdamWStep>"."""
    file = re.search(r"_GLOBAL__N__[0-9a-f]+_\d+_(\w+?)_cu_[0-9a-f]+", mangled)
    name = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+?_cu_[0-9a-f]+::|arbalest::engine::(?:cuda::|elementwise::)?",
                  "", demangled)
    if replicated := re.match(r"void replicated::run<&\(?(.*)", name):  # engine/cuda/runtime/launch.h
        name = replicated.group(1)
    depth = 0
    for at, letter in enumerate(name):  # up to the parameters, or to the next argument of the template
        if depth == 0 and letter in "(,>":
            name = name[:at]
            break
        depth += (letter == "<") - (letter == ">")
    name = re.sub(r"^void ", "", name)
    return f"{file.group(1)}: {name}" if file else name


def demangle(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True)
    return dict(zip(names, done.stdout.splitlines()))


def parse_resources(text):
    """(processor, mangled name) -> (registers, shared, stack), from cuobjdump --dump-resource-usage."""
    found, processor, name = {}, None, None
    for line in text.splitlines():
        if match := re.match(r"arch = (\w+)", line):
            processor = match.group(1)
        elif match := re.match(r"\s*Function (\S+):", line):
            name = match.group(1)
        elif match := re.match(r"\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", line):
            registers, stack, shared, local = map(int, match.groups())
            if shared > 0 and processor in REPORTED_WITH_RESERVED:
                shared -= SHARED_RESERVED
            found[processor, name] = (registers, shared, stack + local)
    return found


def parse_accesses(lines):
    """(processor, mangled name) -> {(kind, bytes): instructions}, from cuobjdump --dump-sass."""
    found, processor, counts = collections.defaultdict(collections.Counter), None, None
    access = re.compile(r"\b(LDG|STG|LD|ST)\.E((?:\.[A-Z0-9_]+)*)")
    for line in lines:
        if match := re.match(r"arch = (\w+)", line):
            processor = match.group(1)
        elif match := re.match(r"\s*Function : (\S+)", line):
            counts = found[processor, match.group(1)]
        elif match := access.search(line):
            width = next((int(part) // 8 for part in re.findall(r"\b[US]?(8|16|64|128)\b", match.group(2).replace("_", "."))),
                         4)
            counts["loads" if match.group(1).startswith("LD") else "stores", width] += 1
    return found


def parse_loops(lines):
    """(processor, mangled name) -> [(fused multiply-adds, instructions)] of the loops that have any and hold no other such
    loop, in the order of the code, from cuobjdump --dump-sass. A loop ends with a jump back to its first instruction."""
    found, processor, loops, places, fused = {}, None, [], {}, []
    for line in lines:
        if match := re.match(r"arch = (\w+)", line):
            processor = match.group(1)
        elif match := re.match(r"\s*Function : (\S+)", line):
            loops, places, fused = found.setdefault((processor, match.group(1)), []), {}, []
        elif match := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line):
            places[int(match.group(1), 16)] = len(fused)
            fused.append("FFMA" in match.group(2))
            jump = re.search(r"\bBRA\b.* 0x([0-9a-f]+)$", match.group(2))
            begin = places.get(int(jump.group(1), 16)) if jump else None
            holds_another = begin is not None and any(begin <= other for other, _, _ in loops)
            if begin is not None and any(fused[begin:]) and not holds_another:
                loops.append((begin, sum(fused[begin:]), len(fused) - begin))
    return {kernel: [loop[1:] for loop in of] for kernel, of in found.items()}


def loops(archive, pattern):
    found = parse_loops(dump(archive, "--dump-sass"))
    names = demangle(sorted({name for _, name in found}))
    rows = [(plain_name(mangled, names[mangled]), processor, *(f"{fused} of {all_of}" for fused, all_of in of))
            for (processor, mangled), of in found.items()]
    return "".join("\t".join(row) + "\n" for row in sorted(rows) if pattern in row[0])


def block_sizes():
    """Returns the usual threads per block, and a dict of kernels with another number."""
    text = (ROOT / "engine/cuda/runtime/grid.h").read_text()
    usual = re.search(r"constexpr int kThreads = (\d+);", text)
    if not usual:
        raise Failure("engine/cuda/runtime/grid.h: no `constexpr int kThreads` any more; teach kernel_facts.py where it is")
    return int(usual.group(1)), {"report_position: report": 32}  # one warp


def find_tool(name):
    """Finds a tool on the PATH, or where scripts/cuda_tools.sh installs it."""
    here = sorted((ROOT / "build/cuda-tools").glob(f"lib/python*/site-packages/nvidia/*/bin/{name}"))
    tool = shutil.which(name) or (str(here[-1]) if here else None)
    if tool is None:
        raise Skipped(f"{name} is not installed; scripts/cuda_tools.sh installs it")
    return tool


def dump(archive, what):
    tools = {name: find_tool(name) for name in ("cuobjdump", "nvdisasm")}  # cuobjdump runs nvdisasm
    path = ":".join(dict.fromkeys([str(pathlib.Path(tool).parent) for tool in tools.values()] + ["/usr/bin", "/bin"]))
    process = subprocess.Popen([tools["cuobjdump"], what, archive], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env={"PATH": path})
    yield from process.stdout
    error = process.stderr.read()
    if process.wait() != 0:
        raise Failure(f"{archive}: cuobjdump {what} fails: {error.strip()}")


def compiler():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    try:
        version = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Skipped(f"nvcc does not run: {error}") from error
    return re.search(r"V(\d+\.\d+\.\d+)", version).group(1)


def facts(archive):
    if not pathlib.Path(archive).is_file():
        raise Failure(f"{archive}: there is no such file; build the target arbalest_engine first")
    resources = parse_resources("".join(dump(archive, "--dump-resource-usage")))
    accesses = parse_accesses(dump(archive, "--dump-sass"))
    usual, unusual = block_sizes()
    names = demangle(sorted({name for _, name in resources}))
    rows = []
    for (processor, mangled), (registers, shared, stack) in resources.items():
        name = plain_name(mangled, names[mangled])
        threads = unusual.get(name, usual)
        blocks, share = occupancy(processor, registers, shared, threads)
        counts = accesses[processor, mangled]
        rows.append([name, processor, registers, shared, stack, threads, blocks, round(100 * share)] +
                    [counts[what, width] for what in ("loads", "stores") for width in WIDTHS])
    if not rows:
        raise Failure(f"{archive}: holds no kernels; was it built with CUDA?")
    return sorted(rows)


def to_text(rows, version):
    lines = [f"# nvcc {version}", "\t".join(COLUMNS)] + ["\t".join(map(str, row)) for row in rows]
    return "\n".join(lines) + "\n"


def compare(text, table):
    """Returns the lines that differ. Ignores processors that are not in `text`, as some builds are for one only."""
    expected = pathlib.Path(table).read_text()
    if expected.splitlines()[0] != text.splitlines()[0]:
        raise Skipped(f"{table} is of {expected.splitlines()[0][2:]}, and this compiler is {text.splitlines()[0][2:]}")
    built = {line.split("\t")[1] for line in text.splitlines()[2:]}
    wanted = [line for line in expected.splitlines() if line.startswith(("#", "kernel\t")) or line.split("\t")[1] in built]
    return list(difflib.unified_diff(wanted, text.splitlines(), table, "this build", lineterm="", n=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", metavar="ARCHIVE")
    parser.add_argument("--compare", metavar="TABLE")
    parser.add_argument("--loops", metavar="PATTERN")
    options = parser.parse_args()
    try:
        if options.loops is not None:
            print(loops(options.archive, options.loops), end="")
            return 0
        text = to_text(facts(options.archive), compiler())
        if options.compare is None:
            print(text, end="")
            return 0
        differences = compare(text, options.compare)
    except Skipped as reason:
        print(f"skipped: {reason}")
        return 4
    except Failure as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if differences:
        print("\n".join(differences))
        print(f"If the change is meant: tests/cuda/kernel_facts.py {options.archive} > {options.compare}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
