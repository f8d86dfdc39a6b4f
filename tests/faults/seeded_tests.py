#!/usr/bin/env python3
"""R5 and R25: the random cases of checkpoint_test with other seeds than CI's, over as many starts as it takes.

    tests/faults/seeded_tests.py --of R25 --trials 100 --results retention.jsonl    # 100,000 sequences
    tests/faults/seeded_tests.py --of R5 --trials 10 --results flips.jsonl          # 1,000,000 flipped bits

A trial of R25 has 1,000 random sequences of saves, failures, damage, resumptions and retention; one of R5 flips 100,000
random bits of tensors, one at a time.
"""

import os
import pathlib
import subprocess
import sys

import trials

# Test, variable of its size, cases in a trial, what a case is.
TESTS = {
    "R5": ("damaged checkpoint: random flipped bits*", "ARBALEST_FLIPPED_BITS", 100000, "flipped bits"),
    "R25": ("checkpoints: random sequences*", "ARBALEST_RETENTION_SEQUENCES", 1000, "sequences"),
}


def main():
    parser = trials.parser(__doc__, 1)
    parser.add_argument("--of", choices=list(TESTS), required=True, help="row of the scorecard")
    arguments = parser.parse_args()
    test, variable, cases, what = TESTS[arguments.of]
    program = str((pathlib.Path(arguments.build) / "tests/jobs/checkpoint_test").resolve())

    def trial(number):
        # Seeds of R25 are consecutive within a trial.
        environment = {**os.environ, variable: str(cases), "ARBALEST_FAULT_SEED": str(cases * number)}
        done = subprocess.run([program, test], env=environment, capture_output=True, text=True, check=False)
        passed = done.returncode == 0 and "All tests passed" in done.stdout
        return {"cases": cases, "problem": "" if passed else done.stdout[-1000:] + done.stderr[-1000:]}

    return trials.run(arguments, trial, lambda rows: f"trials passed, {sum(row['cases'] for row in rows):,} {what}")


if __name__ == "__main__":
    sys.exit(main())
