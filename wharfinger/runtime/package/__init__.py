"""What the daemon knows of one package while it runs: the instance with its tools, what it tells its reporter, the vote of
its enabled script, and how its waits are stopped.

May import ``why`` and below.
"""
