"""The manifests and blobs that a manifest refers to."""

import pytest

from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.mirroring.copying import named_by
from wharfinger.packages.registry.registry import Descriptor

ONE = Descriptor("a/b", digest_of(b"1"), 1)


def test_layers_of_a_manifest_without_a_config_are_copied() -> None:
    layer: JsonObject = {"mediaType": "a/b", "digest": ONE.digest.text, "size": 1}
    assert named_by(encode_json({"layers": [layer]}), "x", index=False) == ([], [ONE])
    assert named_by(encode_json({"manifests": [layer]}), "x", index=True) == ([ONE], [])


@pytest.mark.parametrize("data", [b"", b"[]", b'{"layers":[{}]}', b'{"config":7}', b'{"layers":7}'])
def test_invalid_manifests_are_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"^x: "):
        named_by(data, "x", index=False)
