"""The APIServices of custom groups: one per version that a definition serves, as the kube-apiserver registers them.

The APIServices are created and deleted together with definitions. If a client deletes one that is still needed, it is created
again. APIServices that clients created do not have the label of automatic ones, and are never deleted.
"""

from typing import Final

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.controllers.server.definitions import DEFINITIONS, MANAGER
from wharfinger.control_plane.merging.managed_fields import record_update
from wharfinger.control_plane.storage.interface import Change, ChangeType, Collection, Key
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object, find_str
from wharfinger.kube.times import format_time

SERVICES: Final = Collection("apiregistration.k8s.io", "apiservices")
_MARK: Final = "kube-aggregator.kubernetes.io/automanaged"
_GROUP_PRIORITY: Final = 1000
_VERSION_PRIORITY: Final = 100


class GroupServices:
    """The controller of the APIServices of custom groups; it is called with every change."""

    def __init__(self, backend: Backend, served: Served) -> None:
        self._backend = backend
        self._served = served

    def load(self) -> None:
        """Create the APIServices that are missing in the storage, for all stored definitions."""
        for definition in self._backend.storage.list(DEFINITIONS):
            self._settle(definition)

    def __call__(self, change: Change) -> None:
        if change.key.collection == DEFINITIONS:
            for definition in (change.previous, change.obj):
                if definition is not None:
                    self._settle(definition)
        elif change.key.collection == SERVICES and change.type is ChangeType.DELETED and _is_managed(change.obj):
            spec = find_object(change.obj, "spec")
            self._settle_version(find_str(spec, "group"), find_str(spec, "version"))

    def _settle(self, definition: JsonObject) -> None:
        group = find_str(definition, "spec", "group")
        for version in find_list(definition, "spec", "versions"):
            self._settle_version(group, find_str(version, "name"))

    def _settle_version(self, group: str, version: str) -> None:
        key = Key(SERVICES, "", f"{version}.{group}")
        stored = self._backend.storage.get(key)
        if self._is_served(group, version):
            if stored is None:
                self._backend.put(key, self._service(key.name, group, version))
        elif stored is not None and _is_managed(stored):
            self._backend.delete(key)

    def _is_served(self, group: str, version: str) -> bool:
        return any(
            find(item, "name") == version and find(item, "served") is True
            for definition in self._backend.storage.list(DEFINITIONS)
            if find(definition, "spec", "group") == group
            for item in find_list(definition, "spec", "versions")
        )

    def _service(self, name: str, group: str, version: str) -> JsonObject:
        now = self._backend.now()
        body: JsonObject = {
            "kind": "APIService",
            "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {"name": name, "labels": {_MARK: "true"}},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": _GROUP_PRIORITY,
                "versionPriority": _VERSION_PRIORITY,
            },
        }
        body = record_update(None, body, manager=MANAGER, subresource="", now=now, lists=self._served.version.lists)
        made: JsonObject = {"uid": self._backend.new_uid(), "creationTimestamp": format_time(now)}
        condition: JsonObject = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": format_time(now),
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        return {
            **body,
            "metadata": {**find_object(body, "metadata"), **made},
            "status": {"conditions": [condition]},
        }


def _is_managed(service: JsonObject) -> bool:
    return find(service, "metadata", "labels", _MARK) == "true"
