import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import AddressError, PackageError
from wharfinger.packages.registry.address import (
    PackageReference,
    RegistryAddress,
    RepositoryAddress,
    checked_package,
    is_repository,
    is_tag,
    parse_reference,
    parse_registry,
    parse_repository,
    tag_of_version,
    version_of_tag,
)

HEX = "0123456789abcdef" * 4


def test_a_reference_has_host_port_repository_and_tag() -> None:
    reference = parse_reference("registry.example:5000/charts/podinfo:1.2.3")
    assert reference == PackageReference(
        RepositoryAddress(RegistryAddress("registry.example", 5000), "charts/podinfo", "https"), "1.2.3"
    )
    assert str(reference) == "registry.example:5000/charts/podinfo:1.2.3"


def test_a_reference_may_have_a_tag_and_a_digest() -> None:
    reference = parse_reference(f"oci://registry.example/web:1@sha256:{HEX}")
    assert reference.digest == Digest(f"sha256:{HEX}")
    assert reference.tag == "1"
    assert str(reference) == f"registry.example/web:1@sha256:{HEX}"
    assert str(parse_reference(f"registry.example/web@sha256:{HEX}")) == f"registry.example/web@sha256:{HEX}"


@pytest.mark.parametrize(
    ("text", "insecure", "scheme"),
    [
        ("registry.example/web", False, "https"),
        ("registry.example/web", True, "http"),
        ("http://registry.example/web", False, "http"),
        ("https://127.0.0.1:5000/web", True, "https"),
        ("oci://registry.example/web", False, "https"),
        ("127.0.0.1:5000/web", False, "http"),
        ("127.9.9.9/web", False, "http"),
        ("localhost/web", False, "http"),
        ("LOCALHOST:80/web", False, "http"),
        ("registry.localhost/web", False, "http"),
        ("[::1]:5000/web", False, "http"),
        ("[0:0:0:0:0:0:0:1]/web", False, "http"),
        ("[2001:db8::1]/web", False, "https"),
        ("10.0.0.1/web", False, "https"),
        ("localhost.example/web", False, "https"),
        ("127.0.0.1.example/web", False, "https"),
    ],
)
def test_plain_http_is_used_only_for_local_or_insecure_addresses(text: str, insecure: bool, scheme: str) -> None:
    assert parse_reference(text, insecure=insecure).repository.scheme == scheme


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no repository"),
        ("podinfo", "no repository"),
        ("/podinfo", "not a valid host"),
        ("registry.example/", "not a valid repository"),
        ("registry.example/Web", "lower-case"),
        ("registry.example/a//b", "lower-case"),
        ("registry.example/a..b", "lower-case"),
        ("registry.example/../b", "lower-case"),
        ("registry.example/a___b", "lower-case"),
        ("registry.example/web:", "not a valid tag"),
        ("registry.example/web:a:b", "not a valid tag"),
        ("registry.example/web:1.0.0+x", "write the '\\+' of a version as '_'"),
        ("registry.example/web:" + "a" * 129, "not a valid tag"),
        ("registry.example/web@", "not of the form"),
        ("registry.example/web@sha256:abc", "not of the form"),
        ("registry.example:0/web", "between 1 and 65535"),
        ("registry.example:99999/web", "between 1 and 65535"),
        ("registry.example:x/web", "not a valid host"),
        ("-a.example/web", "not a valid host"),
        ("a" * 64 + ".example/web", "not a valid host"),
        ("[::1/web", "not a valid host"),
        ("[1:2]/web", "not a valid IPv6 address"),
        ("ftp://registry.example/web", "unknown scheme"),
        ("registry.example/" + "a" * 250, "more than 255"),
        ("registry.example/" + "a" * 2000, "at most 1024"),
        ("registry.example/web\n", "lower-case"),
        ("registry.example/web:1\n", "not a valid tag"),
        ("reg\u0131stry.example/web", "not a valid host"),
        ("registry.example/web:1\x00", "not a valid tag"),
    ],
)
def test_invalid_references_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(AddressError, match=why):
        parse_reference(text)


@pytest.mark.parametrize(
    "text",
    [
        "user:secret@registry.example/web",
        "https://user:secret@registry.example/web:1",
        "x://u:secret@h/w",
        "u:secret@h",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_printed(text: str) -> None:
    with pytest.raises(AddressError, match="user name or password") as caught:
        parse_reference(text)
    assert "secret" not in str(caught.value)
    with pytest.raises(AddressError, match="user name or password"):
        parse_registry(text.partition("/web")[0])


def test_addresses_of_registries_are_parsed() -> None:
    assert parse_registry("Registry.Example") == (RegistryAddress("registry.example"), "https")
    assert parse_registry("http://registry.example:80") == (RegistryAddress("registry.example", 80), "http")
    assert str(RegistryAddress("[::1]", 5000)) == "[::1]:5000"


def test_a_repository_with_a_tag_or_digest_is_refused() -> None:
    repository = parse_repository("registry.example/charts", insecure=True)
    assert (str(repository), repository.scheme) == ("registry.example/charts", "http")
    assert str(repository.child("web")) == "registry.example/charts/web"
    assert repository.child("web").scheme == "http"
    for text in ("registry.example/charts:1", f"registry.example/charts@sha256:{HEX}"):
        with pytest.raises(AddressError, match="names one package"):
            parse_repository(text)
    with pytest.raises(AddressError, match="lower-case"):
        repository.child("../secret")


def test_versions_are_converted_to_tags_and_back() -> None:
    assert tag_of_version("1.2.3+build.5") == "1.2.3_build.5"
    assert version_of_tag("1.2.3_build.5") == "1.2.3+build.5"
    with pytest.raises(AddressError, match="cannot be a tag"):
        tag_of_version("1 2")


NAMES = st.from_regex(r"[a-z0-9]{1,8}((\.|_|__|-{1,3})[a-z0-9]{1,8}){0,2}", fullmatch=True)
HOSTS = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,4})?(\.[a-z0-9]{1,8}){0,3}", fullmatch=True)


@given(
    host=HOSTS,
    port=st.none() | st.integers(1, 65535),
    path=st.lists(NAMES, min_size=1, max_size=4).map("/".join),
    tag=st.just("") | st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}\Z"),
    digest=st.none() | st.just(Digest(f"sha256:{HEX}")),
    scheme=st.sampled_from(["http", "https"]),
)
def test_a_printed_reference_can_be_parsed_again(
    host: str, port: int | None, path: str, tag: str, digest: Digest | None, scheme: str
) -> None:
    tag = tag.removesuffix("\n")
    registry = RegistryAddress(host, port)
    at = f"@{digest}" if digest else ""
    text = f"{scheme}://{registry}/{path}" + (f":{tag}" if tag else "") + at
    reference = parse_reference(text)
    assert reference.repository.registry == registry
    assert (reference.repository.path, reference.tag, reference.digest) == (path, tag, digest)
    assert f"{scheme}://{reference}" == text
    assert is_repository(path)
    assert not tag or is_tag(tag)


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 500))
@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(
            ["registry.example", "[::1]", ":", "/", "@", "sha256:", HEX, "oci://", "..", "a", "_", "-", "\n", "1.2.3"]
        ),
        max_size=12,
    ).map("".join)
)
@example("[" * 300)
@example("[::ffff:1.2.3.4%eth0]/a")
@example("a/" + "a-" * 120 + "!")
def test_any_text_is_parsed_as_an_address_or_refused(text: str) -> None:
    try:
        reference = parse_reference(text)
    except PackageError as error:
        assert isinstance(error, AddressError)
        assert len(str(error)) < 1200
    else:
        assert is_repository(reference.repository.path)
        assert str(reference.repository.registry)


def test_a_package_name_must_be_a_repository_path() -> None:
    assert checked_package("team/web-1") == "team/web-1"
    with pytest.raises(
        AddressError, match=r"^'\.\./web' is not a valid package name: use lower-case letters and digits"
    ):
        checked_package("../web")
