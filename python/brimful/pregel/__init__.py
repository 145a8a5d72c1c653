"""Pregel: vertex programs that compute in supersteps and send messages to vertices they name."""
