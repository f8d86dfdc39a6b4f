#!/usr/bin/env python3
"""What do checkpoints cost a run: speed, the time that a save takes from training, and the time to go on from one?

    bench/checkpoint_price.py --program build/release/arbalest --job configs/lenet-digits.txtpb --epochs 5 --turns 7

Runs of the same job take turns. They differ in what protects them: nothing, the default, all protections, a checkpoint
after each epoch, and a checkpoint after every --every mini-batches. Nothing: no checkpoints, and the devices' copies are
not compared. All: the default's checkpoints, and training would go back if the loss grew. The last policy saves far more
often than anyone would, so that the price of one save can be told from noise:

    seconds per save = (seconds of training with saves - seconds without) / number of saves

A run then goes on from a checkpoint of its last epoch. `seconds_to_first_step` is the time from the start of the program
to its next checkpoint, one round later; the same time of a run that begins is beside it. Needs a quiet machine. Each turn
is a JSON line on stdout, and the medians and quartiles are the last one.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

POLICIES = {
    'none': ['checkpoint={keep_last: 0 keep_best: 0}', 'synchronization.compare_rounds=0'],
    'default': [],
    'all': ['training.on_divergence=ROLL_BACK'],
    'epoch': ['checkpoint={every_epochs: 1}'],
    'often': ['checkpoint={every_batches: {every} keep_best: 0}', 'synchronization.compare_rounds=0'],
}


def command_of(arguments, epochs, settings):
    settings = [f'training.max_epochs={epochs}', 'training.target_accuracy=default', *arguments.set, *settings]
    return [arguments.program, 'train', arguments.job, '--quiet', *(f'--set={setting}' for setting in settings)]


def run(command, output, *more):
    subprocess.run([*command, '--output', output, *more], check=True, stdout=subprocess.DEVNULL)


def train(arguments, policy):
    """Trains one run, and returns its speed, its seconds of training without evaluation, and its number of saves."""
    settings = [setting.replace('{every}', str(arguments.every)) for setting in POLICIES[policy]]
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        output = pathlib.Path(folder) / 'run'
        run(command_of(arguments, arguments.epochs, settings), output)
        rows = [json.loads(line) for line in (output / 'metrics.jsonl').read_text(encoding='utf-8').splitlines()]
        summary = json.loads((output / 'summary.json').read_text(encoding='utf-8'))
    return {'policy': policy, 'images_per_second': summary['images_per_second'],
            'seconds': sum(row['training_seconds'] for row in rows if row['event'] == 'epoch'),
            'whole_seconds': summary['train_seconds'],
            'saves': sum(row['event'] == 'checkpoint' for row in rows)}


def seconds_to_checkpoint(command, output, log, *more):
    """Runs until the log tells of a checkpoint, and returns the seconds until then. The run is stopped politely."""
    known = log.stat().st_size if log.exists() else 0
    start = time.monotonic()
    with subprocess.Popen([*command, '--output', output, *more], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if log.exists():
                with log.open(encoding='utf-8') as lines:
                    lines.seek(known)
                    if '"event":"checkpoint"' in lines.read().replace(' ', ''):
                        break
            time.sleep(0.005)
        seconds = time.monotonic() - start
        process.terminate()
    return seconds


def time_to_go_on(arguments):
    """Returns the seconds from the program's start to a checkpoint after one round, of a resumed and of a new run."""
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        resumed, new = pathlib.Path(folder) / 'resumed', pathlib.Path(folder) / 'new'
        run(command_of(arguments, 1, ['checkpoint={every_epochs: 1}']), resumed)
        command = command_of(arguments, 2, ['checkpoint={every_batches: 1}'])
        return {'resumed': seconds_to_checkpoint(command, resumed, resumed / 'metrics.jsonl', '--resume=auto'),
                'new': seconds_to_checkpoint(command, new, new / 'metrics.jsonl')}


def spread(values):
    if len(values) < 2:
        return {'median': values[0], 'quartiles': [values[0]] * 2}
    quartiles = statistics.quantiles(values, n=4, method='inclusive')
    return {'median': statistics.median(values), 'quartiles': [quartiles[0], quartiles[2]]}


def summarized(turns):
    """Compares every policy with the run without checkpoints of the same turn."""
    result = {}
    for policy in list(POLICIES)[1:]:
        pairs = [(turn[policy], turn['none']) for turn in turns]
        result[policy] = {
            'speed of none': spread([on['images_per_second'] / off['images_per_second'] for on, off in pairs]),
            'whole seconds of none': spread([on['whole_seconds'] / off['whole_seconds'] for on, off in pairs])}
        saves = pairs[0][0]['saves']
        if policy == 'often' and saves:
            result[policy]['saves'] = saves
            result[policy]['seconds per save'] = spread([(on['seconds'] - off['seconds']) / on['saves']
                                                         for on, off in pairs])
    for kind in ('resumed', 'new'):
        result[f'seconds to first step, {kind}'] = spread([turn['to first step'][kind] for turn in turns])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='build/release/arbalest')
    parser.add_argument('--job', default='configs/lenet-digits.txtpb')
    parser.add_argument('--set', action='append', default=[], help='PATH=VALUE for all runs')
    parser.add_argument('--epochs', type=int, default=5)
    parser.add_argument('--turns', type=int, default=7)
    parser.add_argument('--every', type=int, default=50, help='mini-batches between two saves of the policy "often"')
    parser.add_argument('--directory', help='where the runs are written; default: the directory for temporary files')
    arguments = parser.parse_args()
    turns = []
    for number in range(arguments.turns):
        order = list(POLICIES) if number % 2 == 0 else list(POLICIES)[::-1]
        turn = {policy: train(arguments, policy) for policy in order}
        turn['to first step'] = time_to_go_on(arguments)
        turns.append(turn)
        print(json.dumps({'turn': number + 1, 'load_average': os.getloadavg()[0], **turn}), flush=True)
    print(json.dumps({'job': arguments.job, 'set': arguments.set, 'epochs': arguments.epochs, **summarized(turns)}))
    return 0


if __name__ == '__main__':
    sys.exit(main())
