"""Bindings for tests, in the form in which a hook's configuration is read."""

from wharfinger.hooks.config.bindings import KubernetesBinding, NamespaceSelector, WatchVerb


def binding(
    *,
    kind: str = "ConfigMap",
    api_version: str = "",
    verbs: frozenset[WatchVerb] = frozenset(WatchVerb),
    keep_full_objects: bool = True,
    jq_filter: str = "",
    names: tuple[str, ...] | None = None,
    labels: str = "",
    fields: str = "",
    namespaces: NamespaceSelector | None = None,
) -> KubernetesBinding:
    """Return a binding called ``watched``."""
    return KubernetesBinding(
        name="watched",
        kind=kind,
        api_version=api_version,
        verbs=verbs,
        on_synchronization=True,
        wait_for_synchronization=True,
        keep_full_objects=keep_full_objects,
        jq_filter=jq_filter,
        allow_failure=False,
        queue="main",
        group="",
        include_snapshots_from=(),
        names=names,
        label_selector=labels,
        field_selector=fields,
        namespaces=namespaces,
    )
