"""The look of a drawn graph: color is never the only sign of a state, and every text is readable on its background."""

import re
from itertools import combinations
from xml.etree import ElementTree as ET

from wharfinger.debug.graph.look import HEADS, SHIFTS, SIGNS, class_of, style_lines
from wharfinger.debug.graph.model import EdgeKind, NodeState


def test_every_state_has_its_own_sign() -> None:
    assert set(SIGNS) == set(NodeState)
    assert len(set(SIGNS.values())) == len(NodeState)


def test_every_kind_of_edge_has_its_own_head_and_lane() -> None:
    assert set(HEADS) == set(SHIFTS) == set(EdgeKind)
    assert len(set(HEADS.values())) == len(EdgeKind)
    assert all(abs(one - other) >= 5 for one, other in combinations(SHIFTS.values(), 2))


def test_all_signs_and_heads_are_valid_xml() -> None:
    for piece in (*SIGNS.values(), *HEADS.values()):
        assert ET.fromstring(piece).attrib  # noqa: S314 - no foreign XML


def test_the_style_sheet_is_deterministic_and_covers_every_class() -> None:
    sheet = "\n".join(style_lines())
    assert sheet == "\n".join(style_lines())
    assert sheet.count("{") == sheet.count("}")
    light, _, dark = sheet.partition("@media (prefers-color-scheme: dark) {")
    for state in NodeState:
        for part in (light, dark):
            assert f".{class_of(state)} .box {{ fill: " in part
            assert f".{class_of(state)} .sign path {{ stroke: " in part
    assert "url(" not in sheet
    assert "@import" not in sheet


def test_texts_and_signs_contrast_with_their_background() -> None:
    light, _, dark = "\n".join(style_lines()).partition("@media")
    for part in (light, dark):
        paper = colour(part, r"^\.paper { fill: (\S+);")
        texts = [colour(part, r"^text { fill: (\S+);"), colour(part, r"^\.small { fill: (\S+);")]
        assert all(contrast(text, paper) >= 4.5 for text in texts)
        assert contrast(colour(part, r"^\.line, .* { stroke: (\S+);"), paper) >= 3
        assert contrast(colour(part, r"^\.held \.line, .* { stroke: (\S+);"), paper) >= 3
        for state in NodeState:
            box = re.search(rf"^\.{class_of(state)} \.box {{ fill: (\S+); stroke: (\S+);", part, re.MULTILINE)
            assert box is not None
            assert all(contrast(text, box[1]) >= 4.5 for text in texts)
            assert contrast(box[2], box[1]) >= 3
            assert contrast(box[2], paper) >= 3


def colour(sheet: str, pattern: str) -> str:
    found = re.search(pattern, sheet, re.MULTILINE)
    assert found is not None
    return found[1]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors by the Web Content Accessibility Guidelines."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(written: str) -> float:
    parts = [int(written[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_style_sheet_can_be_limited_to_some_pictures() -> None:
    lines = list(style_lines(".graph"))
    assert ".graph .solid, .graph .hollow { stroke-width: 1.5; }" in lines
    assert all(line.startswith((".graph ", "@media", "}")) for line in lines)
    assert len(lines) == len(list(style_lines()))
