#!/usr/bin/env bash
# Runs all tests and benchmarks that need a GPU, from an installed tree (cmake --install, components program, measure).
#
#   bench/gpu.sh OUT [tests|bench|teams|curves|peers|sanitize|all]...
#
# tests     operators and training compared with the CPU; a failing case runs again alone in a new process
# bench     launch floor, images/s over learners with LeNet, durations of one step's kernels (ncu)
# teams     images/s of learners on streams of their own and in teams, in turns
# curves    images/s over learners for several mini-batches of LeNet and ResNet-32; each point is saved at once
# peers     PyTorch on the same GPU
# sanitize  compute-sanitizer on our own kernels
#
# Each part ends within ARBALEST_GPU_SECONDS (540), and leaves at most eight files in OUT: summary.md, steps.tsv,
# results.jsonl (one object per measurement), machine.txt, log.txt, and if they have content kernels.csv, sanitizer.txt
# and cudnn.txt (cuDNN's log of the first failing call). CIFAR-10 is searched below $ARBALEST_DATA, by default data/. If
# it is missing, random images replace it. Exit codes: 0 success, 1 a step failed, 2 usage, 4 there is no GPU.
set -uo pipefail

usage() {
  sed -n '2,16s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

[ $# -ge 1 ] || usage
case $1 in -*) usage ;; esac
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- all
for part in "$@"; do
  case $part in tests | bench | teams | curves | peers | sanitize | all) ;; *) usage ;; esac
done
parts=" $* "
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

# Jobs and settings to measure. The test of this script sets smaller jobs.
small_job=${ARBALEST_GPU_SMALL_JOB:-configs/lenet-digits.txtpb}
large_job=${ARBALEST_GPU_LARGE_JOB:-configs/resnet32-cifar10.txtpb}
data=${ARBALEST_DATA:-data}
read -ra learners <<<"${ARBALEST_GPU_LEARNERS:-1 2 4 8 16 32}"
read -ra small_batches <<<"${ARBALEST_GPU_SMALL_BATCHES:-16 64}"  # 32 is measured by the benches
read -ra large_batches <<<"${ARBALEST_GPU_LARGE_BATCHES:-16 32 64 128}"
read -ra team_learners <<<"${ARBALEST_GPU_TEAM_LEARNERS:-8 32}"
team_batch=${ARBALEST_GPU_TEAM_BATCH:-64}  # of the large job
read -ra team_sizes <<<"${ARBALEST_GPU_TEAM_SIZES:-1 4 8}"
made_up_records=${ARBALEST_GPU_MADE_UP_RECORDS:-10000}  # records in each of CIFAR-10's files
read -ra measuring <<<"${ARBALEST_GPU_MEASURING:---turns 7}"  # options of `gpu_bench learners`

deadline=$((SECONDS + ${ARBALEST_GPU_SECONDS:-540}))
rm -f "$out"/{summary.md,results.jsonl,steps.tsv,machine.txt,log.txt,kernels.csv,sanitizer.txt,cudnn.txt}
touch "$out"/{results.jsonl,steps.tsv,log.txt}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

say() { printf '%s\n' "$*" >&2; }

# stop CODE MESSAGE...
stop() {
  say "${@:2}"
  exit "$1"
}

wanted() { [[ $parts == *" $1 "* || $parts == *" all "* ]]; }

# If CUDA's libraries are only in Python packages (nvidia-cublas, nvidia-cudnn-cu13, ...), sets the loader's path. The
# output of ldd is read to its end, because with pipefail a pipe that is closed early would look like a failure.
find_cuda_libraries() {
  local libraries folders
  libraries=$(ldd bin/arbalest 2>&1)
  [[ $libraries == *'not found'* ]] || return 0
  folders=$(python3 - <<'PYTHON'
import glob, os, site, sys
roots = dict.fromkeys(sys.path + site.getsitepackages() + [site.getusersitepackages()])
print(":".join(sorted({f for root in roots for f in glob.glob(os.path.join(root, "nvidia", "*", "lib"))})))
PYTHON
  )
  export LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  libraries=$(ldd bin/arbalest 2>&1)
  printf '%s\n' "$libraries" | sed -n '/not found/s/^/missing:/p' >&2
}

# A program that cannot start is a failure, not a missing GPU.
require_gpu() {
  local environment devices
  environment=$(bin/arbalest env 2>&1) || stop 1 "error: bin/arbalest does not start: $environment"
  devices=$(bin/arbalest devices 2>&1) || stop 1 "error: bin/arbalest devices fails: $devices"
  describe_machine "$environment" >"$out/machine.txt" 2>&1
  cat "$out/machine.txt" >&2
  [[ $devices == *'name: cuda:0'* ]] || stop 4 "skipped: $(sed -n 's/^cuda: //p' <<<"$devices")"
}

describe_machine() {
  echo "date: $(date -u '+%Y-%m-%d %H:%M:%S UTC')"
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm --format=csv
  else
    echo "nvidia-smi is not installed"
  fi
  echo "CUDA_DEVICE_MAX_CONNECTIONS: ${CUDA_DEVICE_MAX_CONNECTIONS:-default}"
  printf '%s\n' "$1"
}

seconds_left() { echo $((deadline - SECONDS)); }

# record NAME STATUS SECONDS [NOTE]
record() {
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(tr '\t\n' '  ' <<<"${4:-}" | sed 's/ *$//')" >>"$out/steps.tsv"
  say "$(printf '%-28s %s %s%s' "$1" "$2" "${3:+after $3 s}" "${4:+: $4}")"
}

# attempt LIMIT COMMAND...: runs the command and returns its exit code. The output goes to $scratch/{stdout,stderr} and
# log.txt, and JSON lines of stdout also to results.jsonl.
attempt() {
  local limit=$1 code left
  shift
  left=$(seconds_left)
  [ "$limit" -le "$left" ] || limit=$left
  [ "$limit" -ge 1 ] || limit=1  # 0 would be no limit
  printf '\n== %s\n' "$*" >>"$out/log.txt"
  timeout --kill-after=5 "$limit" "$@" >"$scratch/stdout" 2>"$scratch/stderr"
  code=$?
  cat "$scratch/stdout" "$scratch/stderr" >>"$out/log.txt"
  sed -n '/^{"question"/p' "$scratch/stdout" >>"$out/results.jsonl"
  return "$code"
}

skip_reason() { cat "$scratch/stdout" "$scratch/stderr" | sed -n '/^skipped: /{s///p;q}'; }
last_line() { cat "$scratch/stdout" "$scratch/stderr" | tail -n 1 | cut -c 1-160; }

# step NAME LIMIT COMMAND...: runs the command and records how it ended. If it succeeds and `judge` names a function,
# the function's output is the note, and its exit code decides. A program that exits with 4 counts as skipped only if it
# prints a reason, because arbalest also exits with 4 if data is missing.
judge=
step() {
  local name=$1 limit=$2 start=$SECONDS status=passed note='' reason code
  shift 2
  if [ "$(seconds_left)" -lt 5 ]; then
    record "$name" skipped '' 'no time is left'
    return 0
  fi
  attempt "$limit" "$@"
  code=$?
  reason=$(skip_reason)
  if [ "$code" -eq 0 ]; then
    if [ -n "$judge" ]; then note=$("$judge" "$name") || status=failed; fi
  elif [ "$code" -eq 4 ] && [ -n "$reason" ]; then
    status=skipped note=$reason
  elif [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
    status=failed note="stopped at its limit of $limit s, or at the part's${judge:+: $("$judge" "$name")}"
  else
    status=failed note="exit code $code: $(last_line)"
  fi
  record "$name" "$status" $((SECONDS - start)) "$note"
}

# Prints the names of the test cases that a specification matches, one per line. Catch2 2 and 3 have different options
# for this.
list_cases() {
  local names left
  left=$(seconds_left)
  names=$(timeout "$((left > 1 ? left : 1))" tests/gpu_test --list-test-names-only "$@" 2>/dev/null)
  [ -n "$names" ] || names=$(timeout 10 tests/gpu_test --list-tests --verbosity quiet "$@" 2>/dev/null)
  printf '%s' "$names"
}

# escape < NAMES: escapes names for a file that Catch2 reads, where a comma would end a name.
escape() { sed 's/[\\,]/\\&/g'; }

# The test program prints on stderr when a case begins and how it ends (tests/gpu/case_listener.cc).
cases_that() { sed -n "s/^case $1: //p" "$scratch/stderr"; }

# take_out FILE < NAMES: removes these lines from the file.
take_out() { grep -vxFf - "$1" >"$scratch/kept"; mv "$scratch/kept" "$1"; }

# cases NAME LIMIT SPECIFICATION...: runs test cases in one process. If it ends early, the remaining cases run in
# another process. Cases that failed, or in which a process ended, run again alone.
cases() {
  local name=$1 limit=$2 start=$SECONDS code running skipped=0 reason='' ended=0 first_note=''
  shift 2
  if [ "$(seconds_left)" -lt 5 ]; then
    record "$name" skipped '' 'no time is left'
    return 0
  fi
  list_cases "$@" >"$scratch/left"
  : >"$scratch/failed"
  if [ ! -s "$scratch/left" ]; then
    attempt 30 tests/gpu_test "$@"
    record "$name" failed $((SECONDS - start)) "tests/gpu_test lists no case: $(last_line)"
    return 0
  fi
  local all
  all=$(wc -l <<<"$(cat "$scratch/left")")
  while [ -s "$scratch/left" ]; do
    if [ "$(seconds_left)" -lt 5 ] || [ $((SECONDS - start)) -ge "$limit" ]; then
      first_note="$(wc -l <"$scratch/left") cases were not reached in time; "
      break
    fi
    escape <"$scratch/left" >"$scratch/input"
    attempt $((limit - (SECONDS - start))) tests/gpu_test --input-file "$scratch/input"
    code=$?
    cases_that failed >>"$scratch/failed"
    ended=$((ended + $(cases_that passed | wc -l) + $(cases_that failed | wc -l)))
    { cases_that passed; cases_that failed; } >"$scratch/ended"
    running=$(cases_that begins | grep -vxFf "$scratch/ended" | tail -n 1)
    take_out "$scratch/left" <"$scratch/ended"
    if [ -n "$running" ]; then
      if [ "$code" -eq 4 ] && [ -n "$(skip_reason)" ]; then
        skipped=$((skipped + 1)) reason=$(skip_reason)
      else
        printf '%s\n' "$running" >>"$scratch/failed"
      fi
      take_out "$scratch/left" <<<"$running"
    elif [ ! -s "$scratch/ended" ]; then
      first_note="exit code $code, and no case begins: $(last_line); "
      cat "$scratch/left" >>"$scratch/failed"
      break
    fi
  done
  finish_cases "$name" "$start" "$all" "$skipped" "$reason" "$first_note"
}

# Records the result of cases().
finish_cases() {
  local name=$1 start=$2 all=$3 skipped=$4 reason=$5 note=$6 failed
  failed=$(wc -l <"$scratch/failed")
  if [ "$failed" -gt 0 ]; then
    record "$name" failed $((SECONDS - start)) "$note$failed of $all cases fail; alone, in fresh processes: $(run_alone)"
  elif [ -n "$note" ]; then
    record "$name" failed $((SECONDS - start)) "$note"
  elif [ "$skipped" -eq "$all" ]; then
    record "$name" skipped $((SECONDS - start)) "$reason"
  else
    [ "$skipped" -eq 0 ] || note="$skipped of $all cases are skipped: $reason"
    [ "$name" != first_losses ] || note=$(sed -n '/^largest difference/p' "$scratch/stdout")
    record "$name" passed $((SECONDS - start)) "$note"
  fi
}

# Runs the first failing cases again, each in a separate process with cuDNN's log enabled.
run_alone() {
  local case result count=0
  while read -r case; do
    if [ "$count" -eq 8 ] || [ "$(seconds_left)" -lt 5 ]; then
      echo "others were not tried"
      break
    fi
    count=$((count + 1))
    escape <<<"$case" >"$scratch/one"
    rm -f "$scratch/cudnn"
    result=fails
    attempt 60 env CUDNN_LOGLEVEL_DBG=3 CUDNN_LOGDEST_DBG="$scratch/cudnn" tests/gpu_test --input-file "$scratch/one" \
      </dev/null && result=passes
    keep_cudnn_log "$case"
    echo "\"$case\" $result;"
  done <"$scratch/failed" | paste -sd ' '
}

# Extracts from cuDNN's log the first call that failed and the lines before it. cuDNN marks errors by "E!".
keep_cudnn_log() {
  local line
  if [ -e "$out/cudnn.txt" ] || [ ! -e "$scratch/cudnn" ]; then return 0; fi
  line=$(grep -nm 1 'E! ' "$scratch/cudnn" | cut -d : -f 1)
  [ -n "$line" ] || return 0
  {
    echo "case: $1"
    sed -n "$((line > 60 ? line - 60 : 1)),$((line + 60))p" "$scratch/cudnn"
  } >"$out/cudnn.txt"
}

# The operators have the most cases. They come last, so that they cannot take the other steps' time.
run_tests() {
  cases first_losses 60 '[first_losses]'
  cases repeatability 90 '[repeatability]~[several_gpus]'
  cases training 150 '[training]~[first_losses]~[repeatability]~[several_gpus]'
  cases several_gpus 60 '[several_gpus]'
  local judge=report_accuracy
  step train_small 60 bin/arbalest train "$small_job" --set devices=cuda:0 --quiet --output "$scratch/run"
  rm -rf "$scratch/run"
  cases operators 400 '~[training]'
}

report_accuracy() {
  sed -n 's/^ *"\(status\|test_accuracy\|time_to_accuracy_seconds\|images_per_second\)": \(.*[^,]\),*$/\1 \2/p' \
    "$scratch/run/summary.json" | paste -sd ' '
  [[ $(cat "$scratch/run/summary.json") == *'"target_reached"'* ]]
}

# point NAME JOB DATA OPTIONS...: measures one number of learners in a separate process, so that a failure costs one
# point only.
point() {
  local name=$1 job=$2 data=$3 judge=report_point
  shift 3
  step "$name" 60 bench/gpu_bench learners "$job" --data-root "$data" "${measuring[@]}" "$@"
}

report_point() { sed -n '/ learners: /p' "$scratch/stderr" | tail -n 1; }

run_benches() {
  local k precision
  find_large_data
  step launch_floor 90 bench/gpu_bench launch "$small_job" --data-root "$data"
  step launch_floor_large 120 bench/gpu_bench launch "$large_job" --data-root "$large_data" --batch "${large_batches[0]}"
  for k in "${learners[@]}"; do point "learners_$k" "$small_job" "$data" --learners "$k"; done
  for precision in TF32 BF16; do
    for k in "${learners[@]}"; do
      point "learners_${precision}_$k" "$small_job" "$data" --learners "$k" --precision "$precision" --no-all-reduce
    done
  done
  run_kernel_durations
}

# Measures the durations of the kernels of one learner's step, some time after the start.
run_kernel_durations() {
  local nodes
  if ! command -v ncu >/dev/null; then
    record kernel_durations skipped '' 'ncu is not installed'
    return 0
  fi
  nodes=$(sed -n 's/.*"question":"launch floor".*"nodes":\([0-9]*\).*/\1/p' "$out/results.jsonl" | head -n 1)
  step kernel_durations 120 ncu --csv --metrics gpu__time_duration.sum --launch-skip 500 --launch-count "${nodes:-100}" \
    --log-file "$out/kernels.csv" bin/arbalest train "$small_job" --set devices=cuda:0 \
    --set learners.per_device.fixed=1 --set training.max_epochs=1 --quiet --output "$scratch/run"
  rm -rf "$scratch/run"
}

# Sets `large_data` to the root of a dataset for the large job: CIFAR-10, or random images if it is missing.
large_data=
find_large_data() {
  [ -z "$large_data" ] || return 0
  large_data=$data
  [ ! -e "$data/cifar-10/data_batch_1.bin" ] || return 0
  step made_up_images 60 python3 bench/made_up_cifar10.py "$scratch/data/cifar-10" "$made_up_records"
  large_data=$scratch/data
  echo "CIFAR-10: absent, so made-up images take its place; only speeds tell anything" >>"$out/machine.txt"
}

run_curves() {
  local batch k
  find_large_data
  for k in "${learners[@]}"; do
    for batch in "${large_batches[@]}"; do
      point "large_b${batch}_$k" "$large_job" "$large_data" --batch "$batch" --learners "$k" --no-all-reduce
    done
    for batch in "${small_batches[@]}"; do
      point "small_b${batch}_$k" "$small_job" "$data" --batch "$batch" --learners "$k" --no-all-reduce
    done
  done
}

# The sizes of teams take turns in one process.
run_teams() {
  local k precision
  find_large_data
  for k in "${team_learners[@]}"; do
    for precision in FP32 BF16; do
      teams "small_${precision}_$k" "$small_job" "$data" --learners "$k" --precision "$precision"
      teams "large_${precision}_$k" "$large_job" "$large_data" --batch "$team_batch" --learners "$k" --precision "$precision"
    done
  done
}

teams() {
  local name=teams_$1 judge=report_teams
  shift
  step "$name" 90 bench/gpu_bench learners "$1" --data-root "$2" "${measuring[@]}" --no-all-reduce \
    --teams "${team_sizes[@]}" "${@:3}"
}

report_teams() { sed -n 's/^best: //p' "$scratch/stderr"; }

run_peers() {
  local pick=(python3 bench/peers/pytorch_peer.py pick --model lenet --device cuda --synthetic --steps 2000)
  step peers 120 "${pick[@]}" --no-compile
  step compiled_peers 110 "${pick[@]}" --only compiled
}

# Counts findings in our own kernels only. Kernels of cuDNN and cuBLAS are not checked.
count_findings() {
  local report=$scratch/sanitizer-$1 found
  cat "$report" >>"$out/sanitizer.txt"
  found=$(sed -n 's/^=.*SUMMARY: \([0-9]*\) .*/\1/p' "$report" | tail -n 1)
  echo "${found:-no summary of the} findings in kernels of ours"
  [ "$found" = 0 ]
}

run_sanitizer() {
  local tool judge=count_findings
  for tool in memcheck racecheck initcheck synccheck; do
    if command -v compute-sanitizer >/dev/null; then
      step "$tool" 130 compute-sanitizer --tool "$tool" --kernel-name kns=arbalest --show-backtrace no --print-limit 200 \
        --log-file "$scratch/sanitizer-$tool" tests/gpu_test '~[training]'
    else
      record "$tool" skipped '' 'compute-sanitizer is not installed'
    fi
  done
}

find_cuda_libraries
require_gpu
if wanted tests; then run_tests; fi
if wanted bench; then run_benches; fi
if wanted teams; then run_teams; fi
if wanted peers; then run_peers; fi
if wanted sanitize; then run_sanitizer; fi
if wanted curves; then run_curves; fi

if command -v python3 >/dev/null; then
  python3 bench/gpu/gpu_summary.py "$out" | tee "$out/summary.md"
else
  say "python3 is not installed: the steps, without the table"
  cat "$out/steps.tsv"
fi
[[ $(cut -f 2 "$out/steps.tsv") != *failed* ]]
