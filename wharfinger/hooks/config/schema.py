"""The shapes that a hook's configuration must have (spec hook-protocol §1.4.1-§1.4.8), as tables of the types in
:mod:`wharfinger.hooks.config.shapes`. Pure.

The stages at which a hook may run depend on its owner: hooks of a package run around its chart (``beforeHelm`` …), global
hooks around all packages (``beforeAll``, ``afterAll``). If a hook of one kind has an order for a stage of the other kind, its
configuration is refused.
"""

from collections.abc import Mapping
from typing import Final

from wharfinger.hooks.config.bindings import HookPool, HookScope
from wharfinger.hooks.config.shapes import Flag, Forbidden, ListOf, MapOf, Record, Shape, Text, Whole

MAX_BINDINGS: Final = 256
"""The limit on the bindings of one kind in one hook. It is needed, because each binding costs a watch, an entry in the
schedule, or a webhook.
"""
MAX_NAMES: Final = 100
"""The limit on the number of names in one ``matchNames``. There is a limit, because each name needs a watch of its own."""
MAX_RULES: Final = 100
"""One limit for several lists: the rules and the match conditions of one webhook, the API groups, API versions and resources of
one rule, and the conversions of one binding.
"""
_UINT32: Final = range(2**32)

_FILLED: Final = Text(filled=True)
_TEXTS: Final = ListOf(Text())
_SOME_TEXTS: Final = ListOf(Text(), least=1, most=MAX_RULES)
_SNAPSHOTS: Final = ListOf(Text(), least=1)
_NAMES: Final = Record({"matchNames": ListOf(Text(), most=MAX_NAMES)}, required=("matchNames",))
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_LABELS: Final = Record(
    {
        "matchLabels": MapOf(Text()),
        "matchExpressions": ListOf(
            Record({"key": Text(), "operator": Text(_LABEL_OPERATORS), "values": _TEXTS}, required=("key", "operator"))
        ),
    },
    least=1,
)
_FIELDS: Final = Record(
    {
        "matchExpressions": ListOf(
            Record(
                {"field": Text(), "operator": Text(("=", "==", "Equals", "!=", "NotEquals")), "value": Text()},
                required=("field", "operator", "value"),
            )
        )
    },
    required=("matchExpressions",),
)
_VERBS: Final = ListOf(Text(("Added", "Modified", "Deleted")))
_SCHEDULE: Final = Record(
    {
        "name": Text(),
        "crontab": _FILLED,
        "allowFailure": Flag(),
        "includeSnapshotsFrom": _SNAPSHOTS,
        "queue": Text(),
        "group": Text(),
    },
    required=("crontab",),
)
_KUBERNETES: Final = Record(
    {
        "name": Text(),
        "apiVersion": Text(),
        "kind": _FILLED,
        "executeHookOnEvent": _VERBS,
        "watchEvent": _VERBS,
        "executeHookOnSynchronization": Flag(),
        "waitForSynchronization": Flag(),
        "keepFullObjectsInMemory": Flag(),
        "jqFilter": Text(),
        "allowFailure": Flag(),
        "queue": Text(),
        "group": Text(),
        "includeSnapshotsFrom": _SNAPSHOTS,
        "nameSelector": _NAMES,
        "labelSelector": _LABELS,
        "fieldSelector": _FIELDS,
        "namespace": Record({"nameSelector": _NAMES, "labelSelector": _LABELS}, least=1),
        "resynchronizationPeriod": Text(),
    },
    required=("kind",),
)
_RULE: Final = Record(
    {
        "apiGroups": _SOME_TEXTS,
        "apiVersions": _SOME_TEXTS,
        "resources": _SOME_TEXTS,
        "operations": ListOf(Text(("CREATE", "UPDATE", "DELETE", "CONNECT", "*")), least=1),
        "scope": Text(("Cluster", "Namespaced", "*")),
    },
    required=("apiGroups", "apiVersions", "resources", "operations"),
)
_CONDITION: Final = Record({"name": _FILLED, "expression": _FILLED}, required=("name", "expression"), free=True)
_ADMISSION: Final = Record(
    {
        "name": _FILLED,
        "rules": ListOf(_RULE, least=1, most=MAX_RULES),
        "labelSelector": _LABELS,
        "namespace": Record({"labelSelector": _LABELS}, required=("labelSelector",)),
        "matchConditions": ListOf(_CONDITION, most=MAX_RULES),
        "failurePolicy": Text(("Ignore", "Fail")),
        "sideEffects": Text(("None", "NoneOnDryRun")),
        "timeoutSeconds": Whole(range(-(2**31), 2**31)),
        "group": Text(),
        "includeSnapshotsFrom": _SNAPSHOTS,
    },
    required=("name",),
)
_CONVERSION: Final = Record(
    {
        "name": _FILLED,
        "crdName": _FILLED,
        "conversions": ListOf(
            Record({"fromVersion": _FILLED, "toVersion": _FILLED}, required=("fromVersion", "toVersion")),
            least=1,
            most=MAX_RULES,
        ),
        "group": Text(),
        "includeSnapshotsFrom": _SNAPSHOTS,
    },
    required=("name", "crdName", "conversions"),
)
_SETTINGS: Final = Record(
    {"executionMinInterval": Text(), "executionBurst": Whole(_UINT32)},
    required=("executionMinInterval", "executionBurst"),
)

_AROUND_CHART: Final = ("beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm")
_AROUND_ALL: Final = ("beforeAll", "afterAll")
_OF_PACKAGES: Final = Forbidden("only hooks of a package may have it; global hooks run beforeAll and afterAll")
_OF_GLOBAL: Final = Forbidden("only global hooks may have it; this is a hook of a package")
_ORDERS: "Final[Mapping[HookScope, Mapping[str, Shape]]]" = {
    HookScope.PACKAGE: {
        **dict.fromkeys(_AROUND_CHART, Whole(_UINT32)),
        **dict.fromkeys(_AROUND_ALL, _OF_GLOBAL),
    },
    HookScope.GLOBAL: {
        **dict.fromkeys(_AROUND_ALL, Whole(_UINT32)),
        **dict.fromkeys(_AROUND_CHART, _OF_PACKAGES),
    },
}


def _version_1(scope: HookScope) -> Record:
    return Record(
        {
            "configVersion": Text(("v1",)),
            "onStartup": Whole(),
            "schedule": ListOf(_SCHEDULE, least=1, most=MAX_BINDINGS),
            "kubernetes": ListOf(_KUBERNETES, least=1, most=MAX_BINDINGS),
            "kubernetesValidating": ListOf(_ADMISSION, least=1, most=MAX_BINDINGS),
            "kubernetesMutating": ListOf(_ADMISSION, least=1, most=MAX_BINDINGS),
            "kubernetesCustomResourceConversion": ListOf(_CONVERSION, least=1, most=MAX_BINDINGS),
            "settings": _SETTINGS,
            "pool": Text((HookPool.NONE, HookPool.PERSISTENT)),
            "workerPool": _FILLED,
            **_ORDERS[scope],
        },
        required=("configVersion",),
    )


_SCHEDULE_0: Final = Record(
    {"name": Text(), "crontab": _FILLED, "allowFailure": Flag()}, required=("crontab",), free=True
)
_LABELS_0: Final = Record(_LABELS.fields, free=True)
_KUBERNETES_0: Final = Record(
    {
        "name": Text(),
        "event": ListOf(Text(("add", "update", "delete"))),
        "kind": _FILLED,
        "selector": _LABELS_0,
        "objectName": Text(),
        "namespaceSelector": Record({"matchNames": ListOf(Text(), most=MAX_NAMES), "any": Flag()}, free=True),
        "jqFilter": Text(),
        "allowFailure": Flag(),
    },
    required=("kind",),
    free=True,
)


def _version_0(scope: HookScope) -> Record:
    return Record(
        {
            "onStartup": Whole(),
            "schedule": ListOf(_SCHEDULE_0, most=MAX_BINDINGS),
            "onKubernetesEvent": ListOf(_KUBERNETES_0, most=MAX_BINDINGS),
            **_ORDERS[scope],
        },
        least=1,
    )


VERSION_1: "Final[Mapping[HookScope, Record]]" = {scope: _version_1(scope) for scope in HookScope}
VERSION_0: "Final[Mapping[HookScope, Record]]" = {scope: _version_0(scope) for scope in HookScope}
