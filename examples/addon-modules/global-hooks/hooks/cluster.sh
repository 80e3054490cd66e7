#!/usr/bin/env bash
# Sets the global value clusterName, which all modules can use.
set -euo pipefail

if [[ "${1:-}" == --config ]]; then
  echo '{"configVersion": "v1", "beforeAll": 10}'
  exit 0
fi

name=$(jq -r '.global.domain | split(".") | .[0]' "$VALUES_PATH")
jq -nc --arg name "$name" '{op: "add", path: "/global/clusterName", value: $name}' >"$VALUES_JSON_PATCH_PATH"
