"""Tests of the room of shards."""
