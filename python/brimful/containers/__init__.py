"""Collections larger than memory, one module each, and their common base."""
