"""The group autoscaling: HorizontalPodAutoscalers, their metrics, and the conversion between v1 and v2.

This folder may import ``api.core``.
"""
