#!/usr/bin/env python3
"""Which central momentum and which learning-rate rule need the fewest epochs? LeNet on MNIST, b = 32.

Trains every combination of learners k, rule, central momentum and seed from configs/lenet-mnist.txtpb at a fixed
learning rate until 99 % (design section 8: lower median of the last five test accuracies) and writes one JSON object a
run. Epochs do not depend on the machine, so all k learners of a run share one core and one run per core goes on at a
time.

    ARBALEST_DATA=DIR bench/sma_defaults.py --program build/release/arbalest --rules KEEP,SQRT,LINEAR --momenta 0.9 >>runs.jsonl
    bench/sma_defaults.py --table runs.jsonl
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

TARGETS = (0.985, 0.99)


def epochs_to(target, accuracies):
    """First epoch at which the lower median of the last five accuracies is at the target, or None."""
    for epoch in range(1, len(accuracies) + 1):
        last = sorted(accuracies[max(0, epoch - 5):epoch])
        if last[(len(last) - 1) // 2] >= target:
            return epoch
    return None


def train(program, cores, k, rule, momentum, seed, max_epochs):
    core = cores.get()
    try:
        with tempfile.TemporaryDirectory() as directory:
            output = os.path.join(directory, 'run')
            settings = [f'devices=cpu:{core}', f'learners.per_device.fixed={k}', f'training.seed={seed}',
                        f'training.max_epochs={max_epochs}', 'training.target_accuracy=0.99', 'learning_rate.fixed={}',
                        f'learning_rate.with_learners={rule}', f'synchronization.sma.central_momentum={momentum}']
            command = [program, 'train', 'configs/lenet-mnist.txtpb', '--quiet', '--output', output]
            for setting in settings:
                command += ['--set', setting]
            status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if status.returncode not in (0, 7):  # 7: diverged, which is a result
                sys.exit(f'{" ".join(command)}: exit {status.returncode}\n{status.stderr}')
            with open(os.path.join(output, 'metrics.jsonl')) as lines:
                rows = [json.loads(line) for line in lines]
            accuracies = [row['test_accuracy'] for row in rows if row['event'] == 'epoch']
            return {'k': k, 'rule': rule, 'central_momentum': momentum, 'seed': seed, 'max_epochs': max_epochs,
                    'diverged': status.returncode == 7, 'test_accuracy': accuracies}
    finally:
        cores.put(core)


def run(options):
    cores = queue.Queue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)
    combinations = [(k, rule, momentum, seed)
                    for seed in options.seeds
                    for k in options.learners
                    for rule in (options.rules if k > 1 else options.rules[:1])
                    for momentum in (options.momenta if k > 1 else options.momenta[:1])]
    with concurrent.futures.ThreadPoolExecutor(cores.qsize()) as pool:
        runs = [pool.submit(train, options.program, cores, *combination, options.max_epochs)
                for combination in combinations]
        for finished in concurrent.futures.as_completed(runs):
            print(json.dumps(finished.result()), flush=True)


def table(path):
    groups = {}
    with open(path) as lines:
        for line in lines:
            row = json.loads(line)
            key = (row['rule'], row['central_momentum']) if row['k'] > 1 else ('any', 'any')  # no averaging with one
            groups.setdefault((row['k'], *key), []).append(row)
    print('| k | with_learners | central_momentum | seeds | epochs to 98.5 % | epochs to 99 % | best accuracy, median |')
    print('|---|---|---|---|---|---|---|')
    for (k, rule, momentum), rows in sorted(groups.items()):
        cells = []
        for target in TARGETS:
            epochs = [epochs_to(target, row['test_accuracy']) for row in rows]
            cells.append(', '.join('-' if epoch is None else str(epoch) for epoch in sorted(epochs, key=lambda e: e or 99)))
        best = [max(row['test_accuracy']) for row in rows if row['test_accuracy']]  # some end before their first epoch
        accuracy = f'{100 * statistics.median(best):.2f} %' if best else '-'
        print(f'| {k} | {rule} | {momentum} | {len(rows)} | {cells[0]} | {cells[1]} | {accuracy} |')


def numbers(kind):
    return lambda text: [kind(part) for part in text.split(',')]


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='build/release/arbalest')
    parser.add_argument('--learners', type=numbers(int), default=[1, 2, 4, 8])
    parser.add_argument('--rules', type=numbers(str), default=['KEEP', 'SQRT', 'LINEAR'])
    parser.add_argument('--momenta', type=numbers(float), default=[0.0, 0.5, 0.7, 0.9])
    parser.add_argument('--seeds', type=numbers(int), default=[1, 2, 3])
    parser.add_argument('--max-epochs', type=int, default=10)
    parser.add_argument('--table', metavar='FILE', help='print the table of runs kept in FILE')
    arguments = parser.parse_args()
    table(arguments.table) if arguments.table else run(arguments)
