"""Writes a comparison as a page of Markdown."""

import re

from comparison.by_epoch import accuracy_read, by_epoch, table
from comparison.got import text_of
from comparison.machine import QUIET
from comparison.pairing import (
    end_to_end,
    epochs_of,
    ratios,
    reached,
    seeds_of_ratios,
    spread,
    summarize,
    time_ratios,
    times_by_seed,
    times_to_accuracy,
)
from comparison.processor_time import median_of, paired, per_core
from peers.onednn_kernels import told

JUDGED = 0.05  # maximum spread of a control whose results can be judged
FEWEST_TURNS = 3  # fewer turns have no meaningful spread


def without_folders(text):
    """Removes this machine's folders, because a page is public."""
    return re.sub(r"(?<![\w.])/[^\s'\"():,]*/([^\s'\"():,/]+)", r".../\1", text)


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def quartiles(summary, text=number):
    return f"{text(summary['median'])} ({text(summary['first_quartile'])} to {text(summary['third_quartile'])})"


def arrangements(picked):
    rows = [
        (
            ("**" + one["name"] + "**") if one["name"] == picked["winner"] else one["name"],
            number(one["images_per_second"]),
            f"{100 * one['spread']:.1f} %",
            str(one["measurements"]),
            "yes" if one["trains_one_model"] else "no: an upper bound",
            f"{one['got']['huge_page_bytes'] / 2**20:,.0f}",
            told(one.get("reference_kernels")),
        )
        for one in picked["results"]
    ]
    size = f" with a mini-batch of {picked['mini_batch']}" if picked["mini_batch"] else ""
    goes_on = (
        "the two fastest that train one model go on"
        if picked.get("few")
        else "the fastest of those that train one model again, by turns; the fastest of these goes on"
    )
    what = "Some arrangements" if picked.get("few") else "Arrangements"
    lines = [
        f"{what} of {picked['framework']}{size}, as many images as {picked['steps']} steps of the job; {goes_on}:",
        "",
    ]
    header = ("arrangement", "images/s", "spread", "measured", "trains one model", "MiB in huge pages", "reference kernels")
    lines += table(header, rows)
    return lines + [f"- skipped: {one['name']}: {one['reason']}" for one in picked["skipped"]] + [""]


def mini_batches(tried):
    """Returns the mini-batches of all frameworks."""
    rows = [
        (
            ("**" + one["contender"] + "**") if one["is_chosen"] else one["contender"],
            str(one["seed"]),
            one["outcome"],
            str(one["epochs"] or "-"),
            number(one["seconds"]) if one["seconds"] else "-",
        )
        for one in tried
    ]
    lines = ["Mini-batches, one training to the highest target each; a framework's fastest goes on:", ""]
    return lines + table(("contender", "seed", "outcome", "epochs", "s end to end"), rows)


def throughput(sides):
    ours = sides[0]
    rows = []
    for side in sides:
        if side["rates"]:
            ratio = "" if side is ours else quartiles(summarize(ratios(ours["rates"], side["rates"])))
            summary = summarize(side["rates"])
            got = text_of(side.get("got"))
            rows.append((side["name"], quartiles(summary), f"{100 * spread(summary):.1f} %", ratio, got))
    turns = len(ours["rates"])
    lines = [f"Training in {turns} turns, images/s; median (quartiles), and ours over theirs turn by turn:", ""]
    lines += table(("contender", "images/s", "spread", "Arbalest / it", "what it got"), rows)
    if others := [side["name"] for side in sides[1:] if side["is_ours"]]:
        lines += [f"{ours['name']} goes on, as the fastest of ours; {', '.join(others)} only took turns.", ""]
    lines += by_processor_time(sides)
    noisy = [side["name"] for side in sides if side["rates"] and spread(summarize(side["rates"])) > JUDGED]
    if turns < FEWEST_TURNS:
        lines += [f"Fewer than {FEWEST_TURNS} turns are no evidence.", ""]
    elif noisy:
        lines += [
            f"Spread above {100 * JUDGED:.0f} % ({', '.join(noisy)}): the machine was too busy for evidence by the clock; "
            "compare by processor time.",
            "",
        ]
    return lines


def cores_text(value):
    return "-" if value is None else f"{value:.2f}"


def by_processor_time(sides):
    """Returns a table of the turns by the cores in use, or nothing if none was measured."""
    ours = sides[0]
    rows = []
    for side in sides:
        measured = [rate for rate in per_core(side) if rate is not None]
        if not measured:
            continue
        pairs = [] if side is ours else paired(ours, side)
        rows.append(
            (
                side["name"],
                quartiles(summarize(measured)),
                quartiles(summarize(pairs)) if pairs else "",
                cores_text(median_of(side, "own")),
                cores_text(median_of(side, "others")),
            )
        )
    if not rows:
        return []
    lines = ["The same turns by processor time, which leaves out the time in which a program waits for a core:", ""]
    return lines + table(
        ("contender", "images per processor second", "Arbalest / it", "cores in use", "cores that others used"), rows
    )


def other_work(busy):
    return f"other work kept {100 * busy:.0f} % of the cores busy when it began: stop that, or the numbers are no evidence"


def of_seeds(text, seeds, side):
    """Returns a note if some of a side's runs are missing."""
    return text if len(seeds) == len(side["runs"]) else f"{text}, {len(seeds)} of {len(side['runs'])} seeds"


def each(values, text):
    return ", ".join("not reached" if value is None else text(value) for value in values)


def to_target(sides, target, examples):
    ours = sides[0]
    rows = []
    for side in sides:
        if not side["runs"]:
            continue
        hits = [reached(target, run) for run in side["runs"]]
        times = times_to_accuracy(side, target, examples)
        own = times_by_seed(side, target, examples)
        ratio = confirmed = ""
        if side is not ours:
            if shares := time_ratios(ours, side, target, examples):
                ratio = of_seeds(quartiles(summarize(shares)), seeds_of_ratios(ours, side, target), ours)
            pairs = [(a / b if a and b else None) for _, a, b in end_to_end(ours, side, target)]
            confirmed = each(pairs, number)
        what = sorted({hit[2] for hit in hits if hit} - {"model"})
        rows.append(
            (
                side["name"] + (f" ({', '.join(what)})" if what else ""),
                each([hit[0] if hit else None for hit in hits], str),
                of_seeds(quartiles(summarize(times)), own, side) if times else "-",
                each([hit[1] if hit else None for hit in hits], number),
                ratio,
                confirmed,
            )
        )
    lines = [f"Time to {100 * target:g} % {accuracy_read(sides)} accuracy:", ""]
    return lines + table(
        (
            "contender",
            "epochs, by seed",
            "s = epochs x s of an epoch in turns",
            "s end to end, by seed",
            "Arbalest's time / its",
            "the same end to end, by seed",
        ),
        rows,
    )


def of_model(model):
    lines = [f"## {model['model']}", ""]
    for picked in model["picked"]:
        lines += arrangements(picked)
    if model["mini_batches"]:
        lines += mini_batches(model["mini_batches"])
    lines += throughput(model["sides"])
    if model["by_epoch"] and any(side["runs"] for side in model["sides"]):
        lines += by_epoch(model["sides"])
    for target in model["targets"] if any(side["runs"] for side in model["sides"]) else []:
        lines += to_target(model["sides"], target, model["examples"])
    return lines


def page(comparison):
    machine, load = comparison["machine"], comparison["load_average"]
    lines = [
        f"# Arbalest beside PyTorch, TensorFlow and JAX, {comparison['date']}",
        "",
        f"Machine: {machine['processor']}, {machine['cores']} cores; load average {load[0]:.1f} at the begin and "
        f"{load[-1]:.1f} at the end. Commit {comparison['commit']}{' (quick)' if comparison['quick'] else ''}.",
        "",
        f"    {comparison['command']}",
        "",
    ]
    if comparison["busy_share"] > QUIET:
        lines += [f"**Warning: {other_work(comparison['busy_share'])}.**", ""]
    versions = ", ".join(f"{name} {version}" for name, version in comparison["versions"].items() if version)
    lines += [f"Versions: {versions}.", ""]
    if comparison["stopped"]:
        lines += ["**Stopped before its end.**", ""]
    for model in comparison["models"]:
        lines += of_model(model)
    lines += ["## What ran", ""]
    lines += [f"    {command}" for model in comparison["models"] for command in model["commands"]] + [""]
    if comparison["skipped"]:
        lines += ["Skipped:", ""] + [f"- {without_folders(one)}" for one in comparison["skipped"]] + [""]
    lines += [f"Runs that died: {len(comparison['died'])}.", ""] + [
        f"- {without_folders(one)}" for one in comparison["died"]
    ]
    lines += [""] if comparison["died"] else []
    lines += [
        "Epochs x s of an epoch: for every seed and every turn; an epoch takes its examples over the images/s of",
        "the turn, times what evaluation and the rest add to training in the runs to the end; preparation, with",
        "compiling, is added. Ratios are of the same seed and turn, so that spreads cover both. A peer's clock starts",
        "when its framework has been imported and its processes have met; its run counts by the sooner of its weights",
        "and their average, whose evaluation is not on the other's clock. Formulas: bench/comparison/pairing.py.",
    ]
    return "\n".join(lines) + "\n"


def headline(model):
    """Returns a summary for stderr."""
    lines = []
    ours, name = model["sides"][0], model["model"]
    for side in model["sides"][1:]:
        if ours["rates"] and side["rates"]:
            lines.append(
                f"{name}: images/s over {side['name']}: {quartiles(summarize(ratios(ours['rates'], side['rates'])))}"
            )
            if by_time := paired(ours, side):
                lines[-1] += f"; by processor time {quartiles(summarize(by_time))}"
        for target in model["targets"]:
            if shares := time_ratios(ours, side, target, model["examples"]):
                ratio = of_seeds(quartiles(summarize(shares)), seeds_of_ratios(ours, side, target), ours)
                lines.append(f"{name}: time to {100 * target:g} % over that of {side['name']}: {ratio}")
            elif side["runs"]:
                epochs = [epochs_of(one, target) or "-" for one in (ours, side)]
                lines.append(f"{name}: epochs to {100 * target:g} %: ours {epochs[0]}, {side['name']} {epochs[1]}")
    return lines
