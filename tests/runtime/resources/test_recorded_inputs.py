"""The inputs of a revision, as its record stores them: their encoding, their secrets, and their comparison."""

from dataclasses import replace
from typing import Final

import pytest

from tests.runtime.support.objects import application
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import find_object
from wharfinger.packages.kustomizing.patches import Patch
from wharfinger.packages.rendering.resource_overrides import WorkloadOverride
from wharfinger.runtime.resources.recorded_inputs import RecordedInputs, decode_inputs, inputs_of, read_inputs
from wharfinger.runtime.resources.resources import read_application
from wharfinger.runtime.resources.settings import ResolvedSettings

INPUTS: Final = RecordedInputs(
    package="web",
    version="1.0.0",
    digest="sha256:a",
    settings={"database": {"password": "a-long-secret"}, "replicas": 2},
    settings_version=3,
    hidden=frozenset({("database", "password")}),
    overrides=(WorkloadOverride("Deployment", "web", 3),),
    patches=(Patch("[{op: remove, path: /a}]", (("kind", "Pod"),)),),
)


def test_recorded_inputs_survive_a_round_trip() -> None:
    assert decode_inputs(INPUTS.encoded()) == INPUTS
    assert read_inputs(INPUTS.document) == INPUTS
    assert decode_inputs(b"") is None
    assert read_inputs({}) == RecordedInputs("", "", "")


def test_secrets_of_recorded_inputs_are_hidden() -> None:
    resolved = INPUTS.resolved
    assert resolved.secrets == ("a-long-secret",)
    assert (resolved.hidden, resolved.version) == (INPUTS.hidden, 3)
    assert "a-long-secret" not in repr(INPUTS)


def test_the_digest_is_not_part_of_the_content() -> None:
    assert replace(INPUTS, digest="sha256:b").content == INPUTS.content
    assert replace(INPUTS, version="2.0.0").content != INPUTS.content
    assert replace(INPUTS, patches=()).content != INPUTS.content


def test_inputs_of_a_resource_have_the_recorded_content() -> None:
    obj = application("prod", "shop", package="web", version="1.0.0")
    find_object(obj, "spec")["resourceRequests"] = [{"kind": "Deployment", "name": "web", "replicas": 3}]
    find_object(obj, "spec")["patches"] = [INPUTS.patches[0].document]
    settings = ResolvedSettings(INPUTS.settings, ("a-long-secret",), INPUTS.hidden, 3)
    assert inputs_of(read_application(obj), settings).content == INPUTS.content


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"patches": 3}', b'{"settings": []}'])
def test_invalid_inputs_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_inputs(data)
