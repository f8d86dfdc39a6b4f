#!/usr/bin/env bash
# Is one commit of Arbalest faster or slower than another? Builds overhead_bench and scaling_bench of both without CUDA,
# runs them in turns (old, new, new, old ...) on the jobs of the old commit, and prints new / old: the median over the
# turns and the extremes. Needs a quiet machine, and 2 GB of disk in $WORK.
#
#   WORK=/tmp/compare bench/compare_commits.sh OLD NEW [TURNS]
#
# $ARBALEST_DATA must hold cifar-10. The rows stay in $WORK/rows.jsonl.
set -euo pipefail
if [ $# -lt 2 ] || [ -z "${ARBALEST_DATA:-}" ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
declare -A commit=([old]=$1 [new]=$2)
turns=${3:-4}
work=${WORK:-$(mktemp -d)}

for side in old new; do
  [ -d "$work/$side" ] || git -C "$repository" worktree add --detach "$work/$side" "${commit[$side]}"
  (cd "$work/$side" && cmake --preset release -DARBALEST_CUDA=OFF -DBUILD_TESTING=OFF >"$work/$side.log")
  ninja -C "$work/$side/build/release" overhead_bench scaling_bench
done

cd "$work/old" # a new job may have fields that the old program does not know
rm -f "$work/rows.jsonl"
run() { # run SIDE QUESTION PROGRAM ARGUMENTS...
  "$work/$1/build/release/bench/$3" "${@:4}" | sed "s|^{|{\"side\":\"$1\",\"of\":\"$2\",|" >>"$work/rows.jsonl"
}
for ((turn = 0; turn < turns; ++turn)); do
  sides='old new'
  [ $((turn % 2)) = 0 ] || sides='new old'
  for side in $sides; do
    run "$side" overhead-lenet overhead_bench --model lenet --turns 15
    run "$side" overhead-resnet20 overhead_bench --model resnet20 --turns 9 --data-root "$ARBALEST_DATA"
    run "$side" scaling-lenet scaling_bench configs/lenet-digits.txtpb --turns 20
    run "$side" scaling-resnet20 scaling_bench configs/resnet20-cifar10.txtpb --turns 10 --data-root "$ARBALEST_DATA"
  done
done 2>/dev/null

python3 - "$work/rows.jsonl" <<'PYTHON'
import json
import statistics
import sys

KEYS = ('speed_of_bare', 'cpu_seconds_per_second', 'ratio', 'learners_images_per_second', 'processes_images_per_second')


def figures(row):
    """Returns the figures of a row by name: the seconds of each contender, and the medians of KEYS."""
    for contender in row.get('contenders', []):
        if 'seconds' in contender:
            yield f'seconds of {contender["name"]}', contender['seconds']
    for key in KEYS:
        value = row.get(key)
        value = value.get('median') if isinstance(value, dict) else value
        if value is not None:
            yield key, value


values = {}
for line in open(sys.argv[1], encoding='utf-8'):
    row = json.loads(line)
    for name, value in figures(row):
        values.setdefault((row['of'], name), {'old': [], 'new': []})[row['side']].append(value)
for (of, name), sides in values.items():
    ratios = [new / old for old, new in zip(sides['old'], sides['new'])]
    print(f'{of:18} {name:30} new / old {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})')
PYTHON
