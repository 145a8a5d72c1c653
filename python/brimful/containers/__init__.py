"""The collections larger than memory, each in a module of its own beside what they share."""
