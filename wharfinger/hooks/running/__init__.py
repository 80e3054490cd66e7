"""Running a hook and taking what it left: finding and asking hooks, the process with its files and logs, results, patches of
objects and values, and the inbox of events.

May import ``watching`` and below.
"""
