import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactError, DigestError, PackageError
from wharfinger.packages.registry.manifest import (
    DOCKER_LIST,
    DOCKER_MANIFEST,
    HELM_CHART,
    HELM_CONFIG,
    HELM_PROVENANCE,
    MAX_ANNOTATIONS,
    MAX_BLOB,
    MAX_LAYERS,
    MAX_MANIFEST,
    OCI_INDEX,
    OCI_LAYER,
    OCI_MANIFEST,
    PACKAGE_CONFIG,
    blobs_of,
    is_chart,
    manifest_fields,
    manifest_from_fields,
    manifest_media_type,
    package_layers,
    read_manifest,
    write_manifest,
)
from wharfinger.packages.registry.registry import Descriptor, Manifest

A, B, C = (digest_of(letter) for letter in (b"a", b"b", b"c"))


def entry(media_type: str = HELM_CHART, digest: str = A.text, size: JsonValue = 5) -> JsonObject:
    return {"mediaType": media_type, "digest": digest, "size": size}


def document(**changes: JsonValue) -> JsonObject:
    base: JsonObject = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": entry(HELM_CONFIG, B.text, 2),
        "layers": [entry()],
        "annotations": {"b": "2", "a": "1"},
    }
    return {key: value for key, value in (base | changes).items() if value is not None}


def read(data: bytes | JsonObject, media_type: str = OCI_MANIFEST) -> Manifest:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return read_manifest(raw, Descriptor(media_type, digest_of(raw), len(raw)))


def test_an_image_manifest_is_read() -> None:
    manifest = read(document())
    assert manifest.descriptor.media_type == OCI_MANIFEST
    assert manifest.artifact_type == HELM_CONFIG
    assert manifest.config == Descriptor(HELM_CONFIG, B, 2)
    assert manifest.layers == (Descriptor(HELM_CHART, A, 5),)
    assert manifest.annotations == (("a", "1"), ("b", "2"))


def test_a_written_manifest_is_read_back() -> None:
    config, layer = Descriptor(HELM_CONFIG, B, 2), Descriptor(HELM_CHART, A, 5)
    data = write_manifest(config, (layer,), {"z": "1", "a": "2"})
    assert data == write_manifest(config, (layer,), {"a": "2", "z": "1"})
    manifest = read(data)
    assert (manifest.config, manifest.layers, manifest.annotations) == (config, (layer,), (("a", "2"), ("z", "1")))


@pytest.mark.parametrize(
    ("changes", "announced"),
    [
        ({}, ""),
        ({"mediaType": None}, OCI_MANIFEST),
        ({"mediaType": DOCKER_MANIFEST}, DOCKER_MANIFEST),
        ({"artifactType": "application/x"}, OCI_MANIFEST),
        ({"annotations": None}, OCI_MANIFEST),
        ({"layers": []}, OCI_MANIFEST),
        ({"subject": entry(), "unknown": [1]}, OCI_MANIFEST),
        ({"config": entry(size=MAX_BLOB)}, OCI_MANIFEST),
    ],
)
def test_supported_variants_of_manifests_are_read(changes: JsonObject, announced: str) -> None:
    manifest = read(document(**changes), announced)
    assert manifest.artifact_type == changes.get("artifactType", manifest.config.media_type)


@pytest.mark.parametrize(
    ("changes", "announced", "why"),
    [
        ({"schemaVersion": 1}, OCI_MANIFEST, "schemaVersion is not 2"),
        ({"schemaVersion": None}, OCI_MANIFEST, "schemaVersion is not 2"),
        ({"mediaType": OCI_INDEX}, OCI_INDEX, "expected one image, found an index"),
        ({"mediaType": DOCKER_LIST}, DOCKER_LIST, "expected one image, found an index"),
        ({"layers": None, "manifests": []}, OCI_MANIFEST, "expected one image, found an index"),
        ({"mediaType": "text/plain"}, "text/plain", "not a supported type of manifest"),
        ({"mediaType": DOCKER_MANIFEST}, OCI_MANIFEST, "announced as"),
        ({"mediaType": 5}, OCI_MANIFEST, "expected a string"),
        ({"config": None}, OCI_MANIFEST, "config: expected an object"),
        ({"config": entry(size=None)}, OCI_MANIFEST, "config.size"),
        ({"config": entry(size=-1)}, OCI_MANIFEST, "config.size"),
        ({"config": entry(size=True)}, OCI_MANIFEST, "config.size"),
        ({"config": entry(size=1.5)}, OCI_MANIFEST, "config.size"),
        ({"config": entry(size=MAX_BLOB + 1)}, OCI_MANIFEST, "config.size"),
        ({"config": entry(digest="sha512:" + "a" * 128)}, OCI_MANIFEST, "sha256"),
        ({"config": entry(digest="")}, OCI_MANIFEST, "digest: required"),
        ({"config": entry(media_type="chart")}, OCI_MANIFEST, "not a media type"),
        ({"config": entry(media_type="a/b\r\nX: y")}, OCI_MANIFEST, "not a media type"),
        ({"artifactType": "chart"}, OCI_MANIFEST, "not a media type"),
        ({"layers": {}}, OCI_MANIFEST, "layers: expected a list"),
        ({"layers": ["x"]}, OCI_MANIFEST, "layers.0: expected an object"),
        ({"layers": [entry()] * (MAX_LAYERS + 1)}, OCI_MANIFEST, "1001 layers"),
        ({"annotations": []}, OCI_MANIFEST, "annotations: expected an object"),
        ({"annotations": {"a": 1}}, OCI_MANIFEST, "'a' is not a string"),
        ({"annotations": {str(n): "" for n in range(MAX_ANNOTATIONS + 1)}}, OCI_MANIFEST, "1001 entries"),
    ],
)
def test_invalid_manifests_are_refused(changes: JsonObject, announced: str, why: str) -> None:
    with pytest.raises(ArtifactError, match=why) as caught:
        read(document(**changes), announced)
    assert str(caught.value).startswith("manifest sha256:")
    assert str(caught.value).count("manifest sha256:") == 1
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 5_000, b"NaN"])
def test_bytes_that_are_not_a_json_object_are_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError):
        read(data)
    with pytest.raises(ArtifactError):
        manifest_media_type(data, OCI_MANIFEST)


def test_a_manifest_with_another_size_or_digest_is_refused() -> None:
    data = json.dumps(document()).encode()
    for descriptor in (
        Descriptor(OCI_MANIFEST, digest_of(data), len(data) + 1),
        Descriptor(OCI_MANIFEST, A, len(data)),
    ):
        with pytest.raises(DigestError) as caught:
            read_manifest(data, descriptor)
        assert caught.value.transient
    with pytest.raises(ArtifactError, match="over the limit"):
        read(b" " * (MAX_MANIFEST + 1))


def test_the_media_type_is_in_the_manifest_or_the_header() -> None:
    assert manifest_media_type(b'{"mediaType":"a/b"}', "c/d") == "a/b"
    assert manifest_media_type(b"{}", "c/d; charset=utf-8") == "c/d"
    with pytest.raises(ArtifactError, match="not a media type"):
        manifest_media_type(b"{}", "")


def test_a_missing_media_type_is_derived_from_the_fields() -> None:
    assert manifest_media_type(b'{"layers":[]}', "") == OCI_MANIFEST
    assert manifest_media_type(b'{"manifests":[]}', "") == OCI_INDEX


def test_a_chart_needs_exactly_one_chart_layer() -> None:
    provenance = entry(HELM_PROVENANCE, C.text)
    [layer] = package_layers(read(document(layers=[provenance, entry()])))
    assert layer.digest == A
    for layers, found in (([], "no layers"), ([provenance], "provenance"), ([entry(), entry()], "found 2")):
        manifest = read(document(layers=list[JsonValue](layers)))
        assert is_chart(manifest)
        with pytest.raises(ArtifactError, match=found):
            package_layers(manifest)


def test_all_layers_of_an_image_are_returned_in_order() -> None:
    docker = "application/vnd.docker.image.rootfs.diff.tar.gzip"
    layers: list[JsonValue] = [entry(OCI_LAYER), entry(docker, C.text), entry(OCI_LAYER)]
    manifest = read(document(config=entry(PACKAGE_CONFIG, B.text), layers=layers))
    assert not is_chart(manifest)
    assert [layer.digest for layer in package_layers(manifest)] == [A, C, A]


@pytest.mark.parametrize(
    ("media_types", "why"),
    [
        ([], "without layers"),
        (["application/vnd.oci.image.layer.v1.tar+zstd"], "layer 0 is compressed with zstd; .* gzip"),
        ([OCI_LAYER, "application/vnd.oci.empty.v1+json"], "layer 1 is of type application/vnd.oci.empty"),
        (["application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"], "neither a chart nor an image's layer"),
        (["application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"], "neither a chart nor an image's layer"),
    ],
)
def test_images_that_are_not_packages_are_refused(media_types: list[str], why: str) -> None:
    layers: list[JsonValue] = [entry(media_type) for media_type in media_types]
    manifest = read(document(config=entry("application/vnd.oci.image.config.v1+json", B.text), layers=layers))
    with pytest.raises(ArtifactError, match=why):
        package_layers(manifest)


def test_a_manifest_is_restored_from_its_record() -> None:
    manifest = read(document(artifactType="application/x", layers=[entry(), entry(digest=C.text)]))
    assert manifest_from_fields(manifest_fields(manifest)) == manifest
    with pytest.raises(FormatError):
        manifest_from_fields({})


def test_blobs_are_config_and_distinct_layers() -> None:
    manifest = read(document(layers=[entry(), entry(digest=C.text), entry()]))
    assert [blob.digest for blob in blobs_of(manifest)] == [B, A, C]


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "mediaType": st.sampled_from([HELM_CHART, HELM_CONFIG, "x", ""]) | SCALARS,
        "digest": st.sampled_from([A.text, B.text, "sha256:", "md5:1"]) | SCALARS,
        "size": st.integers(-1, 2**70) | SCALARS,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "schemaVersion": st.just(2) | SCALARS,
        "mediaType": st.sampled_from([OCI_MANIFEST, DOCKER_MANIFEST, OCI_INDEX]) | SCALARS,
        "artifactType": SCALARS,
        "config": ENTRIES | VALUES,
        "layers": st.lists(ENTRIES | VALUES, max_size=3) | VALUES,
        "annotations": st.dictionaries(st.text(max_size=5), st.text(max_size=5) | SCALARS, max_size=3) | VALUES,
        "manifests": VALUES,
    },
)


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 500))
@given(
    st.binary(max_size=200)
    | DOCUMENTS.map(lambda value: json.dumps(value).encode())
    | st.tuples(DOCUMENTS, st.integers(0, 400)).map(lambda pair: json.dumps(pair[0]).encode()[: pair[1]]),
    st.sampled_from([OCI_MANIFEST, DOCKER_MANIFEST, OCI_INDEX, "", "x"]),
)
@example(b'{"schemaVersion":2,"config":{"size":1e400}}', "")
@example(b'{"schemaVersion":2,"mediaType":"\\ud800"}', "")
@example(b'{"schemaVersion":2,"config":{"mediaType":"a/b","digest":"\\u0000","size":0}}', "")
def test_any_bytes_are_read_as_a_manifest_or_refused(data: bytes, media_type: str) -> None:
    try:
        manifest = read(data, media_type)
    except PackageError as error:
        assert len(str(error)) < 1_000
    else:
        assert manifest.descriptor.digest == digest_of(data)
        assert all(0 <= layer.size <= MAX_BLOB for layer in manifest.layers)
    try:
        manifest_media_type(data, media_type)
    except PackageError:
        return
