"""The names that ``h2hgcn.cli`` imports."""

from h2hgcn.experiments.reproduce import TABLES, paper_table

__all__ = ["TABLES", "paper_table"]
