"""The output for people: tables, explanations and statistics, with secrets redacted.

May import ``fields``.
"""
