"""The output for people: tables, explanations and statistics, with secrets redacted.

This folder may import ``fields``.
"""
