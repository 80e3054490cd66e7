from tests.control_plane.support.bench import (
    DEFINITIONS,
    DRY_RUN,
    OPTIONS,
    config_maps,
    deployment,
    deployments,
    made,
    new_backend,
    refused,
    served,
    thing,
    widgets,
)
from tests.control_plane.support.samples import SCHEMA, definition
from wharfinger.control_plane.verbs.creation import create, create_object
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object, find_str


def test_the_server_adds_metadata_on_creation() -> None:
    backend = new_backend()
    maps = config_maps(backend)

    result = create(backend, maps, "default", thing(maps, data={"x": "1"}), OPTIONS)

    metadata = find_object(result.obj, "metadata")
    assert result.created
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"] == "2026-11-21T04:00:00Z"
    assert metadata["resourceVersion"] == str(backend.storage.revision)
    assert len(find_str(metadata, "uid")) == 36
    assert "generation" not in metadata
    assert find(result.obj, "metadata", "managedFields", 0, "manager") == "tester"
    assert backend.get(maps, "default", "a") == result.obj


def test_server_owned_metadata_of_the_client_is_dropped() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    claimed: JsonObject = {
        "uid": "mine",
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "deletionTimestamp": "2000-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/me",
    }

    metadata = find_object(made(backend, maps, thing(maps, metadata=claimed)), "metadata")

    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] == "2026-11-21T04:00:00Z"
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & set(metadata)


def test_generated_names_are_unique_and_have_the_prefix() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    body: JsonObject = {"metadata": {"generateName": "run-"}}

    first, second = made(backend, maps, body), made(backend, maps, body)

    names = [find_str(obj, "metadata", "name") for obj in (first, second)]
    assert names[0] != names[1]
    assert all(name.startswith("run-") and len(name) == 9 for name in names)
    assert find(first, "metadata", "generateName") == "run-"


def test_a_name_takes_precedence_over_a_prefix() -> None:
    backend = new_backend()
    maps = config_maps(backend)

    assert find(made(backend, maps, thing(maps, metadata={"generateName": "run-"})), "metadata", "name") == "a"


def test_an_object_without_a_name_is_refused() -> None:
    backend = new_backend()
    with refused(422, "Invalid", "metadata.name: Required value: name or generateName is required"):
        made(backend, config_maps(backend), {})


def test_a_name_in_use_is_refused() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps))

    with refused(409, "AlreadyExists", 'configmaps "a" already exists'):
        made(backend, maps, thing(maps))
    with refused(422, "Invalid", "data[a/b]"):
        made(backend, maps, thing(maps, data={"a/b": ""}))
    made(backend, maps, thing(maps), namespace="kube-public")


def test_a_missing_namespace_is_reported_before_an_invalid_object() -> None:
    backend = new_backend()
    maps = config_maps(backend)

    with refused(404, "NotFound", 'namespaces "nosuch" not found'):
        made(backend, maps, thing(maps, "NOT VALID"), namespace="nosuch")


def test_a_namespace_that_is_being_deleted_refuses_new_objects() -> None:
    backend = new_backend()
    maps, namespaces = config_maps(backend), served(backend, "", "v1", "namespaces")
    made(backend, namespaces, thing(namespaces, "ending"), namespace="")
    delete(backend, namespaces, "", "ending", DeleteOptions())

    with refused(403, "Forbidden", "unable to create new content in namespace ending because it is being terminated"):
        made(backend, maps, thing(maps), namespace="ending")


def test_a_namespace_that_differs_from_the_path_is_refused() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    with refused(400, "BadRequest", "does not match the namespace sent on the request"):
        made(backend, maps, thing(maps, metadata={"namespace": "other"}))


def test_a_new_object_with_a_resource_version_is_refused() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    with refused(500, "", "resourceVersion should not be set on objects to be created"):
        made(backend, maps, thing(maps, metadata={"resourceVersion": "5"}))


def test_a_dry_run_stores_nothing() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    before = backend.storage.revision

    result = create(backend, maps, "default", thing(maps), DRY_RUN)

    assert result.created
    assert find(result.obj, "metadata", "uid")
    assert find(result.obj, "metadata", "resourceVersion") is None
    assert backend.storage.revision == before
    made(backend, maps, thing(maps))
    with refused(409, "AlreadyExists"):
        create(backend, maps, "default", thing(maps), DRY_RUN)


def test_the_server_sets_the_initial_status() -> None:
    backend = new_backend()
    kind, pods = deployments(backend), served(backend, "", "v1", "pods")
    pod = thing(pods, spec={"containers": [{"name": "c", "image": "i"}]}, status={"phase": "Running"})

    obj = made(backend, kind, {**deployment(kind), "status": {"replicas": 9}})

    assert obj["status"] == {}
    assert find(made(backend, pods, pod), "status", "phase") == "Pending"


def test_status_of_a_custom_object_is_dropped_if_it_is_a_subresource() -> None:
    bare, with_status = new_backend(), new_backend()
    ready: JsonObject = {"ready": True}
    plain = widgets(bare)
    kind = widgets(with_status, subresources={"status": {}})

    assert made(bare, plain, thing(plain, status=ready))["status"] == ready
    assert "status" not in made(with_status, kind, thing(kind, status=ready))


def test_the_generation_begins_at_one() -> None:
    backend = new_backend()
    kind, custom = deployments(backend), widgets(backend)

    assert find(made(backend, kind, deployment(kind, metadata={"generation": 7})), "metadata", "generation") == 1
    assert find(made(backend, custom, thing(custom)), "metadata", "generation") == 1


def test_managers_own_defaults_but_not_fields_of_the_server() -> None:
    backend = new_backend()
    services = served(backend, "", "v1", "services")

    obj = made(backend, services, thing(services, spec={"ports": [{"port": 80}]}))

    owned = find_object(obj, "metadata", "managedFields", 0, "fieldsV1", "f:spec")
    assert str(find(obj, "spec", "clusterIP")).startswith("10.0.0.")
    assert "f:sessionAffinity" in owned
    assert "f:clusterIP" not in owned


def test_a_new_namespace_has_a_finalizer() -> None:
    backend = new_backend()
    namespaces = served(backend, "", "v1", "namespaces")

    obj = made(backend, namespaces, thing(namespaces, "n"), namespace="")

    assert obj["spec"] == {"finalizers": ["kubernetes"]}
    assert obj["status"] == {"phase": "Active"}
    assert find(obj, "metadata", "namespace") is None


def test_objects_are_stored_in_the_storage_version() -> None:
    backend = new_backend()
    body = definition()
    find_list(body, "spec", "versions").append(
        {"name": "v1alpha1", "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}}
    )
    made(backend, served(backend, *DEFINITIONS), body, namespace="")
    old = served(backend, "example.com", "v1alpha1", "widgets")

    made(backend, old, thing(old))

    assert find(backend.get(old, "default", "a"), "apiVersion") == "example.com/v1"


def test_a_terminating_definition_refuses_new_instances() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind, metadata={"finalizers": ["example.com/hold"]}))
    delete(backend, served(backend, *DEFINITIONS), "", "widgets.example.com", DeleteOptions())

    with refused(403, "Forbidden", "create not allowed while custom resource definition is terminating"):
        made(backend, kind, thing(kind, "b"))


def test_applied_objects_keep_their_managed_fields() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    fields: JsonObject = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    obj = thing(maps, metadata={"namespace": "default", "managedFields": [fields]})

    created = create_object(backend, maps, obj, OPTIONS, applied=True)

    assert find(created, "metadata", "managedFields") == [fields]


def test_members_of_a_wrong_type_are_refused() -> None:
    backend = new_backend()
    broken = definition()
    with refused(400, "BadRequest", "CustomResourceDefinition"):
        made(backend, served(backend, *DEFINITIONS), {**broken, "spec": {"versions": {"v1": {}}}}, namespace="")

    namespaces, kind = served(backend, "", "v1", "namespaces"), widgets(backend)
    with refused(
        400, "BadRequest", "cannot unmarshal number into Go struct field Namespace.spec of type v1.NamespaceSpec"
    ):
        made(backend, namespaces, thing(namespaces, "n", spec=5), namespace="")
    with refused(
        400, "BadRequest", "cannot unmarshal string into Go struct field Namespace.status of type v1.NamespaceStatus"
    ):
        made(backend, namespaces, thing(namespaces, "n", status="Active"), namespace="")
    with refused(
        400, "BadRequest", "cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string"
    ):
        made(backend, kind, thing(kind, metadata={"finalizers": "example.com/hold"}))
