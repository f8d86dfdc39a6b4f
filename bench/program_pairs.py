#!/usr/bin/env python3
"""How much does one build of the program differ from another, in a whole run of a job?

    bench/program_pairs.py --program build/release/arbalest --baseline ../before/build/release/arbalest \\
        --job configs/lenet-mnist.txtpb --epochs 3 --turns 9

Runs of the two take turns, with the order changed in every turn. `cpu` is the processor time of the whole process, which
a busy machine disturbs less than the clock; `seconds` is the clock of the run. Each turn is a JSON line on stdout, and
the last line has the medians and quartiles of program / baseline, turn by turn.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from comparison.pairing import summarize


def train(program, arguments):
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        output = pathlib.Path(folder) / 'run'
        settings = [f'training.max_epochs={arguments.epochs}', 'training.target_accuracy=default', *arguments.set]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, 'train', arguments.job, '--quiet', '--output', output,
                        *(f'--set={setting}' for setting in settings)], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        summary = json.loads((output / 'summary.json').read_text(encoding='utf-8'))
    return {'cpu': after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            'seconds': summary['train_seconds'], 'model_sha256': summary['model_sha256']}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--baseline', required=True)
    parser.add_argument('--job', default='configs/lenet-digits.txtpb')
    parser.add_argument('--set', action='append', default=[], help='PATH=VALUE for all runs')
    parser.add_argument('--epochs', type=int, default=3)
    parser.add_argument('--turns', type=int, default=9)
    parser.add_argument('--directory', help='where the runs are written; default: the directory for temporary files')
    arguments = parser.parse_args()
    programs = {'program': arguments.program, 'baseline': arguments.baseline}
    turns = []
    for number in range(arguments.turns):
        order = list(programs) if number % 2 == 0 else list(programs)[::-1]
        turns.append({name: train(programs[name], arguments) for name in order})
        print(json.dumps({'turn': number + 1, 'load_average': os.getloadavg()[0], **turns[-1]}), flush=True)
    result = {figure: summarize([turn['program'][figure] / turn['baseline'][figure] for turn in turns])
              for figure in ('cpu', 'seconds')}
    same = len({run['model_sha256'] for turn in turns for run in turn.values()}) == 1
    print(json.dumps({'job': arguments.job, 'set': arguments.set, 'epochs': arguments.epochs, 'same model': same,
                      **result}))
    return 0


if __name__ == '__main__':
    sys.exit(main())
