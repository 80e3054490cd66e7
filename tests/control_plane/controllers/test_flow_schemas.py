"""The condition ``Dangling`` of FlowSchemas. It is True while the priority level does not exist.

The recording ``recorded_answers/recordings/hunt3-kinds-others.jsonl`` contains the condition of a real API server.
"""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import conditions_of, key, look, obj, open_cluster, settle
from wharfinger.formats.json.value import JsonObject

VERSION = "flowcontrol.apiserver.k8s.io/v1"


async def test_a_flow_schema_dangles_while_its_priority_level_is_missing(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        spec: JsonObject = {"priorityLevelConfiguration": {"name": "l"}, "matchingPrecedence": 9000}
        limited: JsonObject = {"limitResponse": {"type": "Reject"}}
        await client.create(obj(VERSION, "FlowSchema", "s", "", spec=spec))
        await settle()
        assert conditions_of(await look(client, VERSION, "FlowSchema", "s"))["Dangling"] == ("True", "NotFound")
        level = obj(VERSION, "PriorityLevelConfiguration", "l", "", spec={"type": "Limited", "limited": limited})
        await client.create(level)
        await settle()
        assert conditions_of(await look(client, VERSION, "FlowSchema", "s"))["Dangling"] == ("False", "Found")
        await client.delete(await key(client, VERSION, "PriorityLevelConfiguration", "l", ""))
        await client.delete(await key(client, VERSION, "FlowSchema", "s", ""))
        await settle()
        assert await look(client, VERSION, "FlowSchema", "s") is None
