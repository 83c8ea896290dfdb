"""Points that are too many for memory, block by block into a file."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from h2hgcn.embeddings.columns import id_column, label_column
from h2hgcn.embeddings.coordinates import Points, check_coordinates, convert
from h2hgcn.embeddings.table_files import parquet_table
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

STREAMED = (".parquet", ".npy")


def stream_embeddings(
    path: Path,
    blocks: Iterable[Points],
    ids: Any,
    labels: Any = None,
    coordinates: str | None = None,
    *,
    space: str = "lorentz",
) -> None:
    """Writes what ``write_embeddings`` writes to a Parquet file, or points alone to an NPY file, by its ending.

    ``blocks`` are the points of all ``ids``, in their order.
    """
    if path.suffix.lower() not in STREAMED:
        raise DataError(f"{path}: points of any number are kept in {' or '.join(STREAMED)} files; end the name so")
    wanted = check_coordinates(coordinates or ("euclidean" if check_coordinates(space) == "euclidean" else "lorentz"))
    converted = (convert(block, wanted, space) for block in blocks)
    if path.suffix.lower() == ".npy":
        _write_npy(path, converted, len(ids))
        return
    columns = {"id": id_column(ids, len(ids))}
    if labels is not None:
        columns["label"] = label_column(labels, len(ids))
    _write_parquet(path, converted, pa.table(columns), wanted)


def _write_npy(path: Path, blocks: Iterable[Points], count: int) -> None:
    with atomic_write(path) as file:
        for number, block in enumerate(blocks):
            if not number:
                descr = np.lib.format.dtype_to_descr(block.dtype)
                header = {"descr": descr, "fortran_order": False, "shape": (count, block.shape[1])}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(np.ascontiguousarray(block).data)


def _write_parquet(path: Path, blocks: Iterable[Points], columns: pa.Table, coordinates: str) -> None:
    first, writer = 0, None
    with atomic_write(path) as file:
        for block in blocks:
            table = parquet_table(columns.slice(first, len(block)), block, pa.table({}), coordinates)
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            first += len(block)
        if writer is not None:
            writer.close()
