import json
from dataclasses import replace

from tests.debug.support.canned import CannedInspector
from tests.debug.support.listed import listed
from tests.debug.support.samples import DAEMON
from wharfinger.runtime.daemon_details import LeaderSnapshot


async def test_the_leader_is_listed_with_its_lease() -> None:
    assert await listed(CannedInspector(), "leader") == ""
    leader = LeaderSnapshot(lease="system/wharfinger", leader="host_1", fence=3, identity="host_2")
    inspector = CannedInspector(base=replace(DAEMON, leader=leader))
    _, row = (await listed(inspector, "leader")).splitlines()
    assert row.split() == ["system/wharfinger", "host_1", "3", "host_2", "standby"]
    assert await listed(inspector, "leader", None, "name") == "host_1\n"
    found = json.loads(await listed(inspector, "leader", None, "json"))
    assert (found["leader"], found["fence"]) == ("host_1", 3)
