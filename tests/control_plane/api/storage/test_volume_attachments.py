import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.storage.volume_attachments import VOLUME_ATTACHMENT_RULES, attachment_errors
from wharfinger.formats.json.value import JsonObject

SPEC: JsonObject = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}
GOOD: JsonObject = {"spec": SPEC}
RULES = VOLUME_ATTACHMENT_RULES["VolumeAttachment.storage.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        (GOOD, []),
        ({"spec": {}}, ["spec.attacher", "spec.source", "spec.nodeName"]),
        ({**GOOD, "status": {"attachmentMetadata": {"a": "x" * 256 * 1024}}}, ["status.attachmentMetadata"]),
        ({**GOOD, "status": {"attachError": {"message": "x" * 1025}}}, ["status.attachError.message"]),
    ],
)
def test_invalid_attachment_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in attachment_errors(one)] == fields


def test_the_spec_is_immutable() -> None:
    (error,) = RULES.update({"spec": {**SPEC, "nodeName": "m"}}, GOOD)

    assert error.message.startswith('Invalid value: {"Attacher":"a","Source":{"PersistentVolumeName":"p"')


NAMES = ("spec", "source", "inlineVolumeSpec", "persistentVolumeName", "status", "attachError", "csi")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
