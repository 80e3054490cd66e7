#!/usr/bin/env bash
#
# The library that hooks in bash source: `source /shell_lib.sh` at the top, `hook::run "$@"` at the bottom, `__config__` and
# handlers in between. Names and meanings are those of shell-operator and addon-operator; the code is
# Wharfinger's own.
#
# This file makes a hook strict: the first command that fails ends the hook and is reported. The functions for hooks are in
# frameworks/shell beside this file; every *.sh there is sourced, including files that users have added.
#
# Needs bash 4.4 or newer, and jq.

if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  printf 'shell_lib.sh: bash %s is too old, 4.4 or newer is needed\n' "$BASH_VERSION" >&2
  exit 1
fi

set -o errexit -o errtrace -o nounset -o pipefail
shopt -s inherit_errexit failglob

# shell::backtrace STATUS COMMAND: print what failed, and the stack of calls, the innermost first.
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

# Installed at the root this is /shell_lib.sh, and its folder is "". Not in a function, so fragments declare globals.
shell__folder=.
[[ "${BASH_SOURCE[0]}" != */* ]] || shell__folder="${BASH_SOURCE[0]%/*}"
for shell__fragment in "$shell__folder"/frameworks/shell/*.sh; do
  # shellcheck source=/dev/null
  source "$shell__fragment"
done
unset -v shell__folder shell__fragment
