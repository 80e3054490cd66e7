#!/usr/bin/env bash
#
# The library that hooks in bash source: `source /shell_lib.sh` at the top, `hook::run "$@"` at the bottom, `__config__` and
# handlers in between. Names and meanings are those that hooks for shell-operator and addon-operator know; the code is
# Wharfinger's own.
#
# What is here makes a hook strict: the first command that fails ends it, and it is said where. What hooks call is in
# frameworks/shell beside this file; every *.sh there is sourced, also one that somebody has added.
#
# Needs bash 4.4 or newer, and jq.

if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  printf 'shell_lib.sh: bash %s is too old, 4.4 or newer is needed\n' "$BASH_VERSION" >&2
  exit 1
fi

set -o errexit -o errtrace -o nounset -o pipefail
shopt -s inherit_errexit failglob

# shell::backtrace STATUS COMMAND: what failed, and how it was come to, the innermost call first.
shell::backtrace() {
  local depth
  {
    printf 'ERROR: exit status %s from: %s\n' "$1" "$2"
    for ((depth = 1; depth < ${#FUNCNAME[@]}; depth++)); do
      printf '  at %s (%s:%s)\n' "${FUNCNAME[depth]}" "${BASH_SOURCE[depth]}" "${BASH_LINENO[depth - 1]}"
    done
  } >&2
}

trap 'shell::backtrace "$?" "$BASH_COMMAND"' ERR

# Installed at the root this is /shell_lib.sh, and its folder "". Not in a function: what fragments declare is global.
shell__folder=.
[[ "${BASH_SOURCE[0]}" != */* ]] || shell__folder="${BASH_SOURCE[0]%/*}"
for shell__fragment in "$shell__folder"/frameworks/shell/*.sh; do
  # shellcheck source=/dev/null
  source "$shell__fragment"
done
unset -v shell__folder shell__fragment
