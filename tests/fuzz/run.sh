#!/usr/bin/env bash
# Runs fuzz targets, two at a time, and fails if one finds something. Build them first: `make fuzz` does both.
#   tests/fuzz/run.sh BUILD_DIRECTORY RUNS [TARGET...]
# RUNS: executions of each target; "default" is a number for each, about two and a half minutes in total on two cores.
# FUZZ_SEED in the environment is the seed of the random inputs (default: 1, so that a repeated run finds the same).
# What the targets learn stays in BUILD_DIRECTORY/corpus, so a repeated call goes on from there. An input that fails is
# kept in BUILD_DIRECTORY/findings.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1 runs=$2
shift 2
declare -A default_runs=(
  [cifar]=30000 [idx]=60000 [image]=30000 [job]=10000 [libsvm]=60000 [manifest]=30000 [npy]=50000 [onnx]=60000
  [safetensors]=300000 [tar]=30000 [tfrecord]=30000)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(job cifar idx image libsvm manifest npy onnx safetensors tar tfrecord)
mkdir -p "$build/findings"

fuzz() {
  local target=$1 executions=$2 log=$build/$1.log
  local corpus=$build/corpus/$1 seeds=("$here/seeds/$1") options=(-max_len=4096)
  [ "$target" != job ] || seeds+=("$here/../../configs")
  [ "$target" != job ] || options+=("-dict=$build/tests/fuzz/job.dict")
  [ ! -f "$here/dictionaries/$target.dict" ] || options+=("-dict=$here/dictionaries/$target.dict")
  [ "$target" != cifar ] || options=(-max_len=6200)  # two records
  if [ ! -x "$build/tests/fuzz/fuzz_$target" ]; then
    echo "fuzz: there is no $build/tests/fuzz/fuzz_$target; build it with: cmake --build --preset fuzz" >&2
    return 1
  fi
  mkdir -p "$corpus"
  # -entropic=0: libFuzzer's weights of the inputs took nine tenths of the time of `job`
  # (bench/results/2026-11-26-resume.md).
  "$build/tests/fuzz/fuzz_$target" "-runs=$executions" "-seed=${FUZZ_SEED:-1}" -timeout=60 -malloc_limit_mb=512 -rss_limit_mb=2048 \
    -detect_leaks=1 -use_value_profile=1 -entropic=0 -print_final_stats=1 "-artifact_prefix=$build/findings/$target-" \
    "${options[@]}" "$corpus" "${seeds[@]}" >"$log" 2>&1 || {
    echo "fuzz: $target found something; the input is in $build/findings" >&2
    tail -n 60 "$log" >&2
    return 1
  }
  local executed
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ -z "$executed" ]; then
    echo "fuzz: $target ended without its statistics; see $log" >&2
    return 1
  fi
  echo "fuzz: $target: $executed executions, no finding"
}

status=0
running=()
for target in "${targets[@]}"; do
  executions=$runs
  [ "$executions" != default ] || executions=${default_runs[$target]}
  fuzz "$target" "$executions" &
  running+=($!)
  if [ ${#running[@]} -eq 2 ]; then
    wait "${running[0]}" || status=1
    running=("${running[1]}")
  fi
done
for process in "${running[@]}"; do wait "$process" || status=1; done
exit "$status"
