"""What outlives a run: the ledger (git), the index over it (SQLite) and the artifacts beside them."""
