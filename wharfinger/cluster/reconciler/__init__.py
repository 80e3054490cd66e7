"""The reconciler: it brings objects to the state of a table's rows, with retries, prunes and refreshes."""
