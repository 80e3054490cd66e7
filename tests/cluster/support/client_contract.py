"""The contract of every ClusterClient. Each ``contract_*`` function gets a client of an empty cluster."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest
import trio

from wharfinger.cluster.api.client import ClusterClient, Propagation, WatchEvent
from wharfinger.cluster.api.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnknownKindError
from wharfinger.cluster.api.raw_object import RawEvent
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of
from wharfinger.kube.service_account import ServiceAccount

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
Contract = Callable[[ClusterClient], Awaitable[None]]


def config_map(name: str, namespace: str = "default", labels: JsonObject | None = None, **data: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data}}


def key(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey(CONFIG_MAP, namespace, name)


def widget_crd(scope: str = "Namespaced") -> JsonObject:
    schema: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.test"},
        "spec": {
            "group": "example.test",
            "scope": scope,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


async def contract_versions(client: ClusterClient) -> None:
    assert (await client.server_version()).startswith("v1.")
    versions = await client.api_versions()
    assert {"v1", "v1/Pod", "apps/v1", "apps/v1/Deployment"} <= set(versions)
    assert list(versions) == sorted(set(versions))


async def contract_discovery(client: ClusterClient) -> None:
    assert await client.resource_type("v1", "ConfigMap") == CONFIG_MAP
    assert await client.resource_type("v1", "Namespace") == NAMESPACE
    deployment = await client.resource_type("apps/v1", "Deployment")
    assert (deployment.plural, deployment.path("a", "b")) == ("deployments", "/apis/apps/v1/namespaces/a/deployments/b")
    with pytest.raises(UnknownKindError, match=r"Widget of example\.test/v1") as caught:
        await client.resource_type("example.test/v1", "Widget")
    assert caught.value.transient


async def contract_a_new_kind_is_discovered(client: ClusterClient) -> None:
    with pytest.raises(UnknownKindError):
        await client.resource_type("example.test/v1", "Widget")
    await client.apply(widget_crd(), field_manager="test")
    with trio.fail_after(300):
        while "example.test/v1/Widget" not in await client.api_versions():
            await trio.lowlevel.checkpoint()
    widget = await client.resource_type("example.test/v1", "Widget")
    assert widget == ResourceType("example.test", "v1", "Widget", "widgets", namespaced=True)


async def contract_kinds_are_found_by_what_people_call_them(client: ClusterClient) -> None:
    for name in ("ConfigMap", "configmap", "CONFIGMAPS", "cm"):
        assert await client.find_resource(name) == CONFIG_MAP
    deployment = await client.resource_type("apps/v1", "Deployment")
    assert await client.find_resource("deploy") == deployment
    assert await client.find_resource("Deployment", "apps/v1") == deployment
    assert (await client.find_resource("event")).api_version == "v1"
    with pytest.raises(UnknownKindError, match=r"^deploy of v1: ") as caught:
        await client.find_resource("deploy", "v1")
    assert caught.value.transient
    with pytest.raises(UnknownKindError, match=r"^wdg: "):
        await client.find_resource("wdg")
    crd = widget_crd()
    names, versions = find_object(crd, "spec", "names"), find_list(crd, "spec", "versions")
    names["shortNames"] = ["wdg"]
    older = {**as_object(versions[0], "version"), "name": "v1beta1", "storage": False}
    versions.insert(0, older)
    await client.apply(crd, field_manager="test")
    with trio.fail_after(300):
        while "example.test/v1/Widget" not in await client.api_versions():
            await trio.lowlevel.checkpoint()
    widget = ResourceType("example.test", "v1", "Widget", "widgets", namespaced=True)
    for name in ("Widget", "widget", "WIDGETS", "wdg"):
        assert await client.find_resource(name) == widget
    assert (await client.find_resource("wdg", "example.test/v1beta1")).version == "v1beta1"


async def contract_create_get_delete(client: ClusterClient) -> None:
    with pytest.raises(NotFoundError) as missing:
        await client.get(key("a"))
    assert "ConfigMap default/a" in str(missing.value)
    created = await client.create(config_map("a", v="1"))
    assert find_str(created, "metadata", "uid")
    assert await client.get(key("a")) == created
    with pytest.raises(ConflictError) as again:
        await client.create(config_map("a"))
    assert again.value.reason == "AlreadyExists"
    assert await client.delete(key("a"))
    with pytest.raises(NotFoundError):
        await client.get(key("a"))
    with pytest.raises(NotFoundError):
        await client.delete(key("a"))


async def contract_a_finalizer_delays_a_delete(client: ClusterClient) -> None:
    await client.create(config_map("a"))
    await client.merge_patch(key("a"), {"metadata": {"finalizers": ["example.com/hold"]}})
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "a", "namespace": "default"},
    }
    await client.create(account)
    resource = await client.resource_type("v1", "ServiceAccount")
    assert await client.delete(ObjectKey(resource, "default", "a"))  # the answer contains the deleted object
    assert not await client.delete(key("a"))
    assert find_str(await client.get(key("a")), "metadata", "deletionTimestamp")
    await client.merge_patch(key("a"), {"metadata": {"finalizers": None}})
    with pytest.raises(NotFoundError):
        await client.get(key("a"))


async def contract_generated_names(client: ClusterClient) -> None:
    created = await client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-", "namespace": "default"}}
    )
    assert name_of(created).startswith("x-")
    assert len(name_of(created)) > 2


async def contract_invalid_objects(client: ClusterClient) -> None:
    with pytest.raises(InvalidError) as caught:
        await client.create(config_map("Not_A_Name"))
    assert not caught.value.transient
    with pytest.raises(NotFoundError):
        await client.create(config_map("a", namespace="nowhere"))


async def contract_replace(client: ClusterClient) -> None:
    created = await client.create(config_map("a", v="1"))
    replaced = await client.replace({**created, "data": {"v": "2"}})
    assert find(replaced, "data", "v") == "2"
    assert find(replaced, "metadata", "resourceVersion") != find(created, "metadata", "resourceVersion")
    with pytest.raises(ConflictError):
        await client.replace({**created, "data": {"v": "3"}})


async def contract_json_patch(client: ClusterClient) -> None:
    await client.create(config_map("a", v="1", w="1"))
    patched = await client.json_patch(
        key("a"), [{"op": "remove", "path": "/data/v"}, {"op": "add", "path": "/data/x", "value": "2"}]
    )
    assert patched["data"] == {"w": "1", "x": "2"}
    with pytest.raises(InvalidError) as caught:
        await client.json_patch(
            key("a"), [{"op": "add", "path": "/data/y", "value": "3"}, {"op": "remove", "path": "/data/v"}]
        )
    assert not caught.value.transient
    assert (await client.get(key("a")))["data"] == {"w": "1", "x": "2"}
    with pytest.raises(NotFoundError):
        await client.json_patch(key("b"), [{"op": "remove", "path": "/data"}])


async def contract_merge_patch(client: ClusterClient) -> None:
    await client.create(config_map("a", v="1", w="1"))
    patched = await client.merge_patch(key("a"), {"data": {"v": None, "x": "2"}})
    assert patched["data"] == {"w": "1", "x": "2"}
    with pytest.raises(NotFoundError):
        await client.merge_patch(key("b"), {"data": {}})


async def contract_status_is_a_subresource(client: ClusterClient) -> None:
    await client.apply(widget_crd(), field_manager="test")
    widget = await client.resource_type("example.test/v1", "Widget")
    one = ObjectKey(widget, "default", "one")
    meta: JsonObject = {"name": "one", "namespace": "default"}
    await client.create({"apiVersion": "example.test/v1", "kind": "Widget", "metadata": meta, "spec": {"a": 1}})
    patched = await client.merge_patch(one, {"status": {"done": True}, "spec": {"a": 2}}, subresource="status")
    assert find(patched, "status", "done") is True
    assert find(patched, "spec", "a") == 1
    patched = await client.merge_patch(one, {"status": {"done": False}, "spec": {"a": 3}})
    assert find(patched, "status", "done") is True
    assert find(patched, "spec", "a") == 3
    patched = await client.json_patch(
        one,
        [{"op": "replace", "path": "/status/done", "value": 1}, {"op": "remove", "path": "/spec"}],
        subresource="status",
    )
    assert (patched["status"], patched["spec"]) == ({"done": 1}, {"a": 3})
    replaced = await client.replace({**patched, "status": {"done": 2}, "spec": {"a": 4}}, subresource="status")
    assert (replaced["status"], replaced["spec"]) == ({"done": 2}, {"a": 3})
    with pytest.raises(ConflictError):
        await client.replace({**patched, "status": {"done": 3}}, subresource="status")
    replaced = await client.replace({**replaced, "status": {"done": 3}, "spec": {"a": 5}})
    assert (replaced["status"], replaced["spec"]) == ({"done": 2}, {"a": 5})


async def contract_apply(client: ClusterClient) -> None:
    first = await client.apply(config_map("a", v="1", w="1"), field_manager="one")
    same = await client.apply(config_map("a", v="1", w="1"), field_manager="one")
    assert find(same, "metadata", "resourceVersion") == find(first, "metadata", "resourceVersion")
    with pytest.raises(ConflictError) as caught:
        await client.apply(config_map("a", v="2"), field_manager="two")
    assert '"one"' in str(caught.value)
    assert ".data.v" in str(caught.value)
    dry = await client.apply(config_map("a", v="9"), field_manager="one", dry_run=True)
    assert find(dry, "data", "v") == "9"
    assert find(await client.get(key("a")), "data", "v") == "1"
    await client.apply(config_map("a", v="2"), field_manager="two", force=True)
    pruned = await client.apply(config_map("a"), field_manager="one")
    assert pruned["data"] == {"v": "2"}


async def contract_delete_by_uid(client: ClusterClient) -> None:
    created = await client.create(config_map("a"))
    with pytest.raises(ConflictError):
        await client.delete(key("a"), uid="another")
    await client.delete(key("a"), uid=find_str(created, "metadata", "uid"), propagation=Propagation.FOREGROUND)


async def contract_lists(client: ClusterClient) -> None:
    empty = await client.list(CONFIG_MAP, "default", label_selector="app=x")
    assert empty.items == ()
    assert int(empty.resource_version) >= 0
    for name in ("a", "b"):
        await client.create(config_map(name, labels={"app": "x"}))
    await client.create(config_map("c", labels={"app": "y"}))
    await client.create(config_map("d", namespace="kube-public", labels={"app": "x"}))
    listed = await client.list(CONFIG_MAP, "default", label_selector="app=x")
    assert [name_of(item) for item in listed.items] == ["a", "b"]
    assert {(item["apiVersion"], item["kind"]) for item in listed.items} == {("v1", "ConfigMap")}
    everywhere = await client.list(CONFIG_MAP, label_selector="app in (x)")
    assert {name_of(item) for item in everywhere.items} == {"a", "b", "d"}
    assert int(listed.resource_version) > int(empty.resource_version)


async def contract_lists_by_field(client: ClusterClient) -> None:
    for name, namespace in (("a", "default"), ("b", "default"), ("a", "kube-public")):
        await client.create(config_map(name, namespace, labels={"app": "x"}))
    here = await client.list(CONFIG_MAP, "default", field_selector="metadata.name=a")
    assert [name_of(item) for item in here.items] == ["a"]
    everywhere = await client.list(CONFIG_MAP, field_selector="metadata.name=a,metadata.namespace!=default")
    assert [find(item, "metadata", "namespace") for item in everywhere.items] == ["kube-public"]
    both = await client.list(CONFIG_MAP, "default", field_selector="metadata.name!=a", label_selector="app=x")
    assert [name_of(item) for item in both.items] == ["b"]
    with pytest.raises(InvalidError, match="data") as caught:
        await client.list(CONFIG_MAP, field_selector="data.v=1")
    assert not caught.value.transient


async def contract_watches_by_field(client: ClusterClient) -> None:
    revision = (await client.list(CONFIG_MAP, "default")).resource_version
    seen: list[tuple[str, str]] = []
    async with client.watch(
        CONFIG_MAP, "default", resource_version=revision, field_selector="metadata.name=a"
    ) as events:
        await client.create(config_map("b"))
        await client.create(config_map("a"))
        await client.delete(key("b"))
        await client.delete(key("a"))
        with trio.fail_after(300):
            async for event in events:
                if event.type is not WatchType.BOOKMARK:
                    seen.append((event.type.value, name_of(event.object)))
                if len(seen) == 2:
                    break
    assert seen == [("ADDED", "a"), ("DELETED", "a")]


async def contract_long_lists_are_whole(client: ClusterClient) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(1100):
            nursery.start_soon(client.create, config_map(f"c-{number:04}", labels={"app": "x"}))
    listed = await client.list(CONFIG_MAP, "default", label_selector="app=x")
    assert [name_of(item) for item in listed.items] == [f"c-{number:04}" for number in range(1100)]


async def contract_raw_lists_are_the_same_lists_as_text(client: ClusterClient) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(600):
            nursery.start_soon(client.create, config_map(f"c-{number:04}", labels={"app": "x"}))
    await client.create(config_map("other", labels={"app": "y"}))
    listed = await client.list(CONFIG_MAP, "default", label_selector="app=x")
    for paged, pages in ((True, 2), (False, 1)):
        seen = []
        async with client.raw_list(CONFIG_MAP, "default", label_selector="app=x", paged=paged) as raw:
            async for page in raw:
                seen.append(page)  # noqa: PERF401 - a comprehension hides what is looked at
        assert len(seen) == pages
        assert {page.resource_version for page in seen} == {listed.resource_version}
        items = [item for page in seen for item in page.items]
        assert [msgspec.json.decode(item.text) for item in items] == list(listed.items)
        assert [item.key for item in items] == [key(name_of(item)) for item in listed.items]
        assert {item.uid for item in items} == {find_str(item, "metadata", "uid") for item in listed.items}
        assert items[7].resource_version == find_str(listed.items[7], "metadata", "resourceVersion")
    async with client.raw_list(CONFIG_MAP, field_selector="metadata.name=c-0001") as raw:
        assert [item.key.name for item in (await anext(raw)).items] == ["c-0001"]
    with pytest.raises(InvalidError):
        async with client.raw_list(CONFIG_MAP, field_selector="data.v=1") as raw:
            await anext(raw)


async def contract_raw_watches_are_the_same_watches_as_text(client: ClusterClient) -> None:
    revision = (await client.list(CONFIG_MAP, "default")).resource_version
    seen: list[RawEvent] = []
    async with client.raw_watch(
        CONFIG_MAP, "default", resource_version=revision, label_selector="app=x", field_selector="metadata.name!=c"
    ) as events:
        for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
            await client.create(config_map(name, labels={"app": app}))
        await client.merge_patch(key("a"), {"data": {"v": "2"}})
        await client.delete(key("a"))
        with trio.fail_after(300):
            async for event in events:
                if event.type is not WatchType.BOOKMARK:
                    seen.append(event)
                if len(seen) == 3:
                    break
    assert [(event.type.value, event.object.key) for event in seen] == [
        ("ADDED", key("a")),
        ("MODIFIED", key("a")),
        ("DELETED", key("a")),
    ]
    assert len({event.object.uid for event in seen}) == 1
    assert len({event.object.resource_version for event in seen}) == 3
    last: JsonObject = msgspec.json.decode(seen[-1].object.text)
    assert (last["apiVersion"], last["kind"], last["data"]) == ("v1", "ConfigMap", {"v": "2"})


async def contract_lists_and_watches_of_metadata_only(client: ClusterClient) -> None:
    listed: list[bytes] = []
    await client.create(config_map("a", labels={"app": "x"}, v="1"))
    revision = (await client.list(CONFIG_MAP, "default")).resource_version
    async with client.raw_list(CONFIG_MAP, "default", label_selector="app=x", metadata_only=True) as pages:
        async for page in pages:
            listed += [item.text for item in page.items]
            assert [item.key for item in page.items] == [key("a")]
    async with client.raw_watch(CONFIG_MAP, "default", resource_version=revision, metadata_only=True) as events:
        await client.create(config_map("b", v="2"))
        with trio.fail_after(300):
            async for event in events:
                if event.type is not WatchType.BOOKMARK:
                    assert event.object.key == key("b")
                    listed.append(event.object.text)
                    break
    objects = [msgspec.json.decode(text, type=dict[str, object]) for text in listed]
    assert [set(obj) for obj in objects] == [{"apiVersion", "kind", "metadata"}] * 2


async def contract_watches_begin_after_a_list(client: ClusterClient) -> None:
    await client.create(config_map("before", labels={"app": "x"}))
    listed = await client.list(CONFIG_MAP, "default", label_selector="app=x")
    await client.create(config_map("early", labels={"app": "x"}))
    seen: list[tuple[str, str]] = []
    async with client.watch(
        CONFIG_MAP, "default", resource_version=listed.resource_version, label_selector="app=x"
    ) as events:
        await client.create(config_map("other", labels={"app": "y"}))
        await client.merge_patch(key("early"), {"data": {"v": "2"}})
        await client.merge_patch(key("before"), {"metadata": {"labels": {"app": "z"}}})
        await client.delete(key("early"))
        with trio.fail_after(300):
            async for event in events:
                if event.type is not WatchType.BOOKMARK:
                    seen.append((event.type.value, name_of(event.object)))
                if len(seen) == 4:
                    break
    assert seen == [("ADDED", "early"), ("MODIFIED", "early"), ("DELETED", "before"), ("DELETED", "early")]


async def contract_watch_events_carry_revisions_to_go_on_from(client: ClusterClient) -> None:
    listed = await client.list(CONFIG_MAP, "default")
    await client.create(config_map("a"))
    await client.create(config_map("b"))

    async def first(revision: str) -> WatchEvent:
        with trio.fail_after(300):
            async with client.watch(CONFIG_MAP, "default", resource_version=revision) as events:
                async for event in events:
                    if event.type is not WatchType.BOOKMARK:
                        return event
        raise AssertionError("the watch ended")

    one = await first(listed.resource_version)
    two = await first(find_str(one.object, "metadata", "resourceVersion"))
    assert (name_of(one.object), name_of(two.object)) == ("a", "b")


async def contract_many_watches_do_not_hold_up_requests(client: ClusterClient) -> None:
    revision = (await client.list(CONFIG_MAP, "default")).resource_version
    opened = 0
    everyone = trio.Event()

    async def follow() -> None:
        nonlocal opened
        async with client.watch(CONFIG_MAP, "default", resource_version=revision) as events:
            opened += 1
            if opened == 120:
                everyone.set()
            async for event in events:
                if event.type is WatchType.ADDED:
                    return

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for _ in range(120):
                nursery.start_soon(follow)
            await everyone.wait()
            await client.create(config_map("a"))


async def contract_finalizers_delay_a_delete(client: ClusterClient) -> None:
    held = config_map("a")
    held["metadata"] = {"name": "a", "namespace": "default", "finalizers": ["example.test/hold"]}
    await client.create(held)
    await client.delete(key("a"))
    assert find_str(await client.get(key("a")), "metadata", "deletionTimestamp")
    assert find_list(await client.get(key("a")), "metadata", "finalizers") == ["example.test/hold"]
    await client.merge_patch(key("a"), {"metadata": {"finalizers": None}})
    with pytest.raises(NotFoundError):
        await client.get(key("a"))


async def contract_kinds_that_are_served(client: ClusterClient) -> None:
    served = await client.served_kinds()
    kinds = [(kind.group, kind.kind) for kind in served.kinds]
    assert {("", "ConfigMap"), ("apps", "Deployment"), ("rbac.authorization.k8s.io", "ClusterRole")} <= set(kinds)
    assert len(kinds) == len(set(kinds)), "each kind is listed once"
    assert ("authorization.k8s.io", "SelfSubjectAccessReview") not in kinds, "objects of this kind cannot be listed"
    assert served.silent == ()


async def contract_requests_for_objects_are_made_as_an_account(client: ClusterClient) -> None:
    acting = client.acting_as(ServiceAccount("default", "nobody"), comment="test")
    await client.create(config_map("a"))
    for request in (acting.get(key("a")), acting.create(config_map("b")), acting.delete(key("a"))):
        with pytest.raises(ForbiddenError, match='User "system:serviceaccount:default:nobody" cannot'):
            await request
    assert await acting.resource_type("v1", "ConfigMap") == CONFIG_MAP
    assert len((await acting.list(CONFIG_MAP, "default")).items) == 1
    assert (await acting.served_kinds()).kinds
    assert await acting.server_version() == await client.server_version()


async def contract_a_watch_may_be_silent_for_a_bounded_time(client: ClusterClient) -> None:
    kind = await client.resource_type("v1", "ConfigMap")
    assert 0 < client.silence_limit(kind) < 600


CONTRACT: dict[str, Contract] = {
    name.removeprefix("contract_"): function
    for name, function in list(globals().items())
    if name.startswith("contract_")
}
