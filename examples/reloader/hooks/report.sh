#!/usr/bin/env bash
# Counts the watched ConfigMaps every minute, writes a report, and sets the number in the values, so that the chart can use it.
# The report is deleted with the package.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
    cat <<'CONFIG'
configVersion: v1
onStartup: 10
afterDeleteHelm: 10
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

report=$(jq -r '.reloader.reportName' "$VALUES_PATH")

if jq -e 'any(.binding == "afterDeleteHelm")' "$BINDING_CONTEXT_PATH" >/dev/null; then
    jq -n --arg name "$report" --arg namespace "$APPLICATION_NAMESPACE" \
        '{operation: "Delete", apiVersion: "v1", kind: "ConfigMap", name: $name, namespace: $namespace}' >"$KUBERNETES_PATCH_PATH"
    exit 0
fi

# At the start there are no snapshots yet, so the first report counts none.
names=$(jq -c '[.[] | (.snapshots.watched // [])[].filterResult] | unique' "$BINDING_CONTEXT_PATH")
count=$(jq 'length' <<<"$names")
echo "$count ConfigMaps are watched"

jq -n --arg name "$report" --arg namespace "$APPLICATION_NAMESPACE" --argjson names "$names" '{
    operation: "CreateOrUpdate",
    object: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: $name, namespace: $namespace},
             data: {watched: ($names | length | tostring), names: ($names | join(","))}}
}' >"$KUBERNETES_PATCH_PATH"
jq -n --argjson count "$count" '[{op: "add", path: "/reloader/internal/watched", value: $count}]' >"$VALUES_JSON_PATCH_PATH"
