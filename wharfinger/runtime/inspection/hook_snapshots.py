"""The snapshots that the hooks of a package would get now (spec/runtime §9.1), without the content of Secrets."""

from wharfinger.formats.json.value import JsonObject, JsonValue, as_object
from wharfinger.formats.redaction.redaction import redact_object
from wharfinger.formats.redaction.redaction_text import MARK
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.watching.monitor_core import Item
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.package_details import HookSnapshotsSnapshot
from wharfinger.runtime.tasks.hook_runs import snapshots_of

_SECRET = "Secret"  # noqa: S105 - a kind


def hook_snapshots(instance: Instance) -> tuple[HookSnapshotsSnapshot, ...]:
    """Return the snapshots of each hook that has kubernetes bindings, sorted by hook.

    The filter result of a Secret may contain the secret text, so every text and number in the result is masked.
    """
    hooks = sorted(instance.files.hooks, key=lambda hook: hook.name)
    return tuple(
        HookSnapshotsSnapshot(hook.name, _bindings(instance, hook)) for hook in hooks if hook.config.kubernetes
    )


def _bindings(instance: Instance, hook: Hook) -> JsonObject:
    of_secrets = {binding.name for binding in hook.config.kubernetes if binding.kind.lower() in {"secret", "secrets"}}
    return {
        name: [_item(item, is_secret=name in of_secrets) for item in items]
        for name, items in snapshots_of(instance, hook).items()
    }


def _item(item: Item, *, is_secret: bool) -> JsonObject:
    fields: JsonObject = {name: packed.value() for name, packed in item.fields().items()}
    if not is_secret:
        return fields
    if "filterResult" in fields:
        fields["filterResult"] = masked(fields["filterResult"])
    if isinstance(fields.get("object"), dict):
        # Masking must see the kind, because an object without a kind would not be recognized as a Secret.
        fields["object"] = redact_object({**as_object(fields["object"], "object"), "kind": _SECRET})
    return fields


def masked(value: JsonValue) -> JsonValue:
    """Return a value with all its texts and numbers masked; its structure and its keys are kept."""
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value if value is None or isinstance(value, bool) else MARK
