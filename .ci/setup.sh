#!/usr/bin/env bash
# Make .venv hold what kbtui needs, from whatever state it is in. Does nothing where that is done.
# usage: .ci/setup.sh run|dev    (dev adds the tools that tests and checks use)
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-run}
venv=.venv
torch_cpu_index=https://download.pytorch.org/whl/cpu

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 3; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11 or later is needed, found $(python3 --version 2>/dev/null || echo none); install it, or name one with PYTHON=..."
}

has_gpu() { [ -e /proc/driver/nvidia/version ] && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }

wanted() { # what the stamp must hold: any change here sets up again
  cat pyproject.toml .ci/constraints/*.txt .ci/setup.sh kbtui/__init__.py | sha256sum | cut -d' ' -f1
  printf '%s %s\n' "$hardware" "$PWD"
}

is_done() { # dev holds all of run
  local stamp
  for stamp in "$venv/.stamp-$mode" "$venv/.stamp-dev"; do
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && [ -x "$venv/bin/kbtui" ] && return 0
  done
  return 1
}

make_venv() {
  # An install that was cut short can leave a package that pip believes whole: begin again.
  if [ -e "$venv/.installing" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1 || ! new_enough "$venv/bin/python"; then
    rm -rf "$venv"
    "$python" -m venv "$venv" 2>/dev/null || {
      rm -rf "$venv"
      die "$python cannot make a virtual environment; on Debian: apt-get install python3-venv"
    }
  fi
}

pip_install() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
}

torch_from_cpu_index() { # where the indexes that pip is configured with have no CPU build
  pip_install --no-deps --retries 1 --index-url "$torch_cpu_index" -c .ci/constraints/cpu.txt torch
}

install() {
  local what=. constraints=(-c ".ci/constraints/$hardware.txt")
  [ "$mode" = dev ] && what='.[dev]' && constraints+=(-c .ci/constraints/dev.txt)
  if [ "$hardware" = gpu ]; then
    pip_install "${constraints[@]}" -e "$what"
  else
    pip_install "${constraints[@]}" -e "$what" 2>"$venv/.first-try" ||
      { torch_from_cpu_index && pip_install "${constraints[@]}" -e "$what"; } || {
        cat "$venv/.first-try" >&2
        die "installing failed; check the network, then run make again"
      }
  fi
}

exec 9<"$0"
command -v flock >/dev/null && flock 9 # two makes at once take turns
hardware=cpu
has_gpu && hardware=gpu
want=$(wanted)
is_done && exit 0
python=$(find_python) || exit 3
say "making $venv for $([ "$hardware" = gpu ] && echo 'an NVIDIA GPU' || echo 'a machine without a GPU') ($mode); this takes a minute"
make_venv
: >"$venv/.installing"
rm -f "$venv"/.stamp-*
install
rm -f "$venv/.installing" "$venv/.first-try"
printf '%s\n' "$want" >"$venv/.stamp-$mode"
say "done"
