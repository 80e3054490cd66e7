"""The conversions of a package, and their effect on settings of older versions."""

from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.charts import write
from tests.packages.support.real_jq import RealJq
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.definition.conversions import (
    CONVERT_S,
    MAX_PROGRAM,
    MAX_PROGRAMS,
    NO_CONVERSIONS,
    Conversion,
    ConversionChain,
    check_conversions,
    convert,
    convert_between,
    program_problems,
    read_conversions,
)
from wharfinger.packages.definition.definition import read_definition
from wharfinger.packages.errors import ArtifactError, ConversionError
from wharfinger.packages.files.package_files import open_files

RENAME = ".auth.enabled = .auth.enable | del(.auth.enable)"
V2 = f"version: 2\nconversions:\n  - {RENAME}\ndescription: {{en: renamed, ru: переименовано}}\n"
V3 = "version: 3\nconversions: [del(.auth.password), 'if .auth == {} then del(.auth) end']\n"
CHAIN = ConversionChain(
    3,
    (
        Conversion(2, (RENAME,), {"en": "renamed"}),
        Conversion(3, ("del(.auth.password)", "if .auth == {} then del(.auth) end")),
    ),
)


def read(folder: Path, files: dict[str, str], schema: JsonObject | None = None) -> ConversionChain:
    tree = write(folder, {"module.yaml": "", **{f"openapi/conversions/{name}": text for name, text in files.items()}})
    return read_conversions(open_files(tree, "web"), {} if schema is None else schema, "openapi/config-values.yaml")


def test_the_conversions_of_a_package_are_read_in_order(tmp_path: Path) -> None:
    files = {"v3.yaml": V3, "v2.yml": V2, "testcases.yaml": "[", "conversions_test.go": "package x", "v4.d/v9.yaml": ""}

    found = read(tmp_path, files, {"x-config-version": 3})

    assert found == ConversionChain(3, found.conversions, declared=True)
    assert [(each.version, each.programs, dict(each.description)) for each in found.conversions] == [
        (2, (RENAME,), {"en": "renamed", "ru": "переименовано"}),
        (3, ("del(.auth.password)", "if .auth == {} then del(.auth) end"), {}),
    ]
    assert found.conversions[0].file == "openapi/conversions/v2.yaml"


def test_the_definition_of_a_package_includes_its_conversions(tmp_path: Path) -> None:
    files = {
        "package.yaml": "{}",
        "openapi/settings.yaml": "{x-config-version: 2, type: object, properties: {auth: {type: object}}}",
        "openapi/conversions/v2.yaml": V2,
    }
    assert read_definition(write(tmp_path / "a", files), name="web", version="1.0.0").conversions.current == 2
    plain = {"hooks/a.sh": "", "openapi/config-values.yaml": "{type: object}"}
    assert read_definition(write(tmp_path / "b", plain), name="web", version="1.0.0").conversions == NO_CONVERSIONS
    broken = {**files, "openapi/conversions/v2.yaml": "version: 3"}
    with pytest.raises(ArtifactError, match=r"openapi/conversions/v2\.yaml: version: 3, but the file is called v2"):
        read_definition(write(tmp_path / "c", broken), name="web", version="1.0.0")


def test_a_package_without_conversions_has_at_most_one_version(tmp_path: Path) -> None:
    assert read(tmp_path, {}) == NO_CONVERSIONS
    assert read(tmp_path, {}, {"x-config-version": 0}) == NO_CONVERSIONS
    assert read(tmp_path, {}, {"x-config-version": 1}).current == 1


def test_a_schema_without_a_version_has_the_newest(tmp_path: Path) -> None:
    found = read(tmp_path, {"v2.yaml": V2, "v3.yaml": V3})
    assert (found.current, found.declared) == (3, False)


@pytest.mark.parametrize(
    ("files", "version", "says"),
    [
        (
            {},
            2,
            "openapi/conversions: v2.yaml missing: openapi/config-values.yaml has x-config-version: 2, and settings",
        ),
        ({"v3.yaml": V3}, 3, "openapi/conversions: v2.yaml missing"),
        ({"v3.yaml": V3}, None, "openapi/conversions: v2.yaml missing: v3.yaml exists"),
        ({"v2.yaml": V2}, 9, "v3.yaml, v4.yaml, v5.yaml, v6.yaml, v7.yaml and 2 more missing"),
        ({"v2.yaml": V2, "v3.yaml": V3}, 2, "v3.yaml: above x-config-version: 2, the version of openapi/config"),
        ({"v2.yaml": V2}, 1, "v2.yaml: above x-config-version: 1"),
        ({"v2.yaml": V2, "v2.yml": V2}, 2, "v2.yml: version 2 occurs twice; keep one file"),
        ({"second.yaml": V2}, 2, "openapi/conversions/second.yaml: a conversion is named after the version"),
        ({"v02.yaml": V2}, 2, "v02.yaml: a conversion is named after the version"),
        ({"v1.yaml": "{version: 1, conversions: [.]}"}, 1, "v1.yaml: version: settings begin with version 1"),
        ({"v2.yaml": "conversions: [.]"}, 2, "v2.yaml: version: required"),
        ({"v2.yaml": ""}, 2, "v2.yaml: version: required"),
        ({"v2.yaml": "version: '2'"}, 2, "v2.yaml: version: expected an integer from 0 to 1000"),
        ({"v2.yaml": "version: 2"}, 2, "v2.yaml: conversions: expected a list of jq programs, found none"),
        ({"v2.yaml": "{version: 2, conversions: .}"}, 2, "v2.yaml: conversions: expected a list, found a string"),
        (
            {"v2.yaml": "{version: 2, conversions: [., {a: .b}]}"},
            2,
            "conversions[1]: expected a jq program, found an object",
        ),
        (
            {"v2.yaml": "{version: 2, conversions: ['  ']}"},
            2,
            "conversions[0]: expected a program, found an empty text; use '.' to change nothing",
        ),
        (
            {"v2.yaml": f"{{version: 2, conversions: ['{'.' * (MAX_PROGRAM + 1)}']}}"},
            2,
            f"conversions[0]: expected at most {MAX_PROGRAM} characters, found {MAX_PROGRAM + 1}",
        ),
        (
            {"v2.yaml": f"{{version: 2, conversions: [{'., ' * (MAX_PROGRAMS + 1)}]}}"},
            2,
            f"conversions: expected at most {MAX_PROGRAMS} programs, found {MAX_PROGRAMS + 1}",
        ),
        ({"v2.yaml": "{version: 2, conversion: [.]}"}, 2, "conversion: unknown key; did you mean 'conversions'?"),
        ({"v2.yaml": "{version: 2, conversions: [.], description: {en: 1}}"}, 2, "description.en: expected a string"),
        ({"v2.yaml": "version: ["}, 2, "openapi/conversions/v2.yaml"),
        ({}, "2", "openapi/config-values.yaml: x-config-version: expected an integer from 0 to 1000"),
        ({}, 1001, "openapi/config-values.yaml: x-config-version: expected an integer from 0 to 1000"),
    ],
)
def test_invalid_conversion_files_are_refused(
    tmp_path: Path, files: dict[str, str], version: JsonValue, says: str
) -> None:
    with pytest.raises(ArtifactError) as caught:
        read(tmp_path, files, {"x-config-version": version})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_settings_are_converted_to_the_newest_version() -> None:
    jq = RealJq()
    settings: JsonObject = {"auth": {"enable": True, "password": "x"}, "replicas": 2}

    assert await convert(CHAIN, jq, settings, 1) == ({"auth": {"enabled": True}, "replicas": 2}, 3)
    assert settings == {"auth": {"enable": True, "password": "x"}, "replicas": 2}
    assert jq.asked == [RENAME, *CHAIN.conversions[1].programs]
    assert await convert(CHAIN, jq, {"auth": {"password": "x"}}, 2) == ({}, 3)


@pytest.mark.parametrize(("settings", "version"), [({"auth": {"enable": 1}}, 0), ({"auth": 1}, 3), ({}, 1)])
async def test_settings_that_need_no_conversion_run_no_program(settings: JsonObject, version: int) -> None:
    """No program runs if the settings are empty, have the newest version, or have no version."""
    jq = RealJq()
    assert await convert(CHAIN, jq, settings, version) == (settings, 3)
    assert jq.asked == []


@pytest.mark.parametrize("version", [4, -1])
async def test_an_unknown_settings_version_is_refused(version: int) -> None:
    with pytest.raises(ConversionError, match=f"spec.settingsVersion: {version} is not a version .* the newest is 3"):
        await convert(CHAIN, RealJq(), {"a": 1}, version)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("[.]", "expected an object as its result, found a list"),
        ("empty", "expected an object as its result, found null"),
        (".a", "expected an object as its result, found an integer"),
        ("., .", "expected an object as its result, found a list"),
        (".a.b", "Cannot index"),
        ('error("boom")', "the program failed on this object"),
    ],
)
async def test_a_failed_conversion_names_the_version_and_the_program(program: str, says: str) -> None:
    chain = ConversionChain(3, (Conversion(2, (".",)), Conversion(3, (".", program))))
    with pytest.raises(ConversionError) as caught:
        await convert(chain, RealJq(), {"a": 12345678, "secret": "s3cr3t-value"}, 1)
    message = str(caught.value)
    assert message.startswith(
        "settings cannot be converted to version 3, program 2 of 2 (openapi/conversions/v3.yaml): "
    )
    assert says.lower() in message.lower()
    assert "s3cr3t" not in message
    assert "12345678" not in message
    assert not caught.value.transient


async def test_a_dead_worker_is_a_transient_error() -> None:
    jq = RealJq(dying={RENAME})
    with pytest.raises(ConversionError, match="its worker died") as caught:
        await convert(CHAIN, jq, {"auth": {}}, 1)
    assert caught.value.transient
    with pytest.raises(ConversionError, match=r"v2\.yaml: conversions\[0\]: .* its worker died") as caught:
        await check_conversions(CHAIN, jq)
    assert caught.value.transient


async def test_a_program_that_times_out_is_reported() -> None:
    jq = RealJq(endless={RENAME})
    with pytest.raises(ConversionError) as caught:
        await convert(CHAIN, jq, {"auth": {}}, 1)
    assert str(caught.value) == (
        "settings cannot be converted to version 2, program 1 of 1 (openapi/conversions/v2.yaml): the program takes too "
        f"long: jq filter {RENAME!r}: it took longer than 5 s"
    )
    assert (caught.value.transient, caught.value.late) == (True, True)
    with pytest.raises(ConversionError, match=r"v2\.yaml: conversions\[0\]: the program takes too long: ") as caught:
        await check_conversions(CHAIN, jq)
    assert (caught.value.transient, caught.value.late) == (True, True)
    with pytest.raises(ConversionError) as caught:
        await convert(CHAIN, RealJq(dying={RENAME}), {"auth": {}}, 1)
    assert not caught.value.late


async def test_errors_contain_no_control_characters() -> None:
    chain = ConversionChain(2, (Conversion(2, ('. as $x | error("\x1b[31m\x00")',)),))
    with pytest.raises(ConversionError) as caught:
        await convert(chain, RealJq(dying={chain.conversions[0].programs[0]}), {"a": 1}, 1)
    assert str(caught.value).isprintable()
    for problem in await program_problems(ConversionChain(2, (Conversion(2, ("nope\x1b |\u202e",)),)), RealJq()):
        assert problem.isprintable()


async def test_all_programs_together_have_a_time_limit(autojump_clock: trio.testing.MockClock) -> None:
    class Slow(RealJq):
        async def apply(self, program: str, value: JsonValue) -> JsonValue:
            await trio.sleep(CONVERT_S / 2 - 1)
            return value

    begun = trio.current_time()
    with pytest.raises(ConversionError, match="settings of version 1: converting them took longer than 60 s") as caught:
        await convert(CHAIN, Slow(), {"a": 1}, 1)
    assert (caught.value.transient, caught.value.late) == (True, True)
    assert trio.current_time() - begun == pytest.approx(CONVERT_S)
    assert await convert_between(CHAIN, Slow(), {"a": 1}, 1, 2) == {"a": 1}


async def test_programs_that_do_not_compile_are_refused() -> None:
    await check_conversions(CHAIN, RealJq())
    assert await program_problems(CHAIN, RealJq()) == ()
    chain = ConversionChain(2, (Conversion(2, (".", "del(", ".a |")),))
    problems = await program_problems(chain, RealJq())
    assert [each.partition(": jq")[0] for each in problems] == [
        "openapi/conversions/v2.yaml: conversions[1]",
        "openapi/conversions/v2.yaml: conversions[2]",
    ]
    with pytest.raises(ArtifactError, match=r"v2\.yaml: conversions\[1\]: .*; openapi/conversions/v2\.yaml: conv"):
        await check_conversions(chain, RealJq())


@given(
    steps=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    start=st.integers(1, 6),
    settings=st.dictionaries(st.text(max_size=3), st.integers(), min_size=1, max_size=3),
)
def test_every_program_after_the_version_runs_once_in_order(
    steps: list[int], start: int, settings: dict[str, JsonValue]
) -> None:
    chain = ConversionChain(
        len(steps) + 1,
        tuple(
            Conversion(at + 2, tuple(f'.["log"] += ["{at + 2}.{number}"]' for number in range(count)))
            for at, count in enumerate(steps)
        ),
    )
    settings.pop("log", None)
    expected = [f"{at + 2}.{number}" for at, count in enumerate(steps) if at + 2 > start for number in range(count)]

    async def run() -> tuple[JsonObject, int]:
        return await convert(chain, RealJq(), dict(settings), start)

    if start > chain.current:
        with pytest.raises(ConversionError):
            trio.run(run)
        return
    found, version = trio.run(run)
    assert version == chain.current
    assert found == ({**settings, "log": expected} if expected and settings else settings)
