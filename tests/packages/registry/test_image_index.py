import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactError, DigestError, PackageError
from wharfinger.packages.registry.image_index import choose_manifest, is_index, running_architecture
from wharfinger.packages.registry.manifest import DOCKER_LIST, OCI_INDEX, OCI_MANIFEST
from wharfinger.packages.registry.registry import Descriptor


def entry(name: str, *, system: str = "linux", architecture: str = "", variant: str = "") -> JsonObject:
    found: JsonObject = {"mediaType": OCI_MANIFEST, "digest": digest_of(name.encode()).text, "size": len(name)}
    if architecture:
        found["platform"] = {"os": system, "architecture": architecture, "variant": variant}
    return found


def attestation(name: str) -> JsonObject:
    said: JsonObject = {"vnd.docker.reference.type": "attestation-manifest"}
    return {**entry(name, system="unknown", architecture="unknown"), "annotations": said}


def choose(*entries: JsonValue, architecture: str = "amd64") -> Descriptor:
    data = json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}).encode()
    return choose_manifest(data, Descriptor(OCI_INDEX, digest_of(data), len(data)), architecture=architecture)


@pytest.mark.parametrize(
    "entries",
    [
        [entry("it")],
        [entry("it", architecture="s390x", system="windows")],
        [entry("it", architecture="arm64"), attestation("beside")],
        [entry("not", architecture="arm64"), entry("it", architecture="amd64")],
        [entry("it", architecture="amd64"), entry("not", architecture="amd64", variant="v2")],
        [entry("not", architecture="amd64", system="windows"), entry("it", architecture="amd64")],
        [entry("not"), entry("it", architecture="amd64")],
    ],
)
def test_the_image_of_the_architecture_is_chosen(entries: list[JsonValue]) -> None:
    assert choose(*entries) == Descriptor(OCI_MANIFEST, digest_of(b"it"), 2)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([], "no image for linux/amd64; the index has nothing"),
        ([attestation("a")], "the index has nothing"),
        ([entry("a", architecture="arm64"), entry("b", architecture="arm")], "the index has linux/arm, linux/arm64"),
        ([entry("a"), entry("b")], r"the index has \?/\?"),
        (["text"], "manifests.0: expected an object"),
        ([{**entry("a"), "digest": "x"}], "sha256"),
        ([{**entry("a"), "platform": {"os": 5}}, entry("b")], "platform.os: expected a string"),
    ],
)
def test_indexes_without_a_usable_image_are_refused(entries: list[JsonValue], why: str) -> None:
    with pytest.raises(ArtifactError, match=f"^index sha256:.*{why}"):
        choose(*entries)


def test_the_number_of_manifests_in_an_index_is_limited() -> None:
    with pytest.raises(ArtifactError, match="10001 manifests; at most 10000"):
        choose(*[{}] * 10_001)


def test_an_index_with_another_size_or_digest_is_refused() -> None:
    data = b"{}"
    for descriptor in (Descriptor(OCI_INDEX, digest_of(data), 3), Descriptor(OCI_INDEX, digest_of(b""), 2)):
        with pytest.raises(DigestError) as caught:
            choose_manifest(data, descriptor)
        assert caught.value.transient


@pytest.mark.parametrize(
    ("machine", "name"),
    [("x86_64", "amd64"), ("aarch64", "arm64"), ("AMD64", "amd64"), ("armv7l", "arm"), ("riscv64", "riscv64")],
)
def test_machine_names_are_translated_to_image_architectures(
    machine: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert running_architecture() == name
    assert choose(entry("not", architecture="x"), entry("it", architecture=name), architecture="").size == 2


def test_media_types_of_indexes_are_recognized() -> None:
    assert is_index(OCI_INDEX)
    assert is_index(DOCKER_LIST)
    assert not is_index(OCI_MANIFEST)


ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "mediaType": st.sampled_from([OCI_MANIFEST, "x", 5, None]),
        "digest": st.sampled_from([digest_of(b"").text, "sha256:", 5, None]),
        "size": st.integers(-1, 2**70) | st.text(max_size=3),
        "platform": st.dictionaries(st.sampled_from(["os", "architecture"]), st.sampled_from(["linux", "amd64", 5]))
        | st.integers(),
        "annotations": st.dictionaries(st.sampled_from(["vnd.docker.reference.type", "x"]), st.text(max_size=3))
        | st.integers(),
    },
)


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 300))
@given(
    st.binary(max_size=100)
    | st.fixed_dictionaries({}, optional={"manifests": st.lists(ENTRY, max_size=4) | st.integers()}).map(
        lambda value: json.dumps(value).encode()
    )
)
@example(b'{"manifests":[{"size":1e400}]}')
def test_any_bytes_are_read_as_an_index_or_refused(data: bytes) -> None:
    try:
        chosen = choose_manifest(data, Descriptor(OCI_INDEX, digest_of(data), len(data)), architecture="amd64")
    except PackageError as error:
        assert len(str(error)) < 1_000
    else:
        assert chosen.size >= 0
