"""Describes the resources of each contender of a comparison: its share of the machine, mini-batch and memory."""

from peers.job_file import parse


def ours(job_text, learners, huge_page_bytes):
    """Describes a run of Arbalest from its number of learners and the job file with all defaults in its directory."""
    job = parse(job_text)
    training, rate = job.message("training"), job.message("learning_rate")
    batch = training.take("batch_size")
    return {
        "division": f"{learners} learner{'s' if learners != 1 else ''}",
        "synchronization": job.message("synchronization").text(),
        "precision": training.take("precision"),
        "mini_batch": batch * learners,
        "learning_rate": rate.take("base"),
        "rise": f"{rate.take('with_learners', 'the default')} with learners",
        "asks_for_huge_pages": True,
        "huge_page_bytes": huge_page_bytes,
    }


def text_of(got):
    """Returns text for a page, or "" if the contender has not reported its resources."""
    if not got:
        return ""
    parts = [
        got["division"],
        got.get("synchronization"),
        got["precision"],
        got.get("memory_format"),
        got.get("compiler"),
    ]
    parts.append(f"{got['mini_batch']} images a step")
    parts.append(f"learning rate {got['learning_rate']:g} ({got['rise']})")
    parts.append(memory(got))
    return "; ".join(part for part in parts if part)


def memory(got):
    if not got["asks_for_huge_pages"]:
        return "no huge pages, with which it was slower"
    if got["huge_page_bytes"] is None:
        return "huge pages not counted: the run ended too soon"
    return f"{got['huge_page_bytes'] / 2**20:,.0f} MiB in huge pages"
