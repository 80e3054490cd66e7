"""The list of archives of a PackageRepository (``spec.archive``): valid and invalid lists, and missing parts."""

import base64

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.digest import Digest
from wharfinger.packages.sources.archives import MAX_CARRIED, ArchiveFile, ArchiveSource
from wharfinger.runtime.resources.archive_list import read_archives, with_carried
from wharfinger.runtime.resources.resources import SECRET, SpecError

DIGEST = f"sha256:{'1' * 64}"
ONE, TWO = ObjectKey(SECRET, "ops", "one"), ObjectKey(SECRET, "ops", "two")
PARTS: list[JsonValue] = [{"name": "one", "namespace": "ops"}, {"name": "two", "namespace": "ops"}]


def listed(*entries: JsonObject) -> JsonObject:
    return {"spec": {"archive": {"packages": [*entries]}}}


def entry(**fields: JsonValue) -> JsonObject:
    return {"name": "web", "version": "1.0.0", "digest": DIGEST, **fields}


def part(data: bytes) -> JsonObject:
    return {"data": {"archive": base64.b64encode(data).decode()}}


def test_archives_are_read_from_urls_and_secrets() -> None:
    files, carried = read_archives(
        listed(entry(url="https://a.example/w.tgz"), entry(version="1.1.0+b", secrets=PARTS))
    )
    assert files == (
        ArchiveFile("web", "1.0.0", Digest(DIGEST), "https://a.example/w.tgz"),
        ArchiveFile("web", "1.1.0_b", Digest(DIGEST)),
    )
    assert carried == ((1, (ONE, TWO)),)
    whole = with_carried(ArchiveSource(files), carried, {ONE: part(b"a"), TWO: part(b"b")})
    assert [each.data for each in whole.files] == [b"", b"ab"]


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ((), "expected 1 to 1000 archives, found 0"),
        ((entry(),), r"packages\[0\]: expected exactly one of url and secrets"),
        ((entry(url="https://a.example/w.tgz", secrets=PARTS),), "expected exactly one of url and secrets"),
        ((entry(url="https://a.example/w.tgz"), entry(url="https://a.example/v.tgz")), "web 1.0.0 is listed twice"),
        ((entry(url="https://a.example/w.tgz", digest="sha256:1"),), "not of the form sha256"),
        ((entry(url="file:///etc/passwd"),), r"expected an http\(s\) URL"),
        ((entry(name="A"),), "expected a name, such as web"),
        ((entry(secrets=[{"name": "a"}]),), "name and namespace are both needed"),
        ((entry(secrets=PARTS * 9),), "expected at most 16 Secrets, found 18"),
    ],
)
def test_an_invalid_list_is_refused(entries: tuple[JsonObject, ...], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        read_archives(listed(*entries))


def test_a_missing_or_invalid_part_is_reported() -> None:
    files, carried = read_archives(listed(entry(secrets=PARTS)))
    source = ArchiveSource(files)
    with pytest.raises(SpecError, match=r"Secret ops/two does not exist; install the package again"):
        with_carried(source, carried, {ONE: part(b"a")})
    with pytest.raises(SpecError, match=r"Secret ops/one has no key 'archive'"):
        with_carried(source, carried, {ONE: {}, TWO: part(b"")})
    with pytest.raises(SpecError, match=r"Secret ops/one: data.archive: not base64"):
        with_carried(source, carried, {ONE: {"data": {"archive": "?"}}, TWO: part(b"")})
    with pytest.raises(SpecError, match=r"publish the archive, and set its url"):
        with_carried(source, carried, {ONE: part(b"x" * MAX_CARRIED), TWO: part(b"x")})
