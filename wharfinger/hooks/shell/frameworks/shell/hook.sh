# shellcheck shell=bash
#
# Running a hook: --config prints its configuration; otherwise each context is handled by the function named after it.
#
# The program below lists the functions that may handle a context; the first one that exists handles it. jq is
# started once for all contexts.

# The limits of the cache: characters of the file of contexts, and number of values.
declare -g hook__small=65536 hook__values=1000

# Prints lines for each context, each with a letter for its kind: b and the binding, h and the name of a function; if $small, also
# t and the context. Then, if $small, a line k with index and path for each value, and a line v with the value
# (frameworks/shell/context.sh). Values that do not fit into a line are left out, and numbers that jq may print in several ways.
declare -g hook__program='
def text: if . == null then "" else tostring | split("\n") | join(" ") end;
def version: text | gsub("/"; ".");
def kubernetes($events): "__on_kubernetes::\(.binding | text)" | ($events[] as $event | "\(.)::\($event)"), .;
def candidates:
  (.binding | text) as $name
  | if $name == "onStartup" then "__on_startup"
    elif .type == "Synchronization" then kubernetes(["synchronization"])
    elif .type == "Event" then
      if .watchEvent == "Added" then kubernetes(["added", "added_or_modified"])
      elif .watchEvent == "Modified" then kubernetes(["modified", "added_or_modified"])
      elif .watchEvent == "Deleted" then kubernetes(["deleted"])
      else empty end
    elif .type == "Group" then "__on_group::\(.groupName | text)"
    elif .type == "Schedule" then "__on_schedule::\($name)"
    elif .type == "Validating" then "__on_validating::\($name)"
    elif .type == "Mutating" then "__on_mutating::\($name)"
    elif .type == "Conversion" then
      "__on_conversion::\($name)::\(.fromVersion | version)::\(.toVersion | version)", "__on_conversion::\($name)"
    else empty end;
def plain:
  if type == "string" then (if tojson | contains("\\n") or contains("\\u0000") then empty else "s" + . end)
  elif type == "number" then (if . == floor and . > -1e15 and . < 1e15 then "j" + tojson else empty end)
  elif type == "object" or type == "array" then "c"
  else "j" + tojson end;
if type != "array" then error("binding contexts are a list, not " + type) else . end
| (.[] | "b" + (.binding | text), "h" + candidates, "h__main__", if $small then "t" + tojson else empty end),
  if $small then
    limit($values; path(.[] | ..) as $path | (getpath($path) | plain) as $value | [$path, $value]) as [$path, $value]
    | "k\($path[0]) " + ($path[1:] | tojson), "v" + $value
  else empty end
'

# hook::run "$@": the last line of every hook.
#
# A handler sees the variables of its callers, so they have names here that a hook does not use.
hook::run() {
  if [[ "${1:-}" == --config ]]; then
    __config__
    return
  fi
  local -a hook__bindings=() hook__candidates=()
  local hook__index hook__on_error
  hook::_read_contexts
  # The shell that runs a handler reports where it failed; this one ends with the same status and need not report it again.
  hook__on_error="$(trap -p ERR)"
  for hook__index in "${!hook__bindings[@]}"; do
    export BINDING_CONTEXT_CURRENT_INDEX="$hook__index" BINDING_CONTEXT_CURRENT_BINDING="${hook__bindings[hook__index]}"
    trap - ERR
    (
      eval "$hook__on_error"
      hook::_handle "${hook__candidates[hook__index]}"
    )
    eval "$hook__on_error"
  done
}

# Print the first function of those in $1, one in each line, that the hook has.
hook::_handle() {
  local -a hook__names
  local hook__name
  mapfile -t hook__names <<<"$1"
  for hook__name in "${hook__names[@]}"; do
    if declare -F "$hook__name" >/dev/null; then
      "$hook__name"
      return
    fi
  done
  printf 'ERROR: the hook has no function for the binding %s; it may be one of:\n%s\n' \
    "$BINDING_CONTEXT_CURRENT_BINDING" "$1" >&2
  return 1
}

# Fill `hook__bindings` and `hook__candidates` (functions, one in each line) for every context, and the cache of context.sh.
hook::_read_contexts() {
  local -
  set -o noglob
  local IFS=$'\n' small=true printed line index=-1 keys=""
  local -a lines
  if read -r -N "$((hook__small + 1))" printed <"${BINDING_CONTEXT_PATH:?"a hook is run with a file of contexts"}"; then
    small=false
  fi
  printed="$(context::global::jq --raw-output --argjson small "$small" --argjson values "$hook__values" "$hook__program")"
  # Split in memory, because read and mapfile read single bytes from a pipe.
  # shellcheck disable=SC2206
  lines=($printed)
  context__texts=() context__values=() context__file="$BINDING_CONTEXT_PATH"
  for line in "${lines[@]}"; do
    case "$line" in
      b*) index=$((index + 1)) hook__bindings[index]="${line:1}" hook__candidates[index]="" ;;
      h*) hook__candidates[index]+="${hook__candidates[index]:+$'\n'}${line:1}" ;;
      t*) context__texts["$index"]="${line:1}" ;;
      k*) keys="${line:1}" ;;
      v*) context__values["$keys"]="${line:1}" ;;
    esac
  done
}
