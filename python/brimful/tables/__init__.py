"""Edge tables: files and objects as streams of Arrow batches, and graphs as objects again."""
