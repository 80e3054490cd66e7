"""The memory of all pools: how much their processes take, and which idle ones are ended if it is too much.

A pool reports its processes, and asks before it starts another one. May import nothing else of this part.
"""
