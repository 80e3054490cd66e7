#!/bin/sh
# Install everything that building, testing and the demo need, on a Debian machine with Python >= 3.11, git and make.
# Run by `make setup`, as often as needed: working parts are kept, and incomplete ones are made again. Only Debian packages
# are installed outside the checkout, if they are missing and if root (or sudo without a password) is available. Without
# them the script continues, and reports the missing packages; it only fails if Python cannot make virtual environments.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

python=${PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 || fail "no $python; install Python 3.11 or newer, or set PYTHON=/path/to/python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old; Python 3.11 or newer is needed (PYTHON=/path/to/python chooses one)"

# --- Debian packages -------------------------------------------------------------------------------------------------
missing_packages() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        "$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    command -v docker-registry >/dev/null 2>&1 || echo docker-registry
    command -v systemd-analyze >/dev/null 2>&1 || echo systemd
    command -v openssl >/dev/null 2>&1 || echo openssl
    command -v bash >/dev/null 2>&1 || echo bash
    command -v jq >/dev/null 2>&1 || echo jq
    command -v bwrap >/dev/null 2>&1 || echo bubblewrap
    command -v zsh >/dev/null 2>&1 || echo zsh
    command -v fish >/dev/null 2>&1 || echo fish
    # 350 MB, for the tests of the page of `wharfinger dashboard`: only `make test-full` asks for it.
    [ "${WHARFINGER_TEST_FULL:-}" != 1 ] || command -v chromium >/dev/null 2>&1 || echo chromium
}

missing=$(missing_packages | tr '\n' ' ')
missing=${missing% }
if [ -n "$missing" ] && command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then as_root="env"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then as_root="sudo -n env"
    else as_root=""; fi
    if [ -n "$as_root" ]; then
        say "installing Debian packages: $missing"
        apt="$as_root DEBIAN_FRONTEND=noninteractive apt-get -qq"
        $apt update </dev/null >/dev/null || say "warning: apt-get update failed"
        for package in $missing; do # one by one, so that an unavailable package does not prevent the others
            $apt install -y --no-install-recommends "$package" </dev/null >/dev/null ||
                say "warning: apt-get install $package failed"
        done
        missing=$(missing_packages | tr '\n' ' ')
        missing=${missing% }
    fi
fi
remedy="as root: apt-get update && apt-get install --no-install-recommends $missing"
case "$missing " in
    *-venv\ *) fail "$python cannot make virtual environments (no venv or ensurepip); $remedy" ;;
esac

# --- virtual environment ---------------------------------------------------------------------------------------------
# pip is the last part of a new environment, and fails once the environment's Python is gone. So it shows a working one.
stamp=.venv/.set-up
want=$(cat constraints.txt pyproject.toml | cksum)
works() { .venv/bin/python -m pip --version >/dev/null 2>&1; }
if ! works || [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
    say "making .venv"
    works || "$python" -m venv --clear .venv || fail "could not make a virtual environment"
    # The path is relative, because pip splits PIP_CONSTRAINT at spaces.
    PIP_CONSTRAINT=constraints.txt .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        -c constraints.txt -e '.[dev,embedded,mcp,otel,dashboard]' ||
        fail "pip could not install the packages of constraints.txt; run \`rm -rf .venv\` and try again"
    printf '%s' "$want" >"$stamp"
fi

# --- helm and kubectl ------------------------------------------------------------------------------------------------
.venv/bin/python deploy/toolchain.py || exit 1

if [ -n "$missing" ]; then
    say "warning: not installed: $missing; the demo and the tests that need them will report this"
    say "warning: $remedy"
fi
say "ready"
