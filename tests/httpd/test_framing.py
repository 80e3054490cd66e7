"""The progress of a response, as the two framings report it: the framing with h11, and the fast path without h11.
:mod:`~tests.httpd.test_lean` compares the bytes that they write.
"""

import h11

from tests.httpd.raw import GET
from wharfinger.httpd.framing import H11Framing, LeanFraming
from wharfinger.httpd.messages import Response


def test_an_answer_begins_with_its_head_and_is_over_with_its_end() -> None:
    machine = h11.Connection(h11.SERVER)
    assert not H11Framing(machine).begun
    machine.receive_data(GET % b"/")
    machine.next_event()
    machine.next_event()
    for framing in (H11Framing(machine), LeanFraming()):
        assert (framing.begun, framing.over) == (False, False)
        framing.head(Response(200, b"a"), close=False)
        assert (framing.begun, framing.over) == (True, False)
        framing.data(b"a")
        framing.end()
        assert (framing.begun, framing.over) == (True, True)
