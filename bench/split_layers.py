#!/usr/bin/env python3
"""How many images a second does a model with split dense layers train, beside data-parallel training?

The model is AlexNet-like: a convolution before three dense layers, of which the first is split by columns and the
second by rows. The images are made up. Both ways train in turns on the same two devices, over two processes with one
device each. --processes 1 puts both devices into one process. Beside their images a second stands what `arbalest
inspect` predicts that a device sends for a mini-batch. --links and --flops are the speeds that it assumes: those of
messages between the processes (or of a copy between the devices), and of the layers on one device.

    bench/split_layers.py --program build/release/arbalest --links 2GB/s,50us --flops 50GFLOP/s >split.jsonl
    bench/split_layers.py --table split.jsonl

A row is a JSON object for each width and batch size, with the speed of each turn. `split_over_data_parallel` is the
ratio of each turn. Medians and quartiles are over the turns. `predicted_ratio` is the same ratio, predicted, and
`formula_bytes` the bytes of all layers that a device sends for a mini-batch.

--count adds `counted_bytes` to the rows of a file: the bytes of messages that a device sends for a mini-batch, as Open
MPI's monitoring has counted them. Both ways train twice, once with more and once with fewer mini-batches, and the
difference counts. Counting does not need a quiet machine.

    bench/split_layers.py --program build/release/arbalest --count split.jsonl
"""
import argparse
import array
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from arrays import write_array
from figures.tables import table
from launching import environment, launched
from program_pairs import spread

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
  layers {{ name: "logits" input: "relu2" dense {{ units: {classes} }} }}
  layers {{ name: "loss" input: "logits" input: "label" softmax_cross_entropy {{}} }}
}}
data {{ npy {{ directory: "{directory}" classes: {classes} channels: 1 height: {side} width: {side} }} }}
training {{ batch_size: {batch} max_epochs: {epochs} }}
optimizer {{ sgd {{ momentum: 0.9 }} }}
learning_rate {{ base: 0.001 with_learners: KEEP }}
synchronization {{ s_sgd {{}} }}
learners {{ per_device {{ fixed: 1 }} }}
{devices}
'''


WAYS = ('data_parallel', 'split')
CLASSES = 10
SIDE = 28  # pixels
COUNTED_MINI_BATCHES = (2, 12)  # of each device, in the two runs whose difference is counted


def job_text(options, width, batch, way, directory):
    """Returns the job. `directory`: of its images."""
    is_split = way == 'split'
    return JOB.format(width=width, batch=batch, epochs=options.epochs, directory=directory, side=SIDE, classes=CLASSES,
                      columns='split: COLUMNS' if is_split else '', rows='split: ROWS' if is_split else '',
                      devices='\n'.join(f'devices: "{name}"' for name in options.devices))


def write_images(directory, examples):
    """Writes made-up training images, and 256 test images. `examples`: number of training images."""
    os.makedirs(directory)
    numbers = random.Random(1)
    for part, count in (('train', examples), ('test', 256)):
        labels = array.array('i', (numbers.randrange(CLASSES) for _ in range(count)))
        write_array(os.path.join(directory, f'{part}_images.npy'), '|u1', (count, SIDE, SIDE),
                    numbers.randbytes(count * SIDE * SIDE))
        write_array(os.path.join(directory, f'{part}_labels.npy'), '<i4', (count,), labels.tobytes())


def run(command):
    """Returns stdout of a command that must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}: exit {done.returncode}\n{done.stderr}')
    return done.stdout


def train_command(options, job, output):
    command = [options.program, 'train', job, '--quiet', '--output', output, '--set', 'checkpoint.keep_last=0']
    return launched(command, options.processes)


def images_per_second(options, job, output):
    """Trains once and returns the speed."""
    run(train_command(options, job, output))
    with open(os.path.join(output, 'summary.json')) as file:
        summary = json.load(file)
    if summary['learners'] != len(options.devices):
        sys.exit(f'the run had {summary["learners"]} learners on {len(options.devices)} devices')
    return summary['images_per_second']


def sent_bytes(command, directory):
    """Runs a command in two processes, and returns the bytes of messages that Open MPI's monitoring counts."""
    monitoring = {'pml_monitoring_enable': '1', 'pml_monitoring_enable_output': '3',
                  'pml_monitoring_filename': os.path.join(directory, 'messages')}
    run(['env', *(f'OMPI_MCA_{name}={value}' for name, value in monitoring.items()), *command])
    total = 0
    for path in pathlib.Path(directory).glob('messages.*.prof'):  # one of each process
        for line in path.read_text().splitlines():
            kind, *words = line.split('\t')
            if kind in ('E', 'I', 'S', 'R'):  # E, rank, to rank, "1024 bytes", "3 msgs sent"
                total += int(words[2].split()[0])
    return total


def counted_bytes(row, way, options):
    """Returns the bytes that a device sends for a mini-batch of the row's model."""
    job_options = argparse.Namespace(program=options.program, devices=row['devices'], processes=row['processes'],
                                     epochs=1)
    counted = []
    for mini_batches in COUNTED_MINI_BATCHES:
        with tempfile.TemporaryDirectory() as directory:
            images, job = os.path.join(directory, 'images'), os.path.join(directory, 'job.txtpb')
            write_images(images, mini_batches * row['batch_size'] * len(row['devices']))
            with open(job, 'w') as file:
                file.write(job_text(job_options, row['width'], row['batch_size'], way, images))
            command = train_command(job_options, job, os.path.join(directory, 'run'))
            counted.append(sent_bytes(command, directory))
    fewer, more = COUNTED_MINI_BATCHES
    return (counted[1] - counted[0]) / (more - fewer) / len(row['devices'])


def count(options):
    """Adds the counted bytes to the rows that lack them."""
    with open(options.count) as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        if row['processes'] == 1:
            sys.exit(f'{options.count}: has a row of one process, which sends no messages')
        if 'counted_bytes' not in row:
            row['counted_bytes'] = {way: counted_bytes(row, way, options) for way in WAYS}
    text = ''.join(json.dumps(row) + '\n' for row in rows)
    with open(options.count, 'w') as file:
        file.write(text)


def predict(options, job):
    """Returns what a device sends for a mini-batch: for dense1 and dense2, in both ways, and for all layers."""
    text = run([options.program, 'inspect', job, '--links', options.links, '--devices-assumed',
                str(len(options.devices)), '--flops', options.flops, '--json'])
    costs = json.loads(text)
    pair = next(pair for pair in costs['pairs'] if pair['split_by_columns'] == 'dense1')
    compute = sum(layer['compute_seconds'] for layer in costs['layers'])
    others = sum(layer['data_parallel']['seconds'] - layer['data_parallel']['hidden_seconds']
                 for layer in costs['layers'] if layer['name'] not in ('dense1', 'dense2'))
    other_bytes = sum(layer['data_parallel']['bytes'] for layer in costs['layers']
                      if layer['name'] not in ('dense1', 'dense2'))
    return {'data_parallel': pair['data_parallel'], 'split': pair['split'], 'compute_seconds': compute,
            'formula_bytes': {way: other_bytes + pair[way]['bytes'] for way in WAYS},
            'predicted_ratio': (compute + others + pair['data_parallel']['waiting_seconds'])
                               / (compute + others + pair['split']['seconds'])}


def take_turns(options, jobs, directory):
    """Trains both ways in turns, with the order changed in every turn, and returns their speeds."""
    turns = []
    for number in range(options.turns):
        order = WAYS if number % 2 == 0 else WAYS[::-1]
        turns.append({way: images_per_second(options, jobs[way], os.path.join(directory, f'run-{number}-{way}'))
                      for way in order})
        turns[-1]['load_average'] = os.getloadavg()[0]
    return turns


def measure(options, width, batch):
    """Measures one width and batch size, and returns the row."""
    with tempfile.TemporaryDirectory() as directory:
        images = os.path.join(directory, 'images')
        write_images(images, options.examples)
        jobs = {way: os.path.join(directory, f'{way}.txtpb') for way in WAYS}
        for way, job in jobs.items():
            with open(job, 'w') as file:
                file.write(job_text(options, width, batch, way, images))
        turns = take_turns(options, jobs, directory)
        predicted = predict(options, jobs['data_parallel'])
    return {'commit': run([options.program, '--version']).strip(), 'cores': os.cpu_count(),
            'time': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'),
            'width': width, 'batch_size': batch, 'devices': options.devices, 'processes': options.processes,
            'examples': options.examples, 'epochs': options.epochs, 'turns': turns,
            **{f'{way}_images_per_second': spread([turn[way] for turn in turns]) for way in WAYS},
            'split_over_data_parallel': spread([turn['split'] / turn['data_parallel'] for turn in turns]),
            'links': options.links, 'flops': options.flops, **predicted}


def spread_text(figure, form):
    """ "1.53 (1.50 to 1.55)" """
    low, high = figure['quartiles']
    return f'{form.format(figure["median"])} ({form.format(low)} to {form.format(high)})'


def table_of(rows):
    """Returns the table of a page in bench/results."""
    header = ['units', 'examples of a device', 'turns', 'split, images/s', 'data-parallel, images/s',
              'split over data-parallel', 'predicted', 'bytes that a device sends, data-parallel: formula', 'counted',
              'split: formula', 'counted']
    cells = []
    for row in rows:
        counted = {way: f'{row["counted_bytes"][way]:,.0f}' if 'counted_bytes' in row else '-' for way in WAYS}
        cells.append([f'{row["width"]:,}', str(row['batch_size']), str(len(row['turns'])),
                      *(spread_text(row[f'{way}_images_per_second'], '{:,.0f}') for way in WAYS[::-1]),
                      spread_text(row['split_over_data_parallel'], '{:.2f}'), f'{row["predicted_ratio"]:.2f}',
                      *(text for way in WAYS for text in (f'{row["formula_bytes"][way]:,}', counted[way]))])
    return table(header, cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='build/release/arbalest')
    parser.add_argument('--devices', nargs=2, default=['cpu:0', 'cpu:1'])
    parser.add_argument('--processes', type=int, choices=[1, 2], default=2)
    parser.add_argument('--widths', type=int, nargs='+', default=[512, 2048, 4096])
    parser.add_argument('--batches', type=int, nargs='+', default=[16, 128])
    parser.add_argument('--examples', type=int, default=20000, help='training images of an epoch')
    parser.add_argument('--epochs', type=int, default=1)
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--links', help='speed between the devices: 2GB/s,50us')
    parser.add_argument('--flops', help='speed of a device in these layers: 50GFLOP/s')
    parser.add_argument('--count', metavar='FILE', help='add counted bytes to these rows, and measure nothing else')
    parser.add_argument('--table', metavar='FILE', help='print the table of these rows, and measure nothing')
    options = parser.parse_args()
    if options.table:
        with open(options.table) as lines:
            print(table_of([json.loads(line) for line in lines]), end='')
        return
    if options.count:
        count(options)
        return
    if not options.links or not options.flops:
        parser.error('a measurement needs --links and --flops')
    for width in options.widths:
        for batch in options.batches:
            row = measure(options, width, batch)
            print(json.dumps(row), flush=True)
            print(f'{width} units, {batch} examples a device: split '
                  f'{spread_text(row["split_images_per_second"], "{:.0f}")} images/s, data-parallel '
                  f'{spread_text(row["data_parallel_images_per_second"], "{:.0f}")}, ratio '
                  f'{spread_text(row["split_over_data_parallel"], "{:.2f}")}, predicted '
                  f'{row["predicted_ratio"]:.2f}', file=sys.stderr)


if __name__ == '__main__':
    main()
