"""Arrays, sparse matrices, edges and node ids, checked before anything is computed with them."""

import zipfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.datasets.table_files import check_unpacked
from h2hgcn.datasets.tables import Ids, text_ids
from h2hgcn.errors import DataError

UNLABELLED = -1  # the class of a node that has no label
MASKS = ("train_mask", "val_mask", "test_mask")

# Of an unknown id: ids that are looked at together, those that are compared letter by letter, and how similar to be.
_IDS_AT_ONCE = 1 << 16
_COMPARED = 100
_SIMILAR = 0.6

# Unknown ids that a message names.
_NAMED = 3

_CSR_MEMBERS = {"indptr", "indices", "data", "shape"}


def load_arrays(path: Path) -> Any:
    """What a .npy or .npz file holds: an array, a matrix that ``scipy.sparse.save_npz`` wrote, or a dictionary of
    arrays.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_unpacked(path, sum(member.file_size for member in archive.infolist()))
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            members = {name: loaded[name] for name in loaded.files}
    except DataError:
        raise
    except Exception as error:  # NumPy lets through whatever zip, zlib and its parser of headers raise
        raise DataError(f"{path} cannot be read as NumPy arrays ({error}); write or download it again") from error
    if not ({"format", "shape", "data"} <= set(members) or set(members) >= _CSR_MEMBERS):
        return {name: member for name, member in members.items() if isinstance(member, np.ndarray)}
    try:
        matrix = sp.load_npz(path)
    except Exception as error:  # as with NumPy's files
        raise DataError(
            f"{path} cannot be read as a SciPy matrix ({error}); write it again with scipy.sparse.save_npz"
        ) from error
    return whole_matrix(matrix, str(path))


def to_numpy(values: Any) -> NDArray[Any]:
    """An array of a tensor, wherever it lies and whatever depends on it, or of anything that NumPy takes for one."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return np.asarray(values)


def load_named_array(path: Path, names: Sequence[str]) -> Any:
    """The array of a .npy file, the matrix of a SciPy file, or of a .npz file the array that has one of these names."""
    arrays = load_arrays(path)
    if not isinstance(arrays, dict):
        return arrays
    name = next((name for name in names if name in arrays), next(iter(arrays)) if len(arrays) == 1 else None)
    if name is None:
        raise DataError(f"{path} holds the arrays {', '.join(arrays)}; call one of them {names[0]!r}")
    return arrays[name]


def whole_matrix(matrix: Any, origin: str) -> Any:
    """The matrix itself, if it is sound: SciPy's compiled loops follow its indices wherever they lead."""
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"{origin}: entries of type {matrix.dtype}, but they must be real numbers")
    try:  # the checks fix small things in place, so they are run on a matrix that shares the arrays
        if matrix.format in ("csr", "csc", "bsr"):
            shared = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
            shared.check_format(full_check=True)
        elif matrix.format == "coo":
            type(matrix)((matrix.data, matrix.coords), shape=matrix.shape)
    except ValueError as error:
        raise DataError(f"{origin} is not a valid sparse matrix ({error}); build it again") from error
    return matrix


def plain_array(source: Any, origin: str) -> Any:
    """A NumPy array, or, of a sparse matrix or tensor, a SciPy matrix."""
    if sp.issparse(source):
        return whole_matrix(source, origin)
    if isinstance(source, torch.Tensor) and source.layout != torch.strided:
        entries = source.detach().cpu().to_sparse_coo().coalesce()
        if entries.sparse_dim() != 2 or entries.dense_dim():
            return to_numpy(entries.to_dense())
        return sp.coo_array((to_numpy(entries.values()), tuple(entries.indices().numpy())), shape=tuple(entries.shape))
    try:
        return to_numpy(source)
    except (TypeError, ValueError, RuntimeError):
        raise DataError(f"{origin} are no rows of equal length; give as much for every node") from None


def edge_ends(graph: Any, num_nodes: int | None = None) -> NDArray[np.int64]:
    """The two ends of every edge, ``(2, edges)``; ``num_nodes`` if the graph may not know it."""
    edge_index = torch.as_tensor(graph.edge_index).detach().cpu()
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise DataError(f"edge_index is {edge_index.dtype}; name nodes by whole numbers (torch.int64)")
    if edge_index.dim() != 2 or len(edge_index) != 2:
        raise DataError(f"edge_index has shape {tuple(edge_index.shape)}; give one row of sources and one of targets")
    ends: NDArray[np.int64] = edge_index.numpy().astype(np.int64, copy=False)
    check_nodes(graph, "edge_index", ends, num_nodes)
    return ends


def check_nodes(graph: Any, name: str, nodes: NDArray[np.int64], num_nodes: int | None = None) -> None:
    """Raises unless all of these nodes are nodes of the graph."""
    num_nodes = int(graph.num_nodes or 0) if num_nodes is None else num_nodes
    if nodes.size and (nodes.min() < 0 or nodes.max() >= num_nodes):
        wrong = nodes.min() if nodes.min() < 0 else nodes.max()
        raise DataError(f"{name} names node {wrong}, but the graph has {num_nodes} nodes; fix num_nodes or the edges")


def edge_weights(graph: Any) -> NDArray[np.float32] | None:
    """The weight of every edge, ``(edges)``, if the graph has any."""
    if getattr(graph, "edge_weight", None) is None:
        return None
    weights = torch.as_tensor(graph.edge_weight).detach().cpu()
    num_edges = graph.edge_index.shape[1]
    if weights.shape != (num_edges,):
        raise DataError(f"edge_weight has shape {tuple(weights.shape)}; give one number for each of {num_edges} edges")
    if not bool(weights.float().isfinite().all()):
        raise DataError("edge_weight holds numbers that are not finite in float32; fix or drop them")
    return weights.float().numpy()


def ids_of_array(array: Ids, origin: str) -> Ids:
    """The ids of an array; integers beyond 64 bits with a sign become texts, as those of a file do."""
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        return array.astype(np.str_)
    if array.dtype.kind not in "iuU":
        raise DataError(f"{origin} are of type {array.dtype}; node ids are integers or text")
    return array if array.dtype.kind == "U" else array.astype(np.int64)


def given_ids(values: Any, count: int, origin: str) -> Ids:
    """Ids that were given for the nodes 0, 1, 2, ..., one each."""
    ids = ids_of_array(to_numpy(values), origin)
    if ids.shape != (count,):
        raise DataError(f"{origin} have shape {ids.shape}, but there are {count} nodes; give one id each")
    return ids


def ids_of_objects(nodes: Sequence[Any], origin: str) -> Ids:
    """The ids of objects of any kind: integers if all are and fit into 64 bits, else texts."""
    if are_integers({type(node) for node in nodes}):
        nodes = [int(node) for node in nodes]
        with suppress(OverflowError):
            return np.array(nodes, dtype=np.int64)
    try:
        texts = pa.array([str(node) for node in nodes], pa.string())
    except UnicodeEncodeError as error:
        raise DataError(f"{origin}: an id is not Unicode text ({error}); rename it") from error
    return text_ids(texts, lambda text: origin)


def check_names(nodes: Sequence[Any], ids: Ids, origin: str) -> None:
    """Raises if different objects, such as 1 and "1", have the same id."""
    if len(np.unique(ids)) < len(nodes):
        name = Counter(ids.tolist()).most_common(1)[0][0]
        raise DataError(f"{origin}: several nodes have the name {name!r} when written as text; rename them")


def are_integers(kinds: set[type]) -> bool:
    return bool not in kinds and all(issubclass(kind, Integral) for kind in kinds)


def integers_in(texts: Ids) -> Ids | None:
    """The integers that the texts stand for, if all say nothing else: ``007`` and ``²`` are no such."""
    try:
        numbers = np.array([int(text) for text in texts.tolist()], dtype=np.int64)
    except (ValueError, OverflowError):
        return None
    return numbers if np.array_equal(numbers.astype(np.str_), texts) else None


def unknown_nodes(names: Sequence[Any], ids: Ids, what: str = "node") -> str:
    """What to say of ``names`` that are not among ``ids``: the first few, each with the most similar id."""
    distinct = list(dict.fromkeys(names))
    close = {name: closest_id(name, ids) for name in distinct[:_NAMED]}
    ordered = np.sort(ids)
    range_of_ids = f"ids go from {ordered[0]} to {ordered[-1]}"
    if len(distinct) == 1:
        name, near = distinct[0], close[distinct[0]]
        return f"there is no {what} {name!r}; {range_of_ids if near is None else f'did you mean {near!r}?'}"
    named = ", ".join(f"{name!r}{'' if near is None else f' (did you mean {near!r}?)'}" for name, near in close.items())
    more = f" and {len(distinct) - _NAMED:,} more" if len(distinct) > _NAMED else ""
    advice = "" if any(near is not None for near in close.values()) else f"; {range_of_ids}"
    return f"there are no {what}s {named}{more}{advice}"


def closest_id(name: Any, ids: Ids, similar: float = _SIMILAR) -> Any:
    """The id that was probably meant by one that is unknown: apart from case and blanks the same, or else similar; None
    if there is none.

    Similar integers are a matter of chance, so these are only recognized in another notation, such as 07.
    """
    wanted = str(name).strip().lower()
    if ids.dtype.kind != "U":
        try:
            near = float(wanted)
        except ValueError:
            return None
        return next(iter(ids[ids == near].tolist()), None)
    likely: list[tuple[float, str]] = []
    for start in range(0, len(ids), _IDS_AT_ONCE):
        block = np.ascontiguousarray(np.char.lower(np.char.strip(ids[start : start + _IDS_AT_ONCE])))
        same = np.flatnonzero(block == wanted)
        if len(same):
            return ids[start + same[0]].item()
        share = _letters_shared(wanted, block)
        best = np.argsort(-share, kind="stable")[:_COMPARED]
        likely += [(-share[k], ids[start + k].item()) for k in best.tolist() if share[k] >= similar]
        likely = sorted(likely)[:_COMPARED]
    by_text = {text.strip().lower(): text for _, text in reversed(likely)}
    close = get_close_matches(wanted, by_text, n=1, cutoff=similar)
    return by_text[close[0]] if close else None


def _letters_shared(wanted: str, texts: Ids) -> Any:
    """An upper bound of difflib's similarity of a text and each of many: it disregards the order of letters."""
    if not texts.dtype.itemsize:
        return np.zeros(len(texts))
    letters = texts.view(np.uint32).reshape(len(texts), -1)
    shared = np.zeros(len(texts))
    for letter, count in Counter(wanted).items():
        shared += np.minimum((letters == ord(letter)).sum(axis=1), count)
    return 2 * shared / np.maximum(len(wanted) + (letters != 0).sum(axis=1), 1)
