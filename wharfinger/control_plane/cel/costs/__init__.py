"""What an expression may cost, estimated by sizes before it runs and counted by calls while it runs.

May import ``checking``, ``syntax`` and ``values``.
"""
