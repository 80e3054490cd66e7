"""The daemon's knowledge of one package while it runs: the instance with its tools, its tasks' reporter, the vote of its
enabled script, and waits that end when the daemon stops.

May import ``why`` and below.
"""
