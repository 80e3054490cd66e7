"""The recorder: it keeps the events of each package in memory and in a log on disk, so that they can be replayed.

May import ``core`` and the layers below it. The recorder observes the code that steps the state machines; the state machines do
not know it.
"""
