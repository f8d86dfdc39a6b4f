#!/usr/bin/env python3
"""How many images a second does a model with split dense layers train, beside data-parallel training?

The model is AlexNet-like: a convolution before three dense layers, of which the first is split by columns and the second
by rows. Both ways train in turns on the same two devices, over two processes with one device each. --processes 1 puts
both devices into one process. Beside their images a second stands what `arbalest inspect` predicts that a device sends
for a mini-batch. --links and --flops are the speeds that it assumes: those of messages between the processes (or of a
copy between the devices), and of the layers on one device.

    bench/split_layers.py --program build/release/arbalest --links 2GB/s,50us --flops 50GFLOP/s >split.jsonl

A row is a JSON object for each width and batch size. `predicted_ratio` is split over data-parallel, as is
`split_over_data_parallel`, which is measured.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

JOB = '''
name: "split-layers"
model {{
  layers {{ name: "conv1" input: "image" conv {{ filters: 8 kernel: 5 }} }}
  layers {{ name: "pool1" input: "conv1" max_pool {{ kernel: 2 stride: 2 }} }}
  layers {{ name: "dense1" input: "pool1" dense {{ units: {width} {columns} }} }}
  layers {{ name: "relu1" input: "dense1" relu {{}} }}
  layers {{ name: "drop1" input: "relu1" dropout {{ ratio: 0.5 }} }}
  layers {{ name: "dense2" input: "drop1" dense {{ units: {width} {rows} }} }}
  layers {{ name: "relu2" input: "dense2" relu {{}} }}
  layers {{ name: "logits" input: "relu2" dense {{ units: 10 }} }}
  layers {{ name: "loss" input: "logits" input: "label" softmax_cross_entropy {{}} }}
}}
data {{ digits {{}} }}
training {{ batch_size: {batch} max_epochs: {epochs} }}
optimizer {{ sgd {{ momentum: 0.9 }} }}
learning_rate {{ base: 0.001 with_learners: KEEP }}
synchronization {{ s_sgd {{}} }}
learners {{ per_device {{ fixed: 1 }} }}
{devices}
'''


def job_text(options, width, batch, is_split):
    """Returns the job, split or data-parallel."""
    return JOB.format(width=width, batch=batch, epochs=options.epochs,
                      columns='split: COLUMNS' if is_split else '', rows='split: ROWS' if is_split else '',
                      devices='\n'.join(f'devices: "{name}"' for name in options.devices))


def launched(options, command):
    """Returns the command that starts `command` in all processes."""
    if options.processes == 1:
        return command
    return ['mpirun', '--oversubscribe', '--bind-to', 'none', '-np', str(options.processes), *command]


def run(command):
    """Returns stdout of a command that must succeed."""
    environment = {**os.environ, 'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}: exit {done.returncode}\n{done.stderr}')
    return done.stdout


def images_per_second(options, job, directory, turn):
    """Trains once and returns the speed."""
    output = os.path.join(directory, f'run-{turn}')
    command = [options.program, 'train', job, '--quiet', '--output', output, '--set', 'checkpoint.keep_last=0']
    run(launched(options, command))
    with open(os.path.join(output, 'summary.json')) as file:
        summary = json.load(file)
    if summary['learners'] != len(options.devices):
        sys.exit(f'the run had {summary["learners"]} learners on {len(options.devices)} devices')
    return summary['images_per_second']


def predict(options, job):
    """Returns what a device sends for the layers dense1 and dense2 in a mini-batch: data-parallel, and split as a pair."""
    text = run([options.program, 'inspect', job, '--links', options.links, '--devices-assumed', str(len(options.devices)),
                '--flops', options.flops, '--json'])
    costs = json.loads(text)
    pair = next(pair for pair in costs['pairs'] if pair['split_by_columns'] == 'dense1')
    compute = sum(layer['compute_seconds'] for layer in costs['layers'])
    others = sum(layer['data_parallel']['seconds'] - layer['data_parallel']['hidden_seconds']
                 for layer in costs['layers'] if layer['name'] not in ('dense1', 'dense2'))
    return {'data_parallel': pair['data_parallel'], 'split': pair['split'], 'compute_seconds': compute,
            'predicted_ratio': (compute + others + pair['data_parallel']['waiting_seconds'])
                               / (compute + others + pair['split']['seconds'])}


def measure(options, width, batch):
    """Measures one width and batch size in turns, and returns the row."""
    speeds = {True: [], False: []}
    with tempfile.TemporaryDirectory() as directory:
        jobs = {}
        for is_split in (False, True):
            jobs[is_split] = os.path.join(directory, 'split.txtpb' if is_split else 'data_parallel.txtpb')
            with open(jobs[is_split], 'w') as file:
                file.write(job_text(options, width, batch, is_split))
        for turn in range(options.turns):
            for is_split in (False, True):
                speeds[is_split].append(images_per_second(options, jobs[is_split], directory, f'{turn}-{is_split}'))
        predicted = predict(options, jobs[False])
    split, data = statistics.median(speeds[True]), statistics.median(speeds[False])
    return {'width': width, 'batch_size': batch, 'devices': options.devices, 'processes': options.processes,
            'turns': options.turns,
            'load_average': os.getloadavg()[0], 'split_images_per_second': split,
            'data_parallel_images_per_second': data, 'split_over_data_parallel': split / data,
            'links': options.links, 'flops': options.flops, **predicted}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='build/release/arbalest')
    parser.add_argument('--devices', nargs=2, default=['cpu:0', 'cpu:1'])
    parser.add_argument('--processes', type=int, choices=[1, 2], default=2)
    parser.add_argument('--widths', type=int, nargs='+', default=[512, 2048, 4096])
    parser.add_argument('--batches', type=int, nargs='+', default=[16, 128])
    parser.add_argument('--epochs', type=int, default=1)
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--links', required=True, help='speed between the devices: 2GB/s,50us')
    parser.add_argument('--flops', required=True, help='speed of a device in these layers: 50GFLOP/s')
    options = parser.parse_args()
    for width in options.widths:
        for batch in options.batches:
            row = measure(options, width, batch)
            print(json.dumps(row), flush=True)
            print(f'{width} units, {batch} examples a device: split {row["split_images_per_second"]:.0f} images/s, '
                  f'data-parallel {row["data_parallel_images_per_second"]:.0f}, ratio '
                  f'{row["split_over_data_parallel"]:.2f}, predicted {row["predicted_ratio"]:.2f}', file=sys.stderr)


if __name__ == '__main__':
    main()
