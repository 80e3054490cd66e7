"""Validation of whole Pod specs and templates, in cases that no recording of a real API server covers."""

from tests.control_plane.support.pod_samples import spec_of
from wharfinger.control_plane.api.core.pod_specs.validation import pod_spec_errors, pod_template_errors
from wharfinger.formats.json.value import JsonObject, JsonValue


def fields(*, template: bool = False, **spec: JsonValue) -> list[str]:
    return [error.field for error in pod_spec_errors(spec_of(**spec), "spec", template=template)]


def test_too_many_search_paths_are_refused() -> None:
    searches: list[JsonValue] = [f"{'a' * 60}.{'b' * 10}{index}" for index in range(33)]
    assert fields(dnsConfig={"searches": searches}) == ["spec.dnsConfig.searches"] * 2


def test_host_network_ports_of_templates_must_equal_the_host_port() -> None:
    ports: list[JsonValue] = [{"containerPort": 80, "hostPort": 81, "protocol": "TCP"}]
    container: JsonValue = {"name": "a", "image": "i", "imagePullPolicy": "Always", "ports": ports}
    found = pod_spec_errors(spec_of(hostNetwork=True, containers=[container]), "spec", template=True)
    assert [error.field for error in found] == ["spec.containers[0].ports[0].hostPort"]


def test_a_template_may_not_have_ephemeral_containers() -> None:
    spec = spec_of(ephemeralContainers=[{"name": "e", "image": "i"}])
    template: JsonObject = {"metadata": {"labels": {"a b": "c"}}, "spec": spec}
    found = [error.field for error in pod_template_errors(template, "spec.template")]
    assert found == ["spec.template.labels", "spec.template.spec.ephemeralContainers"]


def test_long_hostnames_and_invalid_variable_files_are_refused() -> None:
    reference: JsonValue = {"fileKeyRef": {"key": "K", "volumeName": "v", "path": "p"}}
    container: JsonValue = {"name": "a", "image": "i", "env": [{"name": "A", "valueFrom": reference}]}
    found = fields(hostnameOverride="a" * 65, hostNetwork=True, containers=[container])
    assert found == ["spec.hostnameOverride"] * 2 + ["spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName"]
    volumes: JsonValue = [{"name": "v", "configMap": {"name": "m"}}]
    assert len(fields(containers=[container], volumes=volumes)) == 1
