"""The container images of a package: their completed names, annotations, and digests."""

import io
import tarfile

import pytest

from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.mirroring.image_references import annotated_images, image_reference, listed_digests

DIGEST = digest_of(b"image")


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("nginx", "registry-1.docker.io/library/nginx:latest"),
        ("nginx:1.25", "registry-1.docker.io/library/nginx:1.25"),
        ("team/app", "registry-1.docker.io/team/app:latest"),
        ("docker.io/nginx", "registry-1.docker.io/library/nginx:latest"),
        ("localhost/app:1", "localhost/app:1"),
        ("registry.example/app", "registry.example/app:latest"),
        ("registry:5000/app:1", "registry:5000/app:1"),
        (f"registry.example/app:1@{DIGEST}", f"registry.example/app:1@{DIGEST}"),
    ],
)
def test_image_names_are_completed_as_by_container_runtimes(name: str, reference: str) -> None:
    assert str(image_reference(name)) == reference


def test_annotations_of_other_shapes_list_no_images() -> None:
    assert annotated_images({}, "web") == ()
    assert annotated_images({"annotations": {"images": "a: b"}}, "web") == ()
    assert annotated_images({"annotations": {"images": "- a\n- {name: b}\n- {image: 3}\n"}}, "web") == ()
    with pytest.raises(ArtifactError, match="web: annotation images: "):
        annotated_images({"annotations": {"images": "- ["}}, "web")


def packed(name: str, data: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return made.getvalue()


def test_image_digests_of_a_package_are_listed() -> None:
    data = b'{"app": "%s", "more": {"init": "%s"}, "n": 3}' % ((str(DIGEST).encode(),) * 2)
    assert listed_digests(packed("images_digests.json", data), "web") == (DIGEST,)
    assert listed_digests(packed("./images_digests.json", data), "web") == (DIGEST,)
    assert listed_digests(packed("other.json", data), "web") == ()


@pytest.mark.parametrize("data", [b"", b"[]", b'{"a": "sha256:x"}'])
def test_invalid_image_digests_are_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"web: images_digests\.json cannot be read"):
        listed_digests(packed("images_digests.json", data), "web")
    with pytest.raises(ArtifactError, match="web: images_digests"):
        listed_digests(b"no archive", "web")
