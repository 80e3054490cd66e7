#!/usr/bin/env bash
# Composes the text of the banner before the chart is rendered.
set -euo pipefail

if [[ "${1:-}" == --config ]]; then
  echo '{"configVersion": "v1", "beforeHelm": 10}'
  exit 0
fi

line=$(jq -r '"\(.banner.internal.frame) \(.banner.greeting) to \(.global.domain // "nowhere")"' "$VALUES_PATH")
jq -nc --arg line "$line" '{op: "add", path: "/banner/internal/line", value: $line}' >"$VALUES_JSON_PATCH_PATH"
