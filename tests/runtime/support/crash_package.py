"""A package for crash trials: it has a hook at every stage of its life, a chart, settings, and values that its hooks change.

Each hook notes that it ran, and whether an earlier hook process is still running. ``beforeHelm`` and ``afterHelm`` derive values
from the version and the setting ``mode``, so after each change of the version or the setting, the chart is applied twice. Objects
that ``onStartup`` creates in the namespace are deleted when the package is removed. If the trial's moment is ``during N``, the
hook that writes the N-th note kills the daemon, and then waits to be killed.
"""

from pathlib import Path

from tests.packages.support.charts import write

HOOK = """\
#!/usr/bin/env bash
set -eu
if [ "${1:-}" = --config ]; then echo '{configVersion: v1, BINDING: 1}'; exit 0; fi
for pid in $(cat "$CRASH_HELD" 2>/dev/null || true); do
  case $(sed -n 's/^State:[[:space:]]*\\(.\\).*/\\1/p' "/proc/$pid/status" 2>/dev/null || true) in
    '' | Z | X) ;;
    *) echo "BINDING while $pid runs" >>"$CRASH_NOTES" ;;
  esac
done
echo BINDING >>"$CRASH_NOTES"
if [ "during $(wc -l <"$CRASH_NOTES")" = "$CRASH_AT" ]; then
  sleep 600 &
  echo $$ $! >"$CRASH_HELD"
  kill -KILL "$CRASH_DAEMON"
  wait
fi
BODY"""

PATCH = """\
jq --compact-output '{op: "add", path: "/crash/KEY", value: ("VERSION " + .crash.mode)}' "$VALUES_PATH" >"$VALUES_JSON_PATCH_PATH"
"""

LEAVE = """\
cat >"$KUBERNETES_PATCH_PATH" <<'P'
operation: CreateOrUpdate
object:
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: left, namespace: default, labels: {app.kubernetes.io/instance: app}}
  data: {version: VERSION}
P
"""

HOOKS = {
    "onStartup": LEAVE,
    "beforeHelm": PATCH.replace("KEY", "prepared"),
    "afterHelm": PATCH.replace("KEY", "seen"),
    "beforeDeleteHelm": "",
    "afterDeleteHelm": "",
}

FILES = {
    "package.yaml": "apiVersion: v1\ntype: Application\nname: crash\nversion: VERSION\n",
    "openapi/settings.yaml": "type: object\nproperties: {mode: {type: string, default: plain}}\n",
    "openapi/values.yaml": """\
x-extend: {schema: settings.yaml}
type: object
properties:
  prepared: {type: string, default: ""}
  seen: {type: string, default: ""}
  orphanResources:
    type: array
    items: {type: object, properties: {kind: {type: string}, version: {type: string}}}
    default: [{kind: ConfigMap, version: v1}]
""",
    "templates/out.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: out}
data:
  version: VERSION
  mode: {{ .Values.mode | quote }}
  prepared: {{ .Values.prepared | quote }}
  seen: {{ .Values.seen | quote }}
""",
    "templates/server.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}, annotations: {seen: {{ .Values.seen | quote }}}}
    spec: {containers: [{name: server, image: "example.com/server:VERSION"}]}
""",
}


def crash_package(folder: Path, version: str) -> Path:
    """Write this version of the package, which is named ``crash``."""
    hooks = {
        f"hooks/{binding}.sh": HOOK.replace("BODY", body).replace("BINDING", binding) for binding, body in HOOKS.items()
    }
    write(folder, {name: text.replace("VERSION", version) for name, text in (FILES | hooks).items()})
    for hook in hooks:
        (folder / hook).chmod(0o755)
    return folder
