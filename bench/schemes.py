#!/usr/bin/env python3
"""Which synchronization recipe reaches the best accuracy in the same epochs, by scheme and number of learners?

The script trains recipes of synchronization and learning rate. It appends one JSON object to --results when a run ends,
and skips runs that the file already has. So an interrupted grid continues with the same command. All learners of a run
may share one core: --cores 0,1 trains two runs at a time, one on each core. This changes times, not accuracies.

    bench/schemes.py --program build/release/arbalest --results runs.jsonl --learners 4,16 --seeds 1 --epochs 10
    bench/schemes.py --results runs.jsonl --table [--target 0.99]

Recipes are chosen on a validation split (--validation 0.1). Reported figures come from runs without it. With --target
the table has the epochs until the lower median of the last five epochs' accuracies reaches this accuracy.
"""
import argparse
import concurrent.futures
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading

LINEAR = 'learning_rate.with_learners=LINEAR'
SQRT = 'learning_rate.with_learners=SQRT'
KEEP = 'learning_rate.with_learners=KEEP'

# Name -> settings. {at:x} is the fraction x of the epochs. The jobs' one-cycle schedules begin with a warm-up.
RECIPES = {
    'one': ['synchronization=sma', KEEP],
    'sma_sqrt': ['synchronization=sma', SQRT],
    'sma_linear': ['synchronization=sma', LINEAR],
    's_sgd': ['synchronization=s_sgd', LINEAR],
    's_sgd_sqrt': ['synchronization=s_sgd', SQRT],
    'ea_sgd': ['synchronization=ea_sgd{period: 1}', LINEAR],
    'local_sgd': ['synchronization=local_sgd{period: 4}', LINEAR],
    'local_sgd_average': ['synchronization=local_sgd{period: 2 local_state: AVERAGE}', LINEAR],
    'bmuf': ['synchronization=bmuf{period: 4 local_state: AVERAGE}', KEEP],
    'bmuf_default': ['synchronization=bmuf', KEEP],
    'slow_mo_default': ['synchronization=slow_mo', KEEP],
    'slow_mo': ['synchronization=slow_mo{period: 4 local_state: AVERAGE}', SQRT],
    'post_local': ['synchronization={s_sgd {} switch { at_epoch: {at:0.7} '
                   'local_sgd { period: 4 local_state: AVERAGE } }}', LINEAR],
    'swap': ['synchronization={s_sgd {} switch { at_epoch: {at:0.85} swap {} with_learners: KEEP }}', LINEAR],
    'growth': ['synchronization=s_sgd', 'learners.per_device={growth{to: {learners}}}', LINEAR],
    'sma_growth': ['synchronization=sma', 'learners.per_device={growth{to: {learners}}}', SQRT],
    'fewer': ['synchronization={s_sgd {} switch { at_epoch: {at:0.6} s_sgd {} learners: {quarter} }}', LINEAR],
}


def settings_of(recipe, learners, epochs):
    """Returns the --set arguments of a recipe for these numbers of learners and epochs."""
    settings = []
    for setting in RECIPES[recipe]:
        while '{at:' in setting:
            begin = setting.index('{at:')
            end = setting.index('}', begin)
            setting = f'{setting[:begin]}{float(setting[begin + 4:end]) * epochs:g}{setting[end + 1:]}'
        settings.append(setting.replace('{quarter}', str(max(1, learners // 4))).replace('{learners}', str(learners)))
    return settings


def train(options, recipe, learners, seed, core):
    """Trains once, on one core or (None) on the job's devices. Returns the row for the results file."""
    settings = [f'learners.per_device.fixed={learners}', f'training.seed={seed}',
                f'training.max_epochs={options.epochs}']
    settings += settings_of(recipe, learners, options.epochs) + options.settings
    if core is not None:
        settings.append(f'devices=cpu:{core}')
    if options.validation:
        settings.append(f'data.validation.fraction={options.validation:g}')
    with tempfile.TemporaryDirectory() as directory:
        output = os.path.join(directory, 'run')
        command = [options.program, 'train', options.job, '--quiet', '--output', output]
        for setting in settings:
            command += ['--set', setting]
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if status.returncode not in (0, 7):  # 7: diverged, which is a result
            raise RuntimeError(f'{" ".join(command)}: exit {status.returncode}\n{status.stderr}')
        with open(os.path.join(output, 'metrics.jsonl')) as lines:
            rows = [json.loads(line) for line in lines]
    epochs = [row for row in rows if row['event'] == 'epoch']
    return {**key_of(options, recipe, learners, seed), 'settings': settings, 'diverged': status.returncode == 7,
            'accuracy': [row.get('validation_accuracy', row.get('test_accuracy')) for row in epochs], 'train_loss': [row['train_loss'] for row in epochs],
            'replica_spread': [row.get('replica_spread') for row in epochs],
            'seconds': epochs[-1]['elapsed_seconds'] if epochs else None}


def key_of(options, recipe, learners, seed):
    """Returns the fields that identify a run."""
    return {'job': os.path.basename(options.job), 'recipe': recipe, 'learners': learners, 'epochs': options.epochs,
            'seed': seed, 'validation': options.validation, 'set': options.settings,
            'recipe_settings': settings_of(recipe, learners, options.epochs)}


def read(path):
    """Returns all rows of a results file in order, or none if it does not exist."""
    if not os.path.exists(path):
        return []
    with open(path) as lines:
        return [json.loads(line) for line in lines if line.strip()]


def run(options):
    """Trains the runs that the results file does not have yet, seed by seed."""
    cores = queue.Queue()
    for core in options.cores or [None]:
        cores.put(core)
    writing = threading.Lock()

    def train_and_write(recipe, learners, seed):
        core = cores.get()
        try:
            row = train(options, recipe, learners, seed, core)
        finally:
            cores.put(core)
        with writing, open(options.results, 'a') as results:
            results.write(json.dumps(row) + '\n')
            print(f'{recipe}, {learners} learners, seed {seed}: {100 * max(row["accuracy"] or [0]):.2f} %', flush=True)

    there = read(options.results)
    with concurrent.futures.ThreadPoolExecutor(cores.qsize()) as pool:
        runs = []
        for seed in options.seeds:
            for learners in options.learners:
                for recipe in options.recipes:
                    key = key_of(options, recipe, learners, seed)
                    if not any(all(row.get(field) == value for field, value in key.items()) for row in there):
                        runs.append(pool.submit(train_and_write, recipe, learners, seed))
        for finished in concurrent.futures.as_completed(runs):
            if finished.exception():
                pool.shutdown(cancel_futures=True)
                sys.exit(str(finished.exception()))


def epochs_to(target, accuracies):
    """Returns the first epoch at which the lower median of the last five accuracies reaches the target, or None."""
    for epoch in range(1, len(accuracies) + 1):
        last = sorted(accuracies[max(0, epoch - 5):epoch])
        if last[(len(last) - 1) // 2] >= target:
            return epoch
    return None


def table(options):
    """Prints accuracies after selected epochs (medians over seeds), their range at the end, and epochs to a target."""
    groups = {}
    for row in read(options.results):
        group = (row['job'], row['epochs'], row['validation'], row['learners'], row['recipe'], tuple(row['set']))
        groups.setdefault(group, []).append(row)
    heads = None
    for (job, epochs, validation, learners, recipe, extra), rows in sorted(groups.items()):
        head = (job, epochs, validation)
        shown = sorted({1, 2, 4, 6, 8, 10, epochs} & set(range(1, epochs + 1)))
        if head != heads:
            heads = head
            print(f'\n{job}, {epochs} epochs, accuracy in % on the {"validation" if validation else "test"} set\n')
            target = f' epochs to {100 * options.target:g} % |' if options.target else ''
            print('| learners | recipe | seeds | ' + ' | '.join(map(str, shown)) + ' | range at the end |' + target)
            print('|---' * (len(shown) + 4 + bool(target)) + '|')
        whole = [row['accuracy'] for row in rows if len(row['accuracy']) == epochs]
        needed = [epochs_to(options.target, row['accuracy']) for row in rows] if options.target else []
        diverged = sum(row['diverged'] for row in rows)
        cells = [f'{100 * statistics.median(a[e - 1] for a in whole):.2f}' if whole else '-' for e in shown]
        spread = f'{100 * min(a[-1] for a in whole):.2f} to {100 * max(a[-1] for a in whole):.2f}' if whole else ''
        name = ', '.join([recipe, *extra])
        seeds = f'{len(rows)}, {diverged} diverged' if diverged else len(rows)
        if needed:
            needed.sort(key=lambda epoch: epoch or epochs + 1)
            spread += ' | ' + ', '.join('-' if epoch is None else str(epoch) for epoch in needed)
        print(f'| {learners} | {name} | {seeds} | ' + ' | '.join(cells) + f' | {spread} |')


def main():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(word) for word in text.split(',')]
    parser.add_argument('--program', default='build/release/arbalest')
    parser.add_argument('--job', default='configs/resnet20-cifar10.txtpb')
    parser.add_argument('--results', required=True, help='JSON lines; appended to')
    parser.add_argument('--recipes', type=lambda text: text.split(','), default=[r for r in RECIPES if r != 'one'])
    parser.add_argument('--learners', type=numbers, default=[4, 16])
    parser.add_argument('--seeds', type=numbers, default=[1])
    parser.add_argument('--epochs', type=int, default=10)
    parser.add_argument('--validation', type=float, default=0.0, help='fraction of the training set; 0: the test set')
    parser.add_argument('--cores', type=numbers, help='train one run at a time on each of these cores')
    parser.add_argument('--target', type=float, help='for the table: an accuracy in (0, 1]')
    parser.add_argument('--set', dest='settings', action='append', default=[], help='for all runs, as in train')
    parser.add_argument('--table', action='store_true', help='print what the file has, and train nothing')
    options = parser.parse_args()
    unknown = [recipe for recipe in options.recipes if recipe not in RECIPES]
    if unknown:
        parser.error(f'unknown recipes: {", ".join(unknown)}; there are {", ".join(RECIPES)}')
    table(options) if options.table else run(options)


if __name__ == '__main__':
    main()
