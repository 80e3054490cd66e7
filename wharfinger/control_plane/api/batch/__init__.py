"""The group batch: Jobs and CronJobs.

This folder may import ``api.apps`` and ``api.core``.
"""
