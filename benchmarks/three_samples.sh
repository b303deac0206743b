#!/usr/bin/env bash
# Search on samples with a real GPU and keep what a reader needs to check the result.
# usage: benchmarks/three_samples.sh OUT BUDGET SAMPLE...     e.g. benchmarks/three_samples.sh /tmp/out 3m softmax rms_norm mat_vec
# For each sample: NAME.json (the result), NAME.log (the story with times), NAME.bundle (git clone it); and machine.txt.
set -uo pipefail
out=$1 budget=$2
shift 2
mkdir -p "$out"
kbtui=(python3 -m kbtui)
{
  date -u +%FT%TZ
  nvidia-smi --query-gpu=name,uuid,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit --format=csv
  python3 -c 'import sys, torch, triton; print("python", sys.version.split()[0], "torch", torch.__version__, "cuda", torch.version.cuda, "triton", triton.__version__)'
  nproc
} >"$out/machine.txt"
for sample in "$@"; do
  workspace=$(mktemp -d)
  "${kbtui[@]}" run "$sample" --headless --budget "$budget" --json -w "$workspace" >"$out/$sample.json" 2>"$out/$sample.log"
  echo "$sample: exit $?" | tee -a "$out/machine.txt"
  git --git-dir="$workspace/kernels.git" fsck --strict --no-dangling >>"$out/$sample.log" 2>&1 && echo "fsck clean" >>"$out/$sample.log"
  git --git-dir="$workspace/kernels.git" bundle create "$out/$sample.bundle" --all 2>>"$out/$sample.log"
  tar czf "$out/$sample-artifacts.tgz" -C "$workspace" artifacts engine.log 2>/dev/null || tar czf "$out/$sample-artifacts.tgz" -C "$workspace" artifacts
done
