"""One package while the daemon runs: its state as frozen structs, the state machine that decides about it, and the instance
that has both. The folder also has the kept answers of enabled scripts, and waits that the stop of the daemon interrupts.

This folder may import ``why`` and the folders below it in the layers of pyproject.toml. The state machine and the structs are
pure.
"""
