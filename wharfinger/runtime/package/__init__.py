"""One package while the daemon runs: its state as frozen records, the machine that decides about it, and the shell around both.
The vote of its enabled script, and waits that end when the daemon stops, are here as well.

May import ``why`` and below. The machine and the records are pure.
"""
