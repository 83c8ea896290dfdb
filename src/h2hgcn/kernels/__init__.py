"""The hot formulas, fast on a CPU."""
