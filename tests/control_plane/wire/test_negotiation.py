import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.wire.negotiation import (
    Encoding,
    Representation,
    View,
    body_encoding,
    negotiate,
    parse_media_type,
)
from wharfinger.control_plane.wire.status import StatusError

JSON = Representation(Encoding.JSON)
YAML = Representation(Encoding.YAML)
TABLE = Representation(Encoding.JSON, View.TABLE)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/json", JSON),
        ("application/yaml", YAML),
        ("text/html, application/yaml;q=0.9, application/json;q=0.8", YAML),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", TABLE),
        ("application/json; g=meta.k8s.io; v=v1; as=Table", TABLE),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Representation(Encoding.JSON, View.TABLE, "v1beta1")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", JSON),
        ("application/json;q=0.1,application/yaml", YAML),
        ("*/*,application/yaml", YAML),
        ("*/*;q=oddly", JSON),
        ("application/json;as=Unheard;v=v1;g=meta.k8s.io,application/json", JSON),
        ("application/vnd.kubernetes.protobuf,application/json", JSON),
    ],
)
def test_the_accept_header_selects_encoding_and_view(accept: str, chosen: Representation) -> None:
    assert negotiate(accept, (View.TABLE,)) == chosen


def test_aggregated_discovery_names_its_view_in_the_content_type() -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    chosen = negotiate(accept, (View.DISCOVERY,))

    assert chosen.content_type == accept
    assert TABLE.content_type == "application/json"


@pytest.mark.parametrize("accept", ["*", "text/html", "application/json;as=Table;v=v1;g=meta.k8s.io"])
def test_unacceptable_types_are_refused(accept: str) -> None:
    with pytest.raises(StatusError) as caught:
        negotiate(accept, ())
    assert caught.value.code == 406


def test_the_content_type_selects_the_encoding_of_a_body() -> None:
    assert body_encoding("") is Encoding.JSON
    assert body_encoding("application/json; charset=utf-8") is Encoding.JSON
    assert body_encoding("application/yaml") is Encoding.YAML
    assert body_encoding("application/vnd.kubernetes.protobuf") is Encoding.PROTOBUF
    with pytest.raises(StatusError) as caught:
        body_encoding("text/plain")
    assert caught.value.code == 415


@given(st.text(max_size=60))
def test_any_header_is_negotiated_or_refused(accept: str) -> None:
    parse_media_type(accept)
    try:
        negotiate(accept, tuple(View))
    except StatusError as error:
        assert error.code == 406
