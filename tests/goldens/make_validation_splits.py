"""Writes validation_splits.json: the validation examples of small training sets.

Both tests/dataflow/input_validation_split_test.cc and tests/bench/validation_test.py compare with this file, so that
the program and the peers set aside the same examples. This is a third implementation of the rule in
proto/arbalest/v1/data.proto. It chooses in a different way: an example validates if the number of smaller keys in its
class is below the class's share. Run it by hand: python3 make_validation_splits.py
"""

import decimal
import json
import pathlib


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z // 2**30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z // 2**27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z // 2**31)


def split(labels, fraction, seed):
    keys = [mix((mix(seed) + number) % 2**64) for number in range(len(labels))]
    chosen = []
    for number, label in enumerate(labels):
        others = [keys[other] for other, its in enumerate(labels) if its == label]
        product = decimal.Decimal(fraction * len(others))  # the exact value of the float64
        share = int(product.to_integral_value(rounding=decimal.ROUND_HALF_UP))
        if sum(key < keys[number] for key in others) < share:
            chosen.append(number)
    return {"labels": labels, "fraction": fraction, "seed": seed, "validation": chosen}


def main():
    uneven = [0] * 25 + [1] * 7 + [2] * 30 + [3]
    shuffled = [(7 * number + number // 3) % 5 for number in range(83)]
    cases = [
        split([number % 10 for number in range(120)], 0.1, 1),
        split([number % 10 for number in range(120)], 0.1, 2),
        split([number % 4 for number in range(40)], 0.25, 2**64 - 1),  # 10 * 0.25 = 2.5 tests rounding of halves
        split(uneven, 0.3, 0),
        split(shuffled, 0.5, 12345678901234567890),
        split([0] * 64, 0.15, 1),
    ]
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    pathlib.Path(__file__).with_name("validation_splits.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
