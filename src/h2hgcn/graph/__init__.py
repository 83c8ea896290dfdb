"""A graph as layers want it."""
