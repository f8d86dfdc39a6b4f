#!/usr/bin/env python3
"""Trains one job under every synchronization scheme, and makes one table and one chart of what came out.

    bench/all_schemes.py --program build/release/arbalest --results runs.jsonl --chart all-schemes.svg

The columns are images/s, epochs to the target, the final test accuracy, and the staleness of asynchronous schemes. The
script appends one JSON object to --results when a run ends, and skips runs that the file already has. So an interrupted
campaign continues with the same command, and --table makes the table and the chart without training.

Runs take turns: every scheme trains with the first seed before any trains with the second. The learning rate stays
constant, so that the epochs to a target depend on the scheme and not on a schedule. images/s is the median over the
epochs after the first, which is the warm start of `async_sgd`. If the machine was busy, --speeds names a file with runs
of the same schemes on a quiet one, from which the table takes images/s. Their rates and seeds may be others.

Exit codes: 0 done, 1 a run failed, 2 usage.

Learners that push without waiting act like a momentum. So `async_sgd` trains without the job's momentum, unless its
bound is 0 or it scales the rate. To try other settings on a validation set add --set data.validation.fraction=0.1,
which makes the accuracies those of that set, and further --set, which replace the settings below.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from figures.panels import Column, panels
from figures.tables import table
from schemes import KEEP, LINEAR, SQRT, epochs_to, read

# Name -> the scheme, how its learning rate grows with the learners, and settings of its own. {switch} is 0.6 of the
# epochs. The periods of bmuf and slow_mo are their defaults; that of diloco must fit into an epoch of MNIST.
MOMENTUM = 'optimizer.sgd.momentum='
SCHEMES = {
    'sma': ('sma {}', SQRT, []),
    'ea_sgd': ('ea_sgd {}', KEEP, []),
    's_sgd': ('s_sgd {}', LINEAR, []),
    'local_sgd': ('local_sgd { period: 4 }', SQRT, []),
    'post_local_sgd': ('s_sgd {} switch { at_epoch: {switch} local_sgd { period: 16 } with_learners: KEEP }', LINEAR, []),
    'bmuf': ('bmuf {}', KEEP, []),
    'slow_mo': ('slow_mo {}', KEEP, []),
    'diloco': ('diloco { period: 100 }', KEEP, []),
    'lookahead': ('lookahead {}', SQRT, []),
    'swap': ('s_sgd {} switch { at_epoch: {switch} swap {} with_learners: KEEP }', LINEAR, []),
    'async_sgd_0': ('async_sgd { staleness: 0 }', LINEAR, []),
    'async_sgd_4': ('async_sgd { staleness: 4 }', KEEP, [MOMENTUM + '0']),
    'async_sgd_unbounded': ('async_sgd {}', KEEP, [MOMENTUM + '0']),
    'async_sgd_scaled': ('async_sgd { scale_by_staleness: true }', KEEP, []),
    'async_sgd_push_4': ('async_sgd { push_every: 4 }', KEEP, [MOMENTUM + '0']),
    'hogwild': ('hogwild {}', KEEP, []),
}
# Learners of these schemes train alone for ten steps and more, where the program refuses SQRT. So the rate itself grows.
GROWING_RATE = ('ea_sgd', 'slow_mo')


def settings_of(scheme, options):
    """Returns the --set arguments of a scheme, of several for a field the last."""
    synchronization, scaling, own = SCHEMES[scheme]
    synchronization = synchronization.replace('{switch}', f'{0.6 * options.epochs:g}')
    rate, batch_size = options.rate
    if scheme in GROWING_RATE:
        rate *= math.sqrt(options.learners)
    settings = [f'learners.per_device.fixed={options.learners}', f'training.max_epochs={options.epochs}',
                'training.target_accuracy=default', 'learning_rate={fixed {} base: %g for_batch_size: %d}' % (rate, batch_size),
                f'synchronization={{{synchronization}}}', scaling, *own, *options.settings]
    return list({setting.split('=', 1)[0]: setting for setting in settings}.values())


def key_of(scheme, seed, options):
    """Returns the fields that identify a run."""
    return {'job': os.path.basename(options.job), 'scheme': scheme, 'seed': seed, 'learners': options.learners,
            'epochs': options.epochs, 'settings': settings_of(scheme, options)}


def train(scheme, seed, options):
    """Trains once. Returns the row for the results file."""
    key = key_of(scheme, seed, options)
    with tempfile.TemporaryDirectory() as directory:
        output = pathlib.Path(directory) / 'run'
        command = [options.program, 'train', options.job, '--quiet', '--output', str(output)]
        for setting in [*key['settings'], f'training.seed={seed}']:
            command += ['--set', setting]
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if status.returncode not in (0, 7):  # 7: diverged, which is a result
            sys.exit(f'{" ".join(command)}: exit {status.returncode}\n{status.stderr}')
        rows = [json.loads(line) for line in (output / 'metrics.jsonl').read_text().splitlines()]
        summary = json.loads((output / 'summary.json').read_text())
    epochs = [row for row in rows if row['event'] == 'epoch']
    return {**key, 'diverged': status.returncode == 7,
            'accuracy': [row.get('validation_accuracy', row.get('test_accuracy')) for row in epochs],
            'images_per_second': [row['images_per_second'] for row in epochs],
            'learning_rate': epochs[0]['learning_rate'] if epochs else None, 'staleness': summary.get('staleness', {}),
            'train_seconds': summary['train_seconds'], 'model_sha256': summary.get('model_sha256'),
            'load_average': os.getloadavg()[0], 'cores': os.cpu_count(),
            'commit': subprocess.run([options.program, '--version'], stdout=subprocess.PIPE, text=True).stdout.strip(),
            'time': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds')}


def is_of(row, key):
    return all(row.get(field) == value for field, value in key.items())


def run(options):
    """Trains the runs that the results file does not have yet."""
    for seed in options.seeds:
        for scheme in options.schemes:
            if any(is_of(row, key_of(scheme, seed, options)) for row in read(options.results)):
                continue
            row = train(scheme, seed, options)
            with open(options.results, 'a') as results:
                results.write(json.dumps(row) + '\n')
            final = f'{100 * row["accuracy"][-1]:.2f} %' if row['accuracy'] else 'diverged'
            print(f'{scheme}, seed {seed}: {final}, {row["train_seconds"]:.0f} s', file=sys.stderr, flush=True)


def mean_staleness(counts):
    """Returns the mean over all pushes, or None without pushes. `counts`: {"0": 12, "3": 5}."""
    pushes = sum(counts.values())
    return sum(int(staleness) * count for staleness, count in counts.items()) / pushes if pushes else None


class Outcome:
    """What the seeds of one scheme came to. `timed`: the runs whose speeds count."""

    def __init__(self, scheme, rows, timed, options):
        self.scheme, self.rows, self.epochs = scheme, rows, options.epochs
        self.rates = [rate for row in timed for rate in row['images_per_second'][1:]]
        self.needed = [epochs_to(options.target, row['accuracy']) for row in rows]
        self.final = [row['accuracy'][-1] for row in rows if len(row['accuracy']) == options.epochs]
        self.staleness = [mean for mean in (mean_staleness(row['staleness']) for row in rows) if mean is not None]
        self.most_stale = max((int(each) for row in rows for each in row['staleness']), default=None)
        self.diverged = sum(row['diverged'] for row in rows)

    def needed_epochs(self):
        """Returns the median over seeds, where a run that does not reach the target counts as endless; else None."""
        median = statistics.median_low([epochs or self.epochs + 1 for epochs in self.needed])
        return median if median <= self.epochs else None

    def setting(self, path, default=None):
        """Returns the value that the runs have for a setting. `path`: with its equals sign."""
        return next((each.removeprefix(path) for each in self.rows[0]['settings'] if each.startswith(path)), default)

    def cells(self):
        synchronization = SCHEMES[self.scheme][0].replace('{switch}', f'{0.6 * self.epochs:g}')
        needed = ', '.join('-' if epochs is None else str(epochs) for epochs in self.needed)
        seeds = f'{len(self.rows)}, {self.diverged} diverged' if self.diverged else str(len(self.rows))
        stale = f'{statistics.median(self.staleness):.2f}, {self.most_stale}' if self.staleness else '-'
        rate = next((f'{row["learning_rate"]:.3g}' for row in self.rows if row['learning_rate']), '-')
        return [f'`{synchronization}`', self.setting('learning_rate.with_learners='), rate,
                self.setting(MOMENTUM, "the job's"), seeds, median_text(self.rates, '{:,.0f}'), needed,
                range_text([100 * each for each in self.final]), stale]


def median_text(values, form):
    return form.format(statistics.median(values)) if values else '-'


def range_text(values):
    """ "98.93", or with several seeds "98.93 (98.90 to 98.97)" """
    if len(values) < 2:
        return median_text(values, '{:.2f}')
    return f'{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})'


def report(options):
    """Prints the table, and draws the chart if it is asked for."""
    rows = read(options.results)
    quiet = read(options.speeds) if options.speeds else None
    outcomes = []
    for scheme in options.schemes:
        own = [row for seed in options.seeds for row in rows if is_of(row, key_of(scheme, seed, options))]
        same = {'job': os.path.basename(options.job), 'scheme': scheme, 'learners': options.learners}
        if own:
            timed = own if quiet is None else [row for row in quiet if is_of(row, same)]
            outcomes.append(Outcome(scheme, own, timed, options))
    if not outcomes:
        sys.exit(f'{options.results} has no run of this job, these learners, epochs and schemes')
    target = f'{100 * options.target:g} %'
    header = ['scheme', 'with_learners', 'learning rate', 'momentum', 'seeds', 'images/s', f'epochs to {target}',
              f'accuracy after {options.epochs} epochs, %', 'staleness: mean, most']
    print(table(header, [outcome.cells() for outcome in outcomes]), end='')
    if options.chart:
        title = f'{os.path.basename(options.job).removesuffix(".txtpb")}, {options.learners} learners, by scheme'
        pathlib.Path(options.chart).write_text(chart(title, target, outcomes))


def chart(title, target, outcomes):
    def median(values):
        return statistics.median(values) if values else None

    return panels(title, [outcome.scheme for outcome in outcomes], [
        Column('images/s', [median(each.rates) for each in outcomes], '{:,.0f}'),
        Column(f'epochs to {target}', [each.needed_epochs() for each in outcomes], '{:g}'),
        Column('accuracy, %', [median([100 * a for a in each.final]) for each in outcomes], '{:.2f}', from_zero=False),
        Column('mean staleness', [median(each.staleness) for each in outcomes], '{:.2f}'),
    ])


def main():
    numbers = lambda text: [int(word) for word in text.split(',')]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='build/release/arbalest')
    parser.add_argument('--job', default='configs/lenet-mnist.txtpb')
    parser.add_argument('--results', required=True, help='JSON lines; appended to')
    parser.add_argument('--chart', help='write the chart to this SVG file')
    parser.add_argument('--schemes', type=lambda text: text.split(','), default=list(SCHEMES))
    parser.add_argument('--learners', type=int, default=4)
    parser.add_argument('--seeds', type=numbers, default=[1])
    parser.add_argument('--epochs', type=int, default=6, help='at least 2')
    parser.add_argument('--target', type=float, default=0.985, help='an accuracy in (0, 1]')
    parser.add_argument('--rate', type=float, default=0.01, help='the learning rate of one learner')
    parser.add_argument('--batch-size', type=int, default=32, help='the mini-batch that --rate is meant for')
    parser.add_argument('--set', dest='settings', action='append', default=[], help='for all runs, as in train')
    parser.add_argument('--speeds', help='a file like that of --results, whose images/s stand in the table')
    parser.add_argument('--table', action='store_true', help='report what the file has, and train nothing')
    options = parser.parse_args()
    unknown = [scheme for scheme in options.schemes if scheme not in SCHEMES]
    if unknown:
        parser.error(f'unknown schemes: {", ".join(unknown)}; there are {", ".join(SCHEMES)}')
    if options.epochs < 2:
        parser.error('--epochs must be at least 2: the first epoch is the warm start of async_sgd')
    options.rate = (options.rate, options.batch_size)
    if not options.table:
        run(options)
    report(options)


if __name__ == '__main__':
    main()
