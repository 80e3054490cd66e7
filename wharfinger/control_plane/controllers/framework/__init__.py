"""What every controller uses: its queue of work, its view of the cluster, questions about objects, conditions, and the
annotations that steer a simulation.

The lowest room of ``controllers``.
"""
