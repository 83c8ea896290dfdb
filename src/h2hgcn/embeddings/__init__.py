"""What is done with learned points: files, likely links, pictures and reports. Points may come from elsewhere, too."""

from h2hgcn.embeddings.disk import plot_disk, project_to_disk
from h2hgcn.embeddings.files import read_embeddings, write_embeddings
from h2hgcn.embeddings.layout import layout_in_disk
from h2hgcn.embeddings.nearest import recommend_links
from h2hgcn.embeddings.report import write_report

__all__ = [
    "layout_in_disk",
    "plot_disk",
    "project_to_disk",
    "read_embeddings",
    "recommend_links",
    "write_embeddings",
    "write_report",
]
