"""The group batch: Jobs and CronJobs.

May import ``api.apps`` and ``api.core``.
"""
