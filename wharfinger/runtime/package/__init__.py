"""One package while the daemon runs: its state as frozen structs, the state machine that decides about it, and the instance
that has both. The folder also has the vote of the enabled script, and waits that end when the daemon stops.

This folder may import ``why`` and the folders below it in the layers of pyproject.toml. The state machine and the structs are
pure.
"""
