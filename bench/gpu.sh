#!/usr/bin/env bash
# Runs all tests and benchmarks that need a GPU, from an installed tree (cmake --install, components program, measure).
#
#   bench/gpu.sh OUT [tests|bench|teams|curves|peers|sanitize|all]...
#   bench/gpu.sh OUT fused
#   bench/gpu.sh OUT accuracy
#
# tests     operators and training compared with the CPU; a failing case runs again alone in a new process
# bench     launch floor, images/s over learners with LeNet, durations of one step's kernels (ncu)
# teams     images/s of learners on streams of their own and in teams, in turns
# curves    images/s over learners for several mini-batches of LeNet and ResNet-32; each point is saved at once
# peers     PyTorch on the same GPU
# sanitize  compute-sanitizer on our own kernels
# fused     our own kernels and teams: tests, images/s, time to 99 %, microseconds and GFLOP/s, races
# accuracy  time to accuracy: ResNet-32 on CIFAR-10 to 91 % beside PyTorch with CUDA graphs, LeNet on MNIST to 99 %
#
# A call ends within ARBALEST_GPU_SECONDS (540; fused 420, accuracy 300), and leaves at most eight files in OUT: summary.md,
# steps.tsv, results.jsonl (one object per measurement), machine.txt, log.txt, and if they have content kernels.csv,
# sanitizer.txt and cudnn.txt (cuDNN's log of the first failing call). The first six parts and `all`, which is these six,
# begin OUT anew. `fused` and `accuracy` are called alone and keep what is in OUT: a step that passed before does not run
# again, so call them again with the same OUT until nothing is left. They refuse an OUT of another build.
#
# MNIST and CIFAR-10 are searched below $ARBALEST_DATA, by default data/. If CIFAR-10 is missing, random images replace it,
# but not in `accuracy`. Exit codes: 0 success, 1 a step failed, 2 usage, 4 there is no GPU.
set -uo pipefail

usage() {
  sed -n '2,26s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

[ $# -ge 1 ] || usage
case $1 in -*) usage ;; esac
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- all
resumes=false seconds=540
for part in "$@"; do
  case $part in
    tests | bench | teams | curves | peers | sanitize | all) ;;
    fused) resumes=true seconds=420 ;;
    accuracy) resumes=true seconds=300 ;;
    *) usage ;;
  esac
done
if $resumes && [ $# -ne 1 ]; then usage; fi
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
# of `fused`
read -ra fused_learners <<<"${ARBALEST_GPU_FUSED_LEARNERS:-1 4 8 32}"
read -ra fused_fast_learners <<<"${ARBALEST_GPU_FUSED_FAST_LEARNERS:-8 32}"  # with TF32 and BF16
read -ra fused_large_learners <<<"${ARBALEST_GPU_FUSED_LARGE_LEARNERS:-1 4 8}"
read -ra fused_team_sizes <<<"${ARBALEST_GPU_FUSED_TEAM_SIZES:-1 4 8 16 32}"
read -ra fused_run_learners <<<"${ARBALEST_GPU_FUSED_RUN_LEARNERS:-4 8}"  # of runs to 99 %
read -ra timed_teams <<<"${ARBALEST_GPU_TIMED_TEAMS:-8 1}"  # for which the candidates of kernels are timed
chosen_team=${ARBALEST_GPU_CHOSEN_TEAM:-8}  # in which the rule's kernels are compared with the timed ones
# of `accuracy`, and of the runs to 99 % of `fused`
mnist_job=${ARBALEST_GPU_MNIST_JOB:-configs/lenet-mnist.txtpb}
large_target=${ARBALEST_GPU_LARGE_TARGET:-0.91}
mnist_target=${ARBALEST_GPU_MNIST_TARGET:-0.99}
read -ra run_learners <<<"${ARBALEST_GPU_RUN_LEARNERS:-8 1 4}"  # the first also beside PyTorch, and with all seeds
read -ra run_seeds <<<"${ARBALEST_GPU_RUN_SEEDS:-1 2 3}"
peer_batch=${ARBALEST_GPU_PEER_BATCH:-512}  # PyTorch's mini-batch for the large job: that of 8 learners with 64 each

deadline=$((SECONDS + ${ARBALEST_GPU_SECONDS:-$seconds}))
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

say() { printf '%s\n' "$*" >&2; }

# stop CODE MESSAGE...
stop() {
  say "${@:2}"
  exit "$1"
}

# Prepares OUT for this call. Of an earlier one, only steps that passed are kept, and whole lines of results: a machine
# may have been lost while it wrote.
begin_out() {
  if ! $resumes; then
    rm -f "$out"/{summary.md,results.jsonl,steps.tsv,machine.txt,log.txt,kernels.csv,sanitizer.txt,cudnn.txt}
  fi
  touch "$out"/{results.jsonl,steps.tsv,log.txt,machine.txt}
  sed -i '/^[^\t]*\tpassed\t[^\t]*\t/!d' "$out/steps.tsv"
  sed -i '/}$/!d' "$out/results.jsonl"
}

# passed_before NAME: whether the step has passed, in an earlier call
passed_before() {
  grep -q "^$1"$'\tpassed\t' "$out/steps.tsv" || return 1
  say "$(printf '%-28s passed before' "$1")"
}

wanted() { [[ $parts == *" $1 "* || $parts == *" all "* && $1 != fused && $1 != accuracy ]]; }

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
  refuse_other_build "$(source_commit <<<"$environment")"
  describe_machine "$environment" >"$scratch/machine" 2>&1
  cat "$scratch/machine" >>"$out/machine.txt"
  cat "$scratch/machine" >&2
  [[ $devices == *'name: cuda:0'* ]] || stop 4 "skipped: $(sed -n 's/^cuda: //p' <<<"$devices")"
}

source_commit() { sed -n 's/^source_commit: //p'; }

# refuse_other_build COMMIT: stops if OUT has results of another commit.
refuse_other_build() {
  local before
  before=$(source_commit <"$out/machine.txt" | tail -n 1)
  [ -z "$before" ] || [ "$before" = "$1" ] ||
    stop 2 "error: $out has results of build $before, and this is $1: name another directory"
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
# log.txt, and JSON lines of stdout also to results.jsonl, with the step in $name. The summary takes a step's last result.
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
  sed -n 's/^{"question"/{"step":"'"$name"'",&/; s/,{"question"/,"question"/p' "$scratch/stdout" >>"$out/results.jsonl"
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
  if passed_before "$name"; then return 0; fi
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
  if passed_before "$name"; then return 0; fi
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
  sed -i '/^made_up_images\t/d' "$out/steps.tsv"  # an earlier call's images are gone
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

# sanitize NAME LIMIT TOOL SPECIFICATION: runs test cases under a tool of compute-sanitizer.
sanitize() {
  local judge=count_findings
  if command -v compute-sanitizer >/dev/null; then
    step "$1" "$2" compute-sanitizer --tool "$3" --kernel-name kns=arbalest --show-backtrace no --print-limit 200 \
      --log-file "$scratch/sanitizer-$1" tests/gpu_test "$4"
  else
    record "$1" skipped '' 'compute-sanitizer is not installed'
  fi
}

run_sanitizer() {
  local tool
  for tool in memcheck racecheck initcheck synccheck; do sanitize "$tool" 130 "$tool" '~[training]'; done
}

# The steps in the order of their worth, as long as there is time.
run_fused() {
  local k precision seed team_sizes=("${fused_team_sizes[@]}")
  find_large_data
  cases fused_own_kernels 45 '[own_kernels],conv2d*,dense*'
  cases fused_teams 60 '[teams]'
  for k in "${fused_learners[@]}"; do fused_small FP32 "$k"; done
  for k in "${fused_run_learners[@]}"; do
    for seed in "${run_seeds[@]}"; do reach_mnist "$k" "$seed"; done
  done
  for precision in FP32 BF16 TF32; do
    for k in "${timed_teams[@]}"; do
      kernel_rates "small_${precision}_$k" "$small_job" "$k" "$precision"
      kernel_rates "large_${precision}_$k" "$large_job" "$k" "$precision"
    done
  done
  for precision in TF32 BF16; do
    for k in "${fused_fast_learners[@]}"; do fused_small "$precision" "$k"; done
  done
  for precision in BF16 FP32; do
    for k in "${fused_large_learners[@]}"; do
      teams "fused_large_${precision}_$k" "$large_job" "$large_data" --batch "$team_batch" --learners "$k" \
        --precision "$precision"
    done
  done
  for precision in FP32 BF16; do
    team_sizes=("$chosen_team")
    teams "fused_kernels_small_$precision" "$small_job" "$data" --learners "$chosen_team" --precision "$precision" \
      --kernels FIXED TIMED
    teams "fused_kernels_large_$precision" "$large_job" "$large_data" --batch "$team_batch" --learners "$chosen_team" \
      --precision "$precision" --kernels FIXED TIMED
  done
  step fused_launch_floor 40 bench/gpu_bench launch "$small_job" --data-root "$data"
  sanitize fused_racecheck 40 racecheck '[own_kernels]'
  sanitize fused_synccheck 30 synccheck '[own_kernels]'
}

# fused_small PRECISION LEARNERS
fused_small() { teams "fused_small_$1_$2" "$small_job" "$data" --learners "$2" --precision "$1"; }

# kernel_rates NAME JOB TEAM PRECISION: times the candidates of kernels for one team.
kernel_rates() {
  step "kernel_rates_$1" 30 python3 bench/gpu/kernel_rates.py "$2" --set learners.per_device.fixed="$3" \
    --set learners.per_device.team="$3" --set training.precision="$4"
}

# The learners of a run are one team.
run_accuracy() {
  local k seed first=${run_learners[0]} first_seed=${run_seeds[0]}
  reach_large "$first" "$first_seed"
  reach_large_by_pytorch "$first_seed"
  for k in "${run_learners[@]:1}"; do reach_large "$k" "$first_seed"; done
  for seed in "${run_seeds[@]:1}"; do
    reach_large "$first" "$seed"
    reach_large_by_pytorch "$seed"
  done
  for k in "${run_learners[@]}"; do
    for seed in "${run_seeds[@]}"; do reach_mnist "$k" "$seed"; done
  done
  for seed in "${run_seeds[@]}"; do
    reach "mnist_pytorch_s$seed" 60 mnist/train-images-idx3-ubyte pytorch "$mnist_job" --target "$mnist_target" --seed "$seed"
  done
}

# reach_large LEARNERS SEED
reach_large() {
  reach "large_k$1_s$2" 240 cifar-10/data_batch_1.bin arbalest "$large_job" --target "$large_target" --learners "$1" --team "$1" --seed "$2"
}

# reach_large_by_pytorch SEED
reach_large_by_pytorch() {
  reach "large_pytorch_s$1" 240 cifar-10/data_batch_1.bin pytorch "$large_job" --target "$large_target" --mini-batch "$peer_batch" --seed "$1"
}

# reach_mnist LEARNERS SEED
reach_mnist() {
  reach "mnist_k$1_s$2" 40 mnist/train-images-idx3-ubyte arbalest "$mnist_job" --target "$mnist_target" --learners "$1" --team "$1" --seed "$2"
}

# reach NAME LIMIT FILE OPTIONS...: measures the time of one run to an accuracy (time_to_accuracy.py). FILE of the data
# must be there, as it is or compressed. A run that ends too early is lost. So it does not begin if less time is left than
# the longest run like it took: with the same name but for the seed, else with the same job.
reach() {
  local name=time_to_$1 limit=$2 file=$3 judge=report_reached longest
  shift 3
  if passed_before "$name"; then return 0; fi
  if [ ! -e "$data/$file" ] && [ ! -e "$data/$file.gz" ]; then
    record "$name" skipped '' "$data/$file is missing"
    return 0
  fi
  longest=$(longest_of "${name%_s*}_s")
  [ -n "$longest" ] || longest=$(longest_of "${name%_*_s*}_")
  if [ "${longest:-0}" -gt "$(seconds_left)" ]; then
    record "$name" skipped '' 'no time is left'
    return 0
  fi
  # A run that is stopped leaves its directory behind, which goes with $scratch.
  step "$name" "$limit" env TMPDIR="$scratch" python3 bench/gpu/time_to_accuracy.py "$@" --data-root "$data"
}

# longest_of PREFIX: prints the most seconds that a passed step with this prefix took; nothing if there is none.
longest_of() { sed -n "s/^$1[^\t]*\tpassed\t\([0-9]*\)\t.*/\1/p" "$out/steps.tsv" | sort -n | tail -n 1; }

report_reached() { sed -n 's/^accuracy: //p' "$scratch/stderr"; }

begin_out
find_cuda_libraries
require_gpu
if wanted tests; then run_tests; fi
if wanted bench; then run_benches; fi
if wanted teams; then run_teams; fi
if wanted peers; then run_peers; fi
if wanted sanitize; then run_sanitizer; fi
if wanted curves; then run_curves; fi
if wanted fused; then run_fused; fi
if wanted accuracy; then run_accuracy; fi

if command -v python3 >/dev/null; then
  python3 bench/gpu/gpu_summary.py "$out" | tee "$out/summary.md"
else
  say "python3 is not installed: the steps, without the table"
  cat "$out/steps.tsv"
fi
left=$(grep -c $'\tno time is left$' "$out/steps.tsv")
if $resumes && [ "$left" -gt 0 ]; then say "$left steps are left: call this part again with the same OUT"; fi
[[ $(cut -f 2 "$out/steps.tsv") != *failed* ]]
