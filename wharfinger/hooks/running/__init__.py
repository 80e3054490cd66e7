"""Running hooks and reading their results.

The modules find and ask hooks, run the process with its files and logs, read results, apply patches of objects and values,
and keep the inbox of events. May import ``watching`` and below.
"""
