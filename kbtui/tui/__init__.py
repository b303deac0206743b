"""The viewer: reads the store, inserts commands, and never imports torch, sqlmodel or git."""
