#!/usr/bin/env bash
# Lists the readers of the banner: all namespaces with the label banner=reads.
set -euo pipefail

if [[ "${1:-}" == --config ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: readers
  apiVersion: v1
  kind: Namespace
  labelSelector:
    matchLabels: {banner: reads}
  jqFilter: .metadata.name
  keepFullObjectsInMemory: false
  group: readers
CONFIG
  exit 0
fi

readers=$(jq -c '[.[-1].snapshots.readers[].filterResult] | sort' "$BINDING_CONTEXT_PATH")
jq -nc --argjson readers "$readers" '{op: "add", path: "/bannerAudit/readers", value: $readers}' >"$VALUES_JSON_PATCH_PATH"
