"""A package with a validating, a mutating and a conversion hook, for a kind that the package itself defines.

The hooks are written with the shell library of shell-operator (``shell_lib.sh``).
"""

from pathlib import Path

from tests.packages.support.charts import write

CRON_DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      cron: {type: array, items: {type: string}}, image: {type: string}, replicas: {type: integer}}}}}}
  - name: v1alpha2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      cron: {type: string}, image: {type: string}, replicas: {type: integer}}}}}}
"""
RULES = (
    "[{apiGroups: [stable.example.com], apiVersions: [v1alpha2], operations: [CREATE, UPDATE], resources: [crontabs], "
    "scope: Namespaced}]"
)


def shell_hook(config: str, body: str) -> str:
    """Return the script of a hook that loads the shell library, prints ``config`` when it is asked for its configuration, and
    otherwise runs ``body``.
    """
    return (
        f"#!/usr/bin/env bash\nsource \"$FRAMEWORK_DIR/shell_lib.sh\"\n__config__() {{\n  cat <<'END'\n{config}END\n}}\n"
        f'{body}\nhook::run "$@"\n'
    )


def validating(policy: str = "Fail", timeout_s: int = 30, more: str = "") -> str:
    """Return a hook that allows images from one registry only. It runs the commands in ``more`` first."""
    config = (
        "configVersion: v1\nkubernetesValidating:\n- name: private-repo-policy.example.com\n"
        f"  failurePolicy: {policy}\n  timeoutSeconds: {timeout_s}\n  rules: {RULES}\n"
    )
    body = f"""__on_validating::private-repo-policy.example.com() {{
  {more or ":"}
  image=$(context::get --required review.request.object.spec.image)
  if [[ $image == repo.example.com* ]]; then
    echo '{{"allowed":true, "warnings":["checked"]}}' >"$VALIDATING_RESPONSE_PATH"
  else
    echo '{{"allowed":false, "message":"Only images from repo.example.com are allowed"}}' >"$VALIDATING_RESPONSE_PATH"
  fi
}}"""
    return shell_hook(config, body)


MUTATING = shell_hook(
    f"configVersion: v1\nkubernetesMutating:\n- name: change.crontab.resources\n  timeoutSeconds: 30\n  rules: {RULES}\n",
    """__on_mutating::change.crontab.resources() {
  if context::has review.request.object.spec.replicas; then
    echo '{"allowed":true}' >"$VALIDATING_RESPONSE_PATH"
    return 0
  fi
  patch=$(echo -n '[{"op": "add", "path": "/spec/replicas", "value": 333}]' | base64 --wrap=0)
  echo '{"allowed":true, "patch": "'"$patch"'"}' >"$VALIDATING_RESPONSE_PATH"
}""",
)
CONVERSION = shell_hook(
    "configVersion: v1\nkubernetesCustomResourceConversion:\n- name: crons\n  crdName: crontabs.stable.example.com\n"
    "  conversions:\n"
    "  - {fromVersion: stable.example.com/v1alpha1, toVersion: stable.example.com/v1alpha2}\n"
    "  - {fromVersion: stable.example.com/v1alpha2, toVersion: stable.example.com/v1alpha1}\n",
    """__on_conversion::crons::stable.example.com.v1alpha1::stable.example.com.v1alpha2() {
  converted=$(context::jq '.toVersion as $to | .review.request.objects | map(.apiVersion = $to | .spec.cron |= join(" "))')
  echo "{\\"convertedObjects\\": $converted}" >"$CONVERSION_RESPONSE_PATH"
}
__on_conversion::crons::stable.example.com.v1alpha2::stable.example.com.v1alpha1() {
  converted=$(context::jq '.toVersion as $to | .review.request.objects | map(.apiVersion = $to | .spec.cron |= split(" "))')
  echo "{\\"convertedObjects\\": $converted}" >"$CONVERSION_RESPONSE_PATH"
}""",
)
HOOKS = {"validating.sh": validating(), "mutating.sh": MUTATING, "conversion.sh": CONVERSION}


def write_package(folder: Path, hooks: dict[str, str], *, kind: str = "Module", definition: bool = True) -> Path:
    """Write version 1.0.0 of a package ``crons`` with these hooks and one ConfigMap, and with the CRD of CronTab if
    ``definition`` is true.
    """
    files = {
        "package.yaml": f"apiVersion: v1\ntype: {kind}\nname: crons\nversion: 1.0.0\n",
        "templates/out.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crons}\ndata: {a: b}\n",
        **({"crds/crontab.yaml": CRON_DEFINITION} if definition else {}),
        **{f"hooks/{name}": text for name, text in hooks.items()},
    }
    write(folder, files)
    for name in hooks:
        (folder / "hooks" / name).chmod(0o755)
    return folder
