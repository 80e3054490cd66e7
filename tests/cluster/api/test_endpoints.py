"""The URLs at which a release can be reached, as they are read from its objects."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.cluster.api.endpoints import ENDPOINT, MAX_CHARS, MAX_ENDPOINTS, Endpoint, endpoint_urls
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object
from wharfinger.formats.yaml.reader import read_yaml

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 70000)
    | st.sampled_from(["", "a", "*.x", "true", "HTTP", "/x", "x.test"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "metadata",
                        "annotations",
                        ENDPOINT,
                        "name",
                        "namespace",
                        "spec",
                        "rules",
                        "host",
                        "http",
                        "paths",
                    ),
                    *("path", "value", "tls", "hosts", "hostnames", "parentRefs", "listeners", "protocol", "hostname"),
                    *("status", "loadBalancer", "ingress", "addresses", "ip", "matches", "port"),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


def obj(text: str, mark: str | None = "true", name: str = "web") -> JsonObject:
    made = as_object(read_yaml(text, what="test"), "test")
    annotations: JsonObject = {} if mark is None else {ENDPOINT: mark}
    return {**made, "metadata": {"name": name, "namespace": "prod", "annotations": annotations}}


def ingress(spec: str, mark: str | None = "true", name: str = "web") -> JsonObject:
    return obj(f"{{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {spec}}}", mark, name)


def gateway(spec: str, mark: str | None = None) -> JsonObject:
    return obj(f"{{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, spec: {spec}}}", mark, "gate")


def route(spec: str, kind: str = "HTTPRoute") -> JsonObject:
    return obj(f"{{apiVersion: gateway.networking.k8s.io/v1, kind: {kind}, spec: {spec}}}")


def urls(*objects: JsonObject, live: tuple[JsonObject, ...] = ()) -> list[str]:
    return [endpoint.url for endpoint in endpoint_urls(objects, live)]


def with_status(made: JsonObject, status: JsonObject) -> JsonObject:
    return {**made, "status": status}


def test_an_ingress_gives_its_hosts_and_paths() -> None:
    made = ingress(
        "{tls: [{hosts: [a.test, '*.b.test']}], rules: ["
        "{host: a.test, http: {paths: [{path: /}, {path: /api}]}},"
        "{host: x.b.test}, {host: plain.test, http: {paths: [{}, {path: '/v(/|$)(.*)'}, {path: '/old*'}]}}]}"
    )
    assert urls(made) == [
        "https://a.test/",
        "https://a.test/api",
        "https://x.b.test/",
        "http://plain.test/",
        "http://plain.test/v",
        "http://plain.test/old",
    ]


def test_only_annotated_objects_have_endpoints_and_the_annotation_describes_them() -> None:
    spec = "{rules: [{host: %s}]}"
    made = [
        ingress(spec % "a.test", "true"),
        ingress(spec % "b.test", "The shop,\n for customers"),
        ingress(spec % "c.test", "false"),
        ingress(spec % "d.test", None),
        ingress(spec % "e.test", ""),
    ]
    assert endpoint_urls(made) == (
        Endpoint("http://a.test/"),
        Endpoint("http://b.test/", "The shop, for customers"),
        Endpoint("http://e.test/"),
    )


def test_other_kinds_have_no_urls() -> None:
    assert urls(obj("{apiVersion: example.test/v1, kind: Ingress, spec: {rules: [{host: a.test}]}}")) == []
    assert urls(obj("{apiVersion: v1, kind: ConfigMap}")) == []


def test_the_status_supplies_a_missing_host() -> None:
    made = ingress("{rules: [{host: '*.a.test'}, {http: {paths: [{path: shop}]}}]}")
    assert urls(made) == []
    live = with_status(made, {"loadBalancer": {"ingress": [{}, {"ip": "fd00::1"}, {"hostname": "lb.test"}]}})
    assert urls(made, live=(live,)) == ["http://[fd00::1]/", "http://[fd00::1]/shop"]
    backend = ingress("{defaultBackend: {service: {name: web}}, tls: [{secretName: x}]}", name="other")
    live = with_status(backend, {"loadBalancer": {"ingress": [{"hostname": "lb.test", "ip": "10.0.0.1"}]}})
    assert urls(backend, live=(live,)) == ["https://lb.test/"]


def test_tls_without_hosts_applies_to_all_hosts() -> None:
    assert urls(ingress("{tls: [{secretName: x}], rules: [{host: a.test}]}")) == ["https://a.test/"]


def test_a_route_has_the_urls_of_its_gateways_listeners() -> None:
    gate = gateway(
        "{listeners: [{name: plain, protocol: HTTP, port: 8080}, {name: safe, protocol: HTTPS, port: 443, hostname: '*.a.test'},"
        " {name: raw, protocol: TCP, port: 5432}, {name: other, protocol: HTTPS, port: 8443, hostname: b.test}]}"
    )
    spec = "{hostnames: [x.a.test], parentRefs: [{name: gate%s}], rules: [{matches: [{path: {value: /api}}]}]}"
    assert urls(gate, route(spec % "")) == ["http://x.a.test:8080/api", "https://x.a.test/api"]
    assert urls(gate, route(spec % ", sectionName: safe")) == ["https://x.a.test/api"]
    assert urls(gate, route(spec % ", namespace: elsewhere")) == ["https://x.a.test/api"]
    assert urls(gate, route("{parentRefs: [{name: gate, sectionName: other}]}")) == ["https://b.test:8443/"]


def test_a_route_without_its_gateway_is_assumed_to_use_https() -> None:
    assert urls(route("{hostnames: [a.test, '*.b.test'], parentRefs: [{name: shared}]}", "GRPCRoute")) == [
        "https://a.test/"
    ]
    pattern = "{matches: [{path: {type: RegularExpression, value: '/v.*'}}]}"
    assert urls(route(f"{{hostnames: [a.test], rules: [{pattern}]}}")) == ["https://a.test/"]
    assert urls(route("{hostnames: [a.test], rules: [{}, {matches: [{path: {value: /x}}]}]}")) == [
        "https://a.test/",
        "https://a.test/x",
    ]


def test_an_annotated_gateway_has_the_urls_of_its_listeners() -> None:
    gate = gateway("{listeners: [{protocol: HTTP, port: 80}, {protocol: HTTPS, port: 443, hostname: a.test}]}", "true")
    assert urls(gate) == ["https://a.test/"]
    live = with_status(gate, {"addresses": [{"type": "IPAddress", "value": "10.0.0.1"}]})
    assert urls(gate, live=(live,)) == ["http://10.0.0.1/", "https://a.test/"]


def test_urls_are_unique_and_bounded() -> None:
    same = ingress("{rules: [{host: a.test}, {host: a.test}]}")
    assert endpoint_urls([same, same]) == (Endpoint("http://a.test/"),)
    hosts = ", ".join(f"{{host: h{number}.test}}" for number in range(2 * MAX_ENDPOINTS))
    assert len(urls(ingress(f"{{rules: [{hosts}]}}"))) == MAX_ENDPOINTS
    assert urls(ingress(f"{{rules: [{{host: {'a' * MAX_CHARS}}}]}}")) == []
    (described,) = endpoint_urls([ingress("{rules: [{host: a.test}]}", "x" * 9000)])
    assert len(described.description) == MAX_CHARS


def test_objects_of_unexpected_shape_are_skipped() -> None:
    assert urls(ingress("{rules: 5}"), ingress("{rules: [{host: a.test}]}", name="b")) == ["http://a.test/"]
    assert urls({"apiVersion": 5, "kind": [], "metadata": {"annotations": {ENDPOINT: "true"}}}) == []
    assert urls(ingress("{rules: [{host: a.test}]}"), live=({"metadata": 5},)) == ["http://a.test/"]
    assert urls(ingress("{rules: [{host: 'a b'}]}")) == []


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 300), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["Ingress", "Gateway", "HTTPRoute"]), JSON), max_size=4),
    st.lists(JSON, max_size=2),
)
def test_any_input_gives_only_urls(made: list[tuple[str, JsonValue]], live: list[JsonValue]) -> None:
    groups = {"Ingress": "networking.k8s.io/v1"}
    objects: list[JsonObject] = [
        {
            "metadata": {"name": "a", "annotations": {ENDPOINT: "true"}},
            **(value if isinstance(value, dict) else {"spec": value}),
            "apiVersion": groups.get(kind, "gateway.networking.k8s.io/v1"),
            "kind": kind,
        }
        for kind, value in made
    ]
    for endpoint in endpoint_urls(objects, [one for one in live if isinstance(one, dict)]):
        assert endpoint.url.startswith(("http://", "https://"))
        assert "*" not in endpoint.url
