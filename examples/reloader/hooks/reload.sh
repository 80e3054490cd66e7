#!/usr/bin/env bash
# Rolls the Deployments that a ConfigMap names in its annotation wharfinger.dev/reload-targets (names, separated by commas)
# whenever its data changes: the pod template gets the data's checksum as an annotation.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
    cat <<'CONFIG'
configVersion: v1
kubernetes:
  - name: configmaps
    apiVersion: v1
    kind: ConfigMap
    labelSelector:
      matchLabels: {wharfinger.dev/reload: "true"}
    jqFilter: '{name: .metadata.name, namespace: .metadata.namespace, data: .data, targets: .metadata.annotations["wharfinger.dev/reload-targets"]}'
    keepFullObjectsInMemory: false
CONFIG
    exit 0
fi

max_targets=$(jq -r '.reloader.maxTargets' "$VALUES_PATH")

# One line for each ConfigMap: at first for all existing ones, then for each changed one.
jq -c '.[] | if .type == "Synchronization" then .objects[] else select(.watchEvent != "Deleted") end | .filterResult' \
    "$BINDING_CONTEXT_PATH" |
while read -r configmap; do
    name=$(jq -r '.name' <<<"$configmap")
    checksum=$(jq -cS '.data' <<<"$configmap" | sha256sum | cut -d' ' -f1)
    targets=$(jq -r --argjson max "$max_targets" '(.targets // "") | split(",") | map(select(. != "")) | .[:$max] | .[]' <<<"$configmap")
    echo "ConfigMap $name has checksum ${checksum:0:12}; Deployments to roll: ${targets//$'\n'/ }"
    for target in $targets; do
        jq -n --argjson configmap "$configmap" --arg target "$target" --arg key "reload.wharfinger.dev/$name" --arg checksum "$checksum" '{
            operation: "MergePatch", apiVersion: "apps/v1", kind: "Deployment",
            namespace: $configmap.namespace, name: $target, ignoreMissingObject: true,
            mergePatch: {spec: {template: {metadata: {annotations: {($key): $checksum}}}}}
        }' >>"$KUBERNETES_PATCH_PATH"
    done
done
