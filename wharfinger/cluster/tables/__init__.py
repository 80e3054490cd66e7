"""Tables of rows with revisions, snapshots that cost nothing, watches and change streams (spec/schedulers D.1)."""
