# shellcheck shell=bash
#
# Functions with which a hook reads the binding contexts in $BINDING_CONTEXT_PATH.
#
# A PATH is keys with dots between them: `object.metadata.name`, `objects.0.filterResult`, `labels."app.kubernetes.io/name"`. A key
# of digits is the index into a list; a key in quotes, double or single, is used literally. Any other form, such as
# `objects[].filterResult`, is a path for jq, in which keys with a dash need no quotes either.
#
# Starting jq costs more than everything else here. So hook::run reads the contexts with jq once and, if the file is small,
# caches the values: a look-up that finds its value in the cache starts no process. A look-up that misses asks jq.
# So the results do not depend on the size of the cache, only on the file not changing while the hook runs.

# INDEX -> the context, as one line of JSON.
declare -gA context__texts=()
# INDEX and, after a space, the path as JSON -> its value: s and a string, j and the JSON of an integer, true, false or null, c for a container.
declare -gA context__values=()
# The file that the two caches belong to.
declare -g context__file=""

# context::global::jq ARGS…: jq over the list of all contexts.
context::global::jq() {
  jq "$@" "${BINDING_CONTEXT_PATH:?"only a hook that is run has contexts; with --config there are none"}"
}

# context::jq ARGS…: jq over the context that is being handled.
context::jq() {
  local index="${BINDING_CONTEXT_CURRENT_INDEX:?"it is set by hook::run; before that no context is the current one"}"
  if context::_remembered && [[ -n "${context__texts["$index"]-}" ]]; then
    jq "$@" <<<"${context__texts["$index"]}"
  else
    local -a ended=(0 0)
    context::global::jq --compact-output ".[$index]" | jq "$@" || ended=("${PIPESTATUS[@]}")
    # A jq that reads nothing (--null-input), or not to the end, breaks the pipe of the other one: that is not a failure.
    ((ended[0] != 141)) || ended[0]=0
    return "$((ended[1] ? ended[1] : ended[0]))"
  fi
}

# context::get [--required] PATH: print the value, as `jq -r` does; null if it is missing. With --required that is a failure.
context::get() {
  local required="" keys="" path="" found=""
  if [[ "${1:-}" == --required ]]; then
    required=yes
    shift
  fi
  context::_look_up "${1:-}"
  if [[ "$found" == [sj]* ]]; then
    printf '%s\n' "${found:1}"
  elif [[ -z "$required" ]]; then
    context::jq --raw-output "$path"
  else
    context::jq --raw-output --arg asked "${1:-}" \
      "if $(context::_exists) then $path else error(\"context::get: \" + \$asked + \" is required and not there\") end"
  fi
}

# context::has PATH: succeed if the path exists, whatever its value.
context::has() {
  local keys="" path="" found=""
  context::_look_up "${1:-}"
  [[ -n "$found" ]] || context::jq --exit-status "try $(context::_exists) catch false" >/dev/null
}

# context::is_true, context::is_false, context::is_null PATH: succeed if the value is that; a missing value is null.
context::is_true() { context::_is true "${1:-}"; }
context::is_false() { context::_is false "${1:-}"; }
context::is_null() { context::_is null "${1:-}"; }

context::_is() {
  local keys="" path="" found=""
  context::_look_up "$2"
  if [[ -n "$found" ]]; then
    [[ "$found" == "j$1" ]]
  else
    context::jq --exit-status "(try ($path) catch \"\") == $1" >/dev/null
  fi
}

# The jq program that tells whether $path exists: its last key is in its parent.
context::_exists() {
  printf '(. as $all | any(path(%s); . as $p | $p == [] or ($all | getpath($p[:-1]) | . != null and has($p[-1]))))' "$path"
}

# Set from a PATH: `path`, the program that reads it; `keys`, the path as JSON, "" if it is one for jq; `found`, the cached value.
context::_look_up() {
  context::_parse "$1"
  if [[ -n "$keys" ]] && context::_remembered; then
    found="${context__values["${BINDING_CONTEXT_CURRENT_INDEX:-} $keys"]-}"
  fi
}

context::_parse() {
  local rest="${1#.}" key
  local bare='^([[:alnum:]_-]+)(.*)$' double='^"([^"]*)"(.*)$' single="^'([^']*)'(.*)\$"
  while [[ -n "$rest" ]]; do
    if [[ "$rest" =~ $bare ]]; then
      key="${BASH_REMATCH[1]}"
      [[ "$key" != *[!0-9]* ]] || key="\"$key\""
    elif [[ "$rest" =~ $double || "$rest" =~ $single ]]; then
      key="${BASH_REMATCH[1]//\\/\\\\}"
      key="\"${key//\"/\\\"}\""
    else
      break
    fi
    rest="${BASH_REMATCH[2]}"
    [[ -z "$rest" || "$rest" == .?* ]] || break
    keys+="${keys:+,}$key"
    rest="${rest#.}"
  done
  if [[ -n "$rest" ]]; then
    keys=""
    path="$(context::_quoted ".${1#.}")"
  else
    keys="[$keys]"
    path="getpath($keys)"
  fi
}

# A path for jq, with double quotes around keys that have single ones or a dash: `objects[0].with-dash`.
context::_quoted() {
  local rest="${1//\'/\"}" quoted=""
  local text='^("[^"]*")(.*)$' word='^([^."]+)(.*)$' dashed='^([[:alnum:]_]+(-[[:alnum:]_]+)+)([][|? ].*)?$'
  while [[ -n "$rest" ]]; do
    if [[ "$rest" =~ $text ]]; then
      quoted+="${BASH_REMATCH[1]}" rest="${BASH_REMATCH[2]}"
    elif [[ "$rest" =~ $word ]]; then
      local one="${BASH_REMATCH[1]}"
      rest="${BASH_REMATCH[2]}"
      [[ "$quoted" != *. || ! "$one" =~ $dashed ]] || one="\"${BASH_REMATCH[1]}\"${BASH_REMATCH[3]}"
      quoted+="$one"
    else
      quoted+="${rest:0:1}" rest="${rest:1}"
    fi
  done
  printf '%s' "$quoted"
}

context::_remembered() {
  [[ -n "$context__file" && "$context__file" == "${BINDING_CONTEXT_PATH:-}" ]]
}
