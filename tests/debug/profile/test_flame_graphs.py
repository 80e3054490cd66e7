"""Profiles in the formats of other tools."""

from tests.debug.profile.profiles import PROFILE
from wharfinger.debug.profile.flame_graphs import SPEEDSCOPE, collapsed_stacks, speedscope_file
from wharfinger.formats.json.value import as_object, find_list, find_object


def test_stacks_are_written_in_the_collapsed_format() -> None:
    """The format separates frames by semicolons, so these are replaced in names. The last word of a line is the weight."""
    assert collapsed_stacks(PROFILE) == (
        "main thread (waiting);run (trio/_core/_run.py:10);EpollIOManager.get_events (trio/_core/_io_epoll.py:243) 7500000\n"
        "main thread;run (trio/_core/_run.py:10);Worker.step (wharfinger/queue/worker.py:20);loads (json/__init__.py:300)"
        " 1500000\n"
        "main thread;run (trio/_core/_run.py:10);Worker.step (wharfinger/queue/worker.py:20);"
        "Worker.step (wharfinger/queue/worker.py:25) 750000\n"
        "other threads;read,all (wharfinger/kube/names.py:7) 500000\n"
        "main thread;run (trio/_core/_run.py:10) 250000\n"
    )


def test_profiles_are_written_in_the_speedscope_format() -> None:
    """Each profile has as many weights as samples. A sample refers to frames in the shared list, the outermost first."""
    found = speedscope_file(PROFILE)
    assert found["$schema"] == SPEEDSCOPE
    frames = find_list(find_object(found, "shared"), "frames")
    assert frames[4] == {"name": "loads", "file": "json/__init__.py", "line": 300}
    profiles = [as_object(each, "profile") for each in find_list(found, "profiles")]
    assert [each["name"] for each in profiles] == ["main thread (waiting)", "main thread", "other threads"]
    assert profiles[1] == {
        "type": "sampled",
        "name": "main thread",
        "unit": "seconds",
        "startValue": 0,
        "endValue": 2.5,
        "samples": [[0, 2, 4], [0, 2, 3], [0]],
        "weights": [1.5, 0.75, 0.25],
    }
