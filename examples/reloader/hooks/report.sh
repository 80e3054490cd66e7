#!/usr/bin/env bash
# Every minute: counts the ConfigMaps that are watched, writes a report, and keeps the number in the values, so that what the
# package installs shows it, too.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
    cat <<'CONFIG'
configVersion: v1
onStartup: 10
schedule:
  - name: report
    crontab: "* * * * *"
    includeSnapshotsFrom: [watched]
kubernetes:
  - name: watched
    apiVersion: v1
    kind: ConfigMap
    labelSelector:
      matchLabels: {wharfinger.dev/reload: "true"}
    jqFilter: '.metadata.name'
    keepFullObjectsInMemory: false
    executeHookOnEvent: []
    executeHookOnSynchronization: false
CONFIG
    exit 0
fi

# At the start there is nothing to count yet: the first report says so.
names=$(jq -c '[.[] | (.snapshots.watched // [])[].filterResult] | unique' "$BINDING_CONTEXT_PATH")
count=$(jq 'length' <<<"$names")
report=$(jq -r '.reloader.reportName' "$VALUES_PATH")
echo "$count ConfigMaps are watched"

jq -n --arg name "$report" --arg namespace "$APPLICATION_NAMESPACE" --argjson names "$names" '{
    operation: "CreateOrUpdate",
    object: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: $name, namespace: $namespace},
             data: {watched: ($names | length | tostring), names: ($names | join(","))}}
}' >"$KUBERNETES_PATCH_PATH"
jq -n --argjson count "$count" '[{op: "add", path: "/reloader/internal/watched", value: $count}]' >"$VALUES_JSON_PATCH_PATH"
