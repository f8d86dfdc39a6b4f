#!/usr/bin/env python3
"""Does every synchronization scheme train with its defaults, on the ready jobs, with 2, 4 and 8 learners?

    bench/scheme_defaults.py --program build/release/arbalest --results runs.jsonl
    bench/scheme_defaults.py --results runs.jsonl --table

A run changes a job's scheme and its number of learners, and nothing else. It trains --epochs epochs, which are more
than 200 steps after the warm start of `async_sgd`. A run is *good* if all its losses are finite and the mean training
loss of its last epoch is below the loss of guessing, ln(10), which no untrained network is below. A job that the
program refuses (exit code 3) is *refused*, and its message must name the setting that works. Everything else is *bad*.
With --whole the jobs train as long as they say, without their target.

The script appends one JSON object to --results when a run ends, and skips runs that the file already has, so an
interrupted campaign continues with the same command. Exit codes: 0 no run is bad, 1 one is, 2 usage.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from all_schemes import is_of, mean_staleness
from figures.tables import table
from schemes import read

JOBS = ['configs/lenet-digits.txtpb', 'configs/convnet-digits.txtpb', 'configs/logistic-digits.txtpb',
        'configs/lenet-mnist.txtpb', 'configs/lenet-layers-digits.txtpb']
# Each scheme with its defaults, and each kind of those that have kinds. {half} is half of the epochs.
SCHEMES = [
    'sma {}', 'ea_sgd {}', 's_sgd {}', 'local_sgd {}', 'local_sgd { local_state: AVERAGE }', 'local_sgd { qsr: 0.1 }',
    'bmuf {}', 'bmuf { nesterov: true }', 'slow_mo {}', 'diloco {}', 'diloco { period: 50 }', 'lookahead {}',
    'lookahead { momentum: 0.5 }', 'swap {}', 'hogwild {}',
    'async_sgd {}', 'async_sgd { staleness: 0 }', 'async_sgd { staleness: 2 }', 'async_sgd { staleness: 8 }',
    'async_sgd { push_every: 4 }', 'async_sgd { staleness: 2 push_every: 4 }', 'async_sgd { scale_by_staleness: true }',
    'async_sgd { warm_start_epochs: 0 }',
    's_sgd {} switch { at_epoch: {half} async_sgd {} }', 's_sgd {} switch { at_epoch: {half} hogwild {} }',
    's_sgd {} switch { at_epoch: {half} local_sgd {} }', 's_sgd {} switch { at_epoch: {half} swap {} }',
    'sma {} switch { at_epoch: {half} s_sgd {} }',
]
GUESSING = math.log(10)
USAGE = 2
REFUSED = 3
DIVERGED = 7


def key_of(job, scheme, learners, seed, options):
    """Returns the fields that identify a run."""
    return {'job': os.path.basename(job), 'scheme': scheme, 'learners': learners, 'seed': seed,
            'epochs': None if options.whole else options.epochs, 'settings': options.settings}


def settings_of(scheme, learners, seed, options):
    """Returns the --set arguments of a run."""
    settings = [f'learners.per_device.fixed={learners}', f'training.seed={seed}', 'training.target_accuracy=default']
    if not options.whole:
        settings.append(f'training.max_epochs={options.epochs}')
    half = '5' if options.whole else f'{options.epochs / 2:g}'
    return [*settings, f'synchronization={{{scheme.replace("{half}", half)}}}', *options.settings]


def verdict(status, losses):
    """Returns "good", "refused" or "bad". `status`: exit code; `losses`: mean training losses by epoch, null if not
    finite."""
    if status == REFUSED:
        return 'refused'
    if status != 0 or not losses or any(loss is None or not math.isfinite(loss) for loss in losses):
        return 'bad'
    return 'good' if losses[-1] < GUESSING else 'bad'


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def train(job, key, options):
    """Trains once. Returns the row for the results file."""
    with tempfile.TemporaryDirectory() as directory:
        output = pathlib.Path(directory) / 'run'
        command = [options.program, 'train', job, '--quiet', '--output', str(output)]
        for setting in settings_of(key['scheme'], key['learners'], key['seed'], options):
            command += ['--set', setting]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        message = next((line for line in done.stderr.splitlines() if 'error:' in line), '')
        # A mistake of a setting is one of usage. In a file it is one of the job.
        is_refused = done.returncode == REFUSED or (done.returncode == USAGE and '--set synchronization=' in message)
        if not is_refused and done.returncode not in (0, DIVERGED):
            sys.exit(f'{" ".join(command)}: exit {done.returncode}\n{done.stderr}')
        epochs = [row for row in rows_of(output / 'metrics.jsonl') if row['event'] == 'epoch']
        summary = {} if is_refused else json.loads((output / 'summary.json').read_text())
    losses = [row['train_loss'] for row in epochs]
    status = REFUSED if is_refused else done.returncode
    return {**key, 'verdict': verdict(status, losses), 'exit': done.returncode, 'train_loss': losses,
            'accuracy': [row.get('validation_accuracy', row.get('test_accuracy')) for row in epochs],
            'learning_rate': [row['learning_rate'] for row in epochs],
            'staleness_mean': mean_staleness(summary.get('staleness', {})),
            'message': message if is_refused else summary.get('message') or '',
            'warnings': sum('warning' in line for line in done.stderr.splitlines()),
            'load_average': os.getloadavg()[0], 'cores': os.cpu_count(),
            'commit': subprocess.run([options.program, '--version'], stdout=subprocess.PIPE, text=True).stdout.strip(),
            'time': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds')}


def keys(options):
    """Yields each job with the key of each of its runs: the first seed of all before the second of any."""
    for seed in options.seeds:
        for job in options.jobs:
            for learners in options.learners:
                for scheme in options.schemes:
                    yield job, key_of(job, scheme, learners, seed, options)


def run(options):
    """Trains the runs that the results file does not have yet."""
    done = read(options.results)
    for job, key in keys(options):
        if any(is_of(row, key) for row in done):
            continue
        row = train(job, key, options)
        with open(options.results, 'a') as results:
            results.write(json.dumps(row) + '\n')
        if row['verdict'] != 'good':
            print(f'{row["job"]}, {row["learners"]} learners, {row["scheme"]}, seed {row["seed"]}: {row["verdict"]}: '
                  f'{row["message"] or row["train_loss"]}', file=sys.stderr, flush=True)


def cell(rows):
    """ "good", "refused", "2 of 3 bad", with the largest last loss of the good ones"""
    verdicts = [row['verdict'] for row in rows]
    if 'bad' in verdicts:
        return f'**{verdicts.count("bad")} of {len(rows)} bad**'
    if 'refused' in verdicts:
        return 'refused'
    return f'{max(row["train_loss"][-1] for row in rows):.3f}' if rows else '-'


def report(options):
    """Prints a table: a row for each scheme, a column for each job and number of learners. Returns whether any is
    bad."""
    rows = read(options.results)
    own = {(job, key['learners'], key['scheme']): [] for job, key in keys(options)}
    for job, key in keys(options):
        own[job, key['learners'], key['scheme']] += [row for row in rows if is_of(row, key)]
    columns = [(job, learners) for job in options.jobs for learners in options.learners]
    header = ['scheme', *(f'{os.path.basename(job).removesuffix(".txtpb")}, {learners}' for job, learners in columns)]
    print(table(header, [[f'`{scheme}`', *(cell(own[*column, scheme]) for column in columns)]
                         for scheme in options.schemes]), end='')
    return any(row['verdict'] == 'bad' for found in own.values() for row in found)


def main():
    words = lambda text: text.split(',')
    numbers = lambda text: [int(word) for word in text.split(',')]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='build/release/arbalest')
    parser.add_argument('--results', required=True, help='JSON lines; appended to')
    parser.add_argument('--jobs', type=words, default=JOBS)
    parser.add_argument('--schemes', type=words, default=SCHEMES, help='in the text of a job, separated by commas')
    parser.add_argument('--learners', type=numbers, default=[2, 4, 8])
    parser.add_argument('--seeds', type=numbers, default=[1])
    parser.add_argument('--epochs', type=int, default=2, help='at least 2: the first may be a warm start')
    parser.add_argument('--whole', action='store_true', help='train as many epochs as the job says')
    parser.add_argument('--set', dest='settings', action='append', default=[], help='for all runs, as in train')
    parser.add_argument('--table', action='store_true', help='report what the file has, and train nothing')
    options = parser.parse_args()
    if options.epochs < 2:
        parser.error('--epochs must be at least 2: the first epoch is the warm start of async_sgd')
    if not options.table:
        run(options)
    sys.exit(1 if report(options) else 0)


if __name__ == '__main__':
    main()
