"""Tables of rows with revisions, and their snapshots, watches and change streams."""
