#!/bin/sh
# Sets up everything that building, testing and the demo need, on a Debian machine with Python >= 3.11, git and make.
# Idempotent: what is there is kept. Run by `make setup`; nothing is installed outside the checkout except Debian packages,
# and those only as root and only if missing.
set -eu
cd "$(dirname "$0")/.."
say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

python=${PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 || fail "no $python; install Python 3.11 or newer, or set PYTHON=/path/to/python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old; Python 3.11 or newer is needed (PYTHON=/path/to/python chooses one)"

# --- Debian packages -------------------------------------------------------------------------------------------------
missing=""
command -v docker-registry >/dev/null 2>&1 || missing="$missing docker-registry"
command -v systemd-analyze >/dev/null 2>&1 || missing="$missing systemd"
command -v bash >/dev/null 2>&1 || missing="$missing bash"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    missing="$missing python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
if [ -n "$missing" ]; then
    command -v apt-get >/dev/null 2>&1 || fail "missing:$missing (no apt-get here; install them by hand)"
    if [ "$(id -u)" = 0 ]; then sudo=""
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo="sudo"
    else fail "missing:$missing; run as root: apt-get install$missing"; fi
    say "installing Debian packages:$missing"
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get update -qq >/dev/null || fail "apt-get update failed"
    # shellcheck disable=SC2086
    $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null || fail "apt-get install$missing failed"
fi

# --- virtual environment ---------------------------------------------------------------------------------------------
stamp=.venv/.set-up
want=$(cat constraints.txt pyproject.toml | cksum)
if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
    say "making .venv"
    [ -x .venv/bin/python ] || "$python" -m venv .venv || fail "could not make a virtual environment"
    PIP_CONSTRAINT="$PWD/constraints.txt" .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        -c constraints.txt -e '.[dev]' || fail "pip could not install what constraints.txt names"
    printf '%s' "$want" >"$stamp"
fi

# --- helm and kubectl ------------------------------------------------------------------------------------------------
.venv/bin/python deploy/toolchain.py || exit 1
say "ready"
