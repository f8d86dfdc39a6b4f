#!/usr/bin/env bash
# Everything that needs a GPU, from an installed tree (cmake --install, components program and measure): tests,
# compute-sanitizer on the small ones, benchmarks, PyTorch peers, and one table of what was to be reached and what was.
#
#   bench/gpu.sh OUT [tests|bench|curves|peers|sanitizer|all]...
#
# `curves` is images/s over learners for several batch sizes; CIFAR-10 for ResNet-32 lies below $ARBALEST_DATA, else data/.
# OUT gets summary.md, results.jsonl (one object per benchmark), steps.tsv, machine.txt, log.txt and the sanitizer's
# reports. Every step has a time limit, and what is left of ARBALEST_GPU_SECONDS (540) bounds them all; a step that fails is
# reported and the rest goes on. Exit codes: 0 all is well, 1 a step failed, 2 usage, 4 there is no GPU.
set -uo pipefail

usage() {
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

[ $# -ge 1 ] || usage
case $1 in -*) usage ;; esac
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- all
for part in "$@"; do
  case $part in tests | bench | curves | peers | sanitizer | all) ;; *) usage ;; esac
done
parts=" $* "
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

deadline=$((SECONDS + ${ARBALEST_GPU_SECONDS:-540}))
rm -f "$out"/{summary.md,results.jsonl,steps.tsv,machine.txt,log.txt,sanitizer-*.txt}
touch "$out"/{results.jsonl,steps.tsv,log.txt}

say() { printf '%s\n' "$*" >&2; }

wanted() { [[ $parts == *" $1 "* || $parts == *" all "* ]]; }

# Where CUDA's libraries are only in Python packages (nvidia-cublas, nvidia-cudnn-cu13, ...), the loader is told so.
find_cuda_libraries() {
  ldd bin/arbalest | grep -q 'not found' || return 0
  local folders
  folders=$(python3 - <<'PYTHON'
import glob, os, site, sys
roots = dict.fromkeys(sys.path + site.getsitepackages() + [site.getusersitepackages()])
print(":".join(sorted({f for root in roots for f in glob.glob(os.path.join(root, "nvidia", "*", "lib"))})))
PYTHON
  )
  export LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  ldd bin/arbalest | grep 'not found' | sed 's/^/missing:/' >&2
}

describe_machine() {
  echo "date: $(date -u '+%Y-%m-%d %H:%M:%S UTC')"
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm --format=csv
  else
    echo "nvidia-smi is not installed"
  fi
  echo "CUDA_DEVICE_MAX_CONNECTIONS: ${CUDA_DEVICE_MAX_CONNECTIONS:-default}"
  bin/arbalest env
}

# record NAME STATUS SECONDS [NOTE]
record() {
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4:-}" >>"$out/steps.tsv"
  say "$(printf '%-24s %s %s%s' "$1" "$2" "${3:+after $3 s}" "${4:+: $4}")"
}

# step NAME LIMIT COMMAND...: the command's stdout and stderr go to log.txt, JSON lines of stdout to results.jsonl too.
# Where it succeeds and `judge` names a function, that one's output is the note, and its exit code decides.
judge=
step() {
  local name=$1 limit=$2 left=$((deadline - SECONDS)) start=$SECONDS status=passed code note=
  shift 2
  if [ "$left" -lt 5 ]; then
    record "$name" skipped '' 'no time is left'
    return 0
  fi
  [ "$limit" -le "$left" ] || limit=$left
  printf '\n== %s: %s\n' "$name" "$*" >>"$out/log.txt"
  timeout --kill-after=5 "$limit" "$@" >"$out/stdout" 2>"$out/stderr"
  code=$?
  cat "$out/stdout" "$out/stderr" >>"$out/log.txt"
  grep '^{"question"' "$out/stdout" >>"$out/results.jsonl"
  case $code in
    0) if [ -n "$judge" ]; then note=$("$judge" "$name") || status=failed; fi ;;
    4) status=skipped note=$(cat "$out/stdout" "$out/stderr" | sed -n 's/^skipped: //p' | head -n 1) ;;
    124 | 137) status=failed note="stopped at its limit of $limit s${judge:+: $("$judge" "$name")}" ;;
    *) status=failed note="exit code $code: $(cat "$out/stdout" "$out/stderr" | tail -n 1 | cut -c 1-160)" ;;
  esac
  rm -f "$out/stdout" "$out/stderr"
  record "$name" "$status" $((SECONDS - start)) "$note"
}

run_tests() {
  local judge=
  step operators 90 tests/gpu_test '~[training]'
  judge=report_difference
  step first_losses 60 tests/gpu_test '[first_losses]'
  judge=
  step repeatability 60 tests/gpu_test '[repeatability]~[several_gpus]'
  step training 60 tests/gpu_test '[training]~[first_losses]~[repeatability]~[several_gpus]'
  step several_gpus 60 tests/gpu_test '[several_gpus]'
  judge=report_accuracy
  rm -rf "$out/run"
  step train_lenet 60 bin/arbalest train configs/lenet-digits.txtpb --set devices=cuda:0 --quiet --output "$out/run"
  rm -rf "$out/run"
}

report_difference() { sed -n '/^largest difference/p' "$out/stdout"; }

report_accuracy() {
  sed -n 's/^ *"\(status\|test_accuracy\|time_to_accuracy_seconds\|images_per_second\)": \(.*[^,]\),*$/\1 \2/p' \
    "$out/run/summary.json" | paste -sd ' '
  grep -q '"target_reached"' "$out/run/summary.json"
}

run_benches() {
  step launch_floor 60 bench/gpu_bench launch
  step learners 90 bench/gpu_bench learners
  # Streams share hardware queues, 8 unless the driver is asked for more.
  step learners_32_queues 90 env CUDA_DEVICE_MAX_CONNECTIONS=32 bench/gpu_bench learners --no-all-reduce
  for precision in TF32 BF16; do
    step "learners_$precision" 60 bench/gpu_bench learners --no-all-reduce --precision "$precision" --learners 1 8 16 32
  done
}

# LeNet with 32 examples is among the benches.
run_curves() {
  local batch curve=(bench/gpu_bench learners --no-all-reduce --turns 7)
  for batch in 16 64; do step "lenet_$batch" 60 "${curve[@]}" --batch "$batch"; done
  for batch in 16 32 64 128; do
    step "resnet32_$batch" 120 "${curve[@]}" configs/resnet32-cifar10.txtpb --batch "$batch"
  done
}

run_peers() {
  local pick=(python3 bench/peers/pytorch_peer.py pick --model lenet --device cuda --synthetic --steps 2000)
  step peers 120 "${pick[@]}" --no-compile
  step compiled_peers 110 "${pick[@]}" --only compiled
}

# Findings in cuDNN's and cuBLAS' kernels are counted and not judged.
count_findings() {
  local report=$out/sanitizer-$1.txt ours all
  all=$(sed -n 's/^=.*SUMMARY: \([0-9]*\) .*/\1/p' "$report" | tail -n 1)
  ours=$(grep -cE '(^=+ +at | access at ).*arbalest::' "$report")
  echo "${all:-no summary of the} findings, $ours of them in kernels of ours"
  [ -n "$all" ] && [ "$ours" -eq 0 ]
}

run_sanitizer() {
  local tool judge=count_findings
  for tool in memcheck racecheck initcheck; do
    if command -v compute-sanitizer >/dev/null; then
      step "$tool" 110 compute-sanitizer --tool "$tool" --show-backtrace no --print-limit 200 \
        --log-file "$out/sanitizer-$tool.txt" tests/gpu_test '~[training]'
    else
      record "$tool" skipped '' 'compute-sanitizer is not installed'
    fi
  done
}

find_cuda_libraries
describe_machine >"$out/machine.txt" 2>&1
cat "$out/machine.txt" >&2
if ! bin/arbalest devices 2>/dev/null | grep -q 'cuda:0'; then
  say "skipped: $(bin/arbalest env | sed -n 's/^cuda: //p')"
  exit 4
fi
if wanted tests; then run_tests; fi
if wanted bench; then run_benches; fi
if wanted peers; then run_peers; fi
if wanted sanitizer; then run_sanitizer; fi
if wanted curves; then run_curves; fi

if command -v python3 >/dev/null; then
  python3 bench/gpu_summary.py "$out" | tee "$out/summary.md"
else
  say "python3 is not installed: the steps, without the table"
  cat "$out/steps.tsv"
fi
! grep -q $'\tfailed\t' "$out/steps.tsv"
