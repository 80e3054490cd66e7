"""The reasons of Events are those that docs/events.md lists, and they fit the rules of the API server."""

import re

from tests.programs import ROOT
from wharfinger.runtime.cluster_events.reasons import EventReason, EventType


def test_the_document_lists_exactly_these_reasons() -> None:
    text = (ROOT / "docs" / "events.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (Normal|Warning) \| (.*) \|$", text, re.MULTILINE)
    assert rows == [(str(reason), str(reason.type), reason.meaning) for reason in EventReason]


def test_reasons_have_the_form_of_kubernetes() -> None:
    for reason in EventReason:
        assert re.fullmatch(r"([A-Z][a-z]+)+", reason), reason
        assert 0 < len(reason.action) <= 128
        assert reason.type in EventType
