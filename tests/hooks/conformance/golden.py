"""Hooks with the behavior of some published examples, and helpers that run them as the daemon does."""

import os
from collections.abc import Sequence
from pathlib import Path

from tests.hooks.support.scripts import write_hook
from tests.hooks.support.shell_hooks import write_shell_hook
from wharfinger.hooks import shell_library
from wharfinger.hooks.running.config_reader import ProcessConfigReader
from wharfinger.hooks.running.discovery import Hook, read_hook
from wharfinger.hooks.running.hook_files import HookFile
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.runner import HookOutcome, HookRun
from wharfinger.hooks.watching.context_file import Context
from wharfinger.process.command import Limits

WALL_S = 60.0
MAX_OUTPUT = 1_000_000

NAMESPACES = r"""#!/usr/bin/env bash
if [[ "${1:-}" == --config ]]; then
  # BINDING_CONTEXT_PATH is unset here, so jq reads standard input, which must be empty.
  jq -r '.[0].binding' $BINDING_CONTEXT_PATH
  cat <<'END'
configVersion: v1
kubernetes:
- name: labels
  apiVersion: v1
  kind: Namespace
  executeHookOnEvent: [Modified]
  jqFilter: .metadata.labels
- {name: gone, apiVersion: v1, kind: Namespace, executeHookOnEvent: [Deleted]}
END
  exit
fi
count=$(jq length "$BINDING_CONTEXT_PATH")
for ((index = 0; index < count; index++)); do
  binding=$(jq -r ".[$index].binding" "$BINDING_CONTEXT_PATH")
  type=$(jq -r ".[$index].type" "$BINDING_CONTEXT_PATH")
  [[ $type == Event ]] || continue
  name=$(jq -r ".[$index].object.metadata.name" "$BINDING_CONTEXT_PATH")
  case $binding in
    labels) echo "Namespace $name labels were modified" ;;
    gone) echo "Namespace $name was deleted" ;;
  esac
done
"""
"""A hook with two bindings that iterates over its contexts without the library."""

RATE = """
__config__() {
  cat <<'END'
configVersion: v1
settings: {executionMinInterval: 3s, executionBurst: 1}
kubernetes: [{name: crontabs, kind: ct, executeHookOnSynchronization: false}]
END
}
__main__() {
  [[ $BINDING_CONTEXT_CURRENT_INDEX == 0 ]] || return 0
  context::global::jq -r '"RateLimitedHook binding contexts: \\(length)"'
}
"""

VALIDATING = """
__config__() {
  cat <<'END'
configVersion: v1
kubernetesValidating:
- name: private-repo-policy.example.com
  namespace: {labelSelector: {matchLabels: {name: validated}}}
  rules:
  - {apiGroups: [stable.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [crontabs], scope: Namespaced}
END
}
__on_validating::private-repo-policy.example.com() {
  image=$(context::get --required review.request.object.spec.image)
  if [[ $image == repo.example.com* ]]; then
    echo '{"allowed":true}' >"$VALIDATING_RESPONSE_PATH"
  else
    echo '{"allowed":false, "message":"Only images from repo.example.com are allowed"}' >"$VALIDATING_RESPONSE_PATH"
  fi
}
"""

MUTATING = """
__config__() {
  cat <<'END'
configVersion: v1
kubernetesMutating:
- name: change.crontab.resources
  rules: [{apiGroups: [stable.example.com], apiVersions: [v1], operations: [CREATE], resources: [crontabs]}]
END
}
__on_mutating::change.crontab.resources() {
  context::is_null review.request.object.spec.replicas
  patch=$(echo -n '[{"op": "add", "path": "/spec/replicas", "value": 333}]' | base64 --wrap=0)
  echo '{"allowed":true, "patch": "'"$patch"'"}' >"$VALIDATING_RESPONSE_PATH"
}
"""

CONVERSION = """
__config__() {
  cat <<'END'
configVersion: v1
kubernetesCustomResourceConversion:
- name: alpha1_to_alpha2
  crdName: crontabs.stable.example.com
  conversions: [{fromVersion: stable.example.com/v1alpha1, toVersion: stable.example.com/v1alpha2}]
END
}
__on_conversion::alpha1_to_alpha2::stable.example.com.v1alpha1::stable.example.com.v1alpha2() {
  converted=$(context::jq '.toVersion as $to | .review.request.objects | map(.apiVersion = $to | .spec.cron |= join(" "))')
  echo "{\\"convertedObjects\\": $converted}" >"$CONVERSION_RESPONSE_PATH"
}
"""


def variables() -> dict[str, str]:
    """Return the variables that hooks inherit."""
    return {**os.environ, **shell_library.environment(os.environ)}


def write_plain(folder: Path, text: str) -> Path:
    """Write a hook that does not need the shell library."""
    return write_hook(folder, text)


def write_on_library(folder: Path, text: str) -> Path:
    """Write a hook that uses the shell library."""
    return write_shell_hook(folder, text)


async def asked(path: Path) -> Hook:
    """Return the hook in this file, with the configuration that the file prints."""
    file = HookFile(path.name, path, (), path.parent, path.parent, {})
    return await read_hook(file, ProcessConfigReader(environment=variables()))


async def ran(path: Path, *contexts: Context, answers: Sequence[str] = ()) -> HookOutcome:
    """Run the hook in a process with these contexts, and with the files that the hook contract defines."""
    runner = ProcessHookRunner(
        path.parent / "runs", Limits(wall_s=WALL_S, stdout_bytes=MAX_OUTPUT), environment=variables()
    )
    return await runner.run(HookRun(path.name, path, path.parent, contexts, {}, {}, answers=tuple(answers)))
