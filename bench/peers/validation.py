"""Chooses the training examples that a job sets aside for validation, by the rule of `Validation` in
proto/arbalest/v1/data.proto."""

import math

MASK = 2**64 - 1


def mix(z):
    """SplitMix64: one step of the state, followed by the output function."""
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def share_of(fraction, examples):
    """Returns the number of validation examples of a class: the nearest integer, with halves rounded up."""
    product = fraction * examples
    whole = math.floor(product)
    return whole + (product - whole >= 0.5)


def left_out(labels, fraction, seed=1):
    """Returns the numbers of the validation examples in ascending order. `labels`: the training set's labels in the
    order of its files."""
    of_class = {}
    for example, label in enumerate(labels):
        of_class.setdefault(label, []).append(example)
    chosen = []
    for examples in of_class.values():
        examples.sort(key=lambda example: mix((mix(seed) + example) & MASK))
        chosen += examples[: share_of(fraction, len(examples))]
    return sorted(chosen)
