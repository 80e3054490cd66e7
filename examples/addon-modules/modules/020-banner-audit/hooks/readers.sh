#!/usr/bin/env bash
# Who may read the banner: every namespace with the label.
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
