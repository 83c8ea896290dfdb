"""Files of graphs that are damaged at random, and known graphs in files of many dialects."""

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from faults_trials import MEMORY, Part, peak

Draw = random.Random


def _table(text: str) -> bytes:
    return text.encode()


def _parquet(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _networkx(kind: str) -> bytes:
    import networkx as nx

    file = io.BytesIO()
    graph = nx.karate_club_graph()
    (nx.write_graphml if kind == "graphml" else nx.write_gexf)(graph, file)
    return file.getvalue()


def _market(form: str, symmetry: str) -> bytes:
    import scipy.io
    import scipy.sparse as sp

    dense = np.triu(np.arange(49).reshape(7, 7) % 5, 1)
    dense = dense + dense.T if symmetry == "symmetric" else dense
    file = io.BytesIO()
    scipy.io.mmwrite(file, dense if form == "array" else sp.coo_array(dense), symmetry=symmetry)
    return file.getvalue()


_EDGES = "source,target,weight\n" + "".join(f"a{k},a{k * 7 % 20},{k / 4}\n" for k in range(1, 30))
_QUOTED = "".join(f'"Node; {k}","Node, ""{k * 3 % 20}"""\n' for k in range(30))
_IDS = [f"a{k}" for k in range(30)]


def _seeds() -> dict[str, bytes]:
    """An intact file of each format."""
    pairs = np.stack([np.arange(30), np.arange(30) * 7 % 20], 1)
    features = "id,x,y\n" + "".join(f"a{k},{k / 3:.3f},{k % 4}\n" for k in range(30))
    return {
        "e.csv": _table(_EDGES),
        "e.tsv": _table(_EDGES.replace(",", "\t")),
        "e.txt": _table("# a comment\n" + _EDGES.replace(",", " ").partition("\n")[2]),
        "q.csv": _table(_QUOTED),
        "e.csv.gz": gzip.compress(_table(_EDGES), mtime=0),
        "e.parquet": _parquet({"source": _IDS[1:], "target": _IDS[:-1], "weight": np.arange(29.0)}),
        "e.npy": _npy(pairs),
        "e.npz": _npz(edges=pairs, x=np.eye(30, dtype=np.float32), y=np.arange(30) % 3),
        "e.graphml": _networkx("graphml"),
        "e.gexf": _networkx("gexf"),
        "e.mtx": _market("coordinate", "general"),
        "s.mtx": _market("array", "symmetric"),
        "x.csv": _table(features),
        "x.parquet": _parquet({"id": _IDS, "x": np.arange(30.0), "y": np.arange(30)}),
        "x.npy": _npy(np.arange(60.0).reshape(30, 2)),
        "y.csv": _table("id,label,split\n" + "".join(f"a{k},{'ab'[k % 2]},train\n" for k in range(30))),
        "settings.toml": _table('[model]\ndim = 4\ndropout = 0.5\n[training]\nepochs = 3\nfanout = "2,2"\n'),
        "points.csv": _table("id,x1,x2\n" + "".join(f"a{k},{k / 99:.4f},{-k / 70:.4f}\n" for k in range(30))),
        "points.npz": _npz(points=np.eye(3) / 2, id=np.arange(3), coordinates=np.array("poincare")),
    }


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# What readers stumble over.
_PIECES = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b'""', b"\r", b"\n\n", b"\t", b"#", b"%", b"nan", b"inf", b"-1",
    b"1e999", b"9" * 30, b"9" * 5000, b"0x10", b",,,", b";", b"'", b"<", b"&a;", b"]]>", b"<!--", b"[" * 3000, b"{",
    b"\x1b[31m", b"true", b" ", b"a" * 70_000, "é日🦊".encode(), b"-0", b"1_000", b"1.", b".5", b"null",
    b"\\N", b"--", b"/*",
)  # fmt: skip


def damaged(content: bytes, draw: Draw) -> bytes:
    """A file with one to four random damages."""
    data = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        place = draw.randrange(len(data) + 1)
        length = draw.choice([1, 1, 2, 8, 64, 1000])
        kind = draw.randrange(8)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = data[place : place + length] * draw.choice([1, 2, 50])
        elif kind == 4:
            data[place:place] = draw.choice(_PIECES)
        elif kind == 5:
            data[place : place + length] = draw.randbytes(length)
        elif kind == 6:  # a number becomes another
            numbers = list(re.finditer(rb"[0-9]+", bytes(data)))
            if numbers:
                start, end = draw.choice(numbers).span()
                data[start:end] = draw.choice([b"0", b"-1", b"2147483648", b"9223372036854775808", b"1e400", b""])
        else:
            data[place : place + length] = b"\0" * length
    return bytes(data)


def _write_intact(folder: Path) -> None:
    for name, content in _seeds().items():
        (folder / name).write_bytes(content)


def load_damaged(number: int, base: Path, own: Path) -> str | None:
    """A damaged file is read, or refused with a message that names it, in time and in little memory."""
    from h2hgcn.datasets import load_graph
    from h2hgcn.embeddings import read_embeddings
    from h2hgcn.errors import DataError
    from h2hgcn.experiments.config import read_experiment, sections_of

    draw = Draw(number)
    name = sorted(path.name for path in base.iterdir())[number % len(list(base.iterdir()))]
    path, edges = own / name, base / "e.csv"
    path.write_bytes(damaged((base / name).read_bytes(), draw))
    try:
        if name.startswith("points"):
            read_embeddings(path, "poincare" if name.endswith("csv") else None)
        elif name.endswith("toml"):
            read_experiment(sections_of({"dataset": "disease"}), path)
        elif name.startswith("x"):
            load_graph(edges if not name.endswith("npy") else base / "e.npy", path, unlinked="keep")
        elif name.startswith("y"):
            load_graph(edges, labels=path, unlinked="keep")
        else:
            graph = load_graph(path, weights=draw.choice([None, None, True, False]))
            if len(graph.edge_index[0]) and int(graph.edge_index.max()) >= graph.num_nodes:
                return f"{name}: an edge leads out of the graph"
            if not bool(graph.x.isfinite().all()):
                return f"{name}: features hold NaN"
    except DataError as error:
        if name not in str(error) and "H2HGCN" not in str(error) and not name.endswith("toml"):
            return f"{name} is not named: {error}"
    except OSError as error:
        return f"{name}: {error!r}"
    if peak() * 2**20 > MEMORY + 100 * path.stat().st_size:
        return f"{name}: {peak():.0f} MB of memory for {path.stat().st_size} bytes"
    return None


# Differential loads: a graph that is known, written by other libraries in a dialect, comes back as it was.

Edges = list[tuple[Any, Any]]
_ODD = ("", " b", "a b", "a,b", "a;b", 'a"b', "é", "日", "-1", "007", "x#y", "1e3", "nan", "a|b", "'q'", "=1+1", "T")


def _known(draw: Draw, plain: bool) -> tuple[Edges, list[float]]:
    """Edges of a random graph, with ids that are whole numbers or texts, and weights."""
    count = draw.randrange(3, 30)
    ids: list[Any]
    if draw.random() < 0.4:
        ids = draw.sample(range(draw.choice([40, 10**6, 2**53, 2**62])), count)
    else:
        ids = [f"{'' if plain else draw.choice(_ODD)}n{k}" for k in range(count)]
    pairs = {tuple(draw.sample(ids, 2)) for _ in range(draw.randrange(2, 60))}
    edges = [pair for pair in sorted(pairs, key=str) if pair[::-1] not in pairs or str(pair[0]) < str(pair[1])]
    draw.shuffle(edges)
    return edges, [draw.choice([1.0, 0.5, 3.25, 1e-3, 7e5]) for _ in edges]


def _as_text(edges: Edges, weights: list[float], path: Path, draw: Draw) -> dict[str, Any]:
    """By Python's writer of CSV files."""
    delimiter = draw.choice([",", ",", ";", "\t", "|"])
    weighted, header = draw.random() < 0.5, draw.random() < 0.7
    file = io.StringIO()
    quoting: Any = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=draw.choice(["\n", "\r\n"]))
    if header:
        writer.writerow(["source", "target", "weight"][: 2 + weighted])
    writer.writerows([(*pair, weight)[: 2 + weighted] for pair, weight in zip(edges, weights, strict=True)])
    text = file.getvalue()
    if draw.random() < 0.2:
        text = text.rstrip("\r\n")
    if draw.random() < 0.2:
        text = "# a comment, of two; fields\n" + text
    data = (b"\xef\xbb\xbf" if draw.random() < 0.2 else b"") + text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    options = {"header": header, "weights": "column 3" if weighted and not header else weighted}
    return options | ({"delimiter": delimiter} if draw.random() < 0.5 else {})


def _as_parquet(edges: Edges, weights: list[float], path: Path, draw: Draw) -> dict[str, Any]:
    import pandas

    frame = pandas.DataFrame({"source": [a for a, _ in edges], "target": [b for _, b in edges], "weight": weights})
    compression: Any = draw.choice(["snappy", "gzip", None])
    frame.to_parquet(path, compression=compression, row_group_size=draw.choice([3, 1000]), index=False)
    return {"weights": True}


def _as_xml(edges: Edges, weights: list[float], path: Path, draw: Draw) -> dict[str, Any]:
    import networkx as nx

    graph = nx.Graph()
    graph.add_weighted_edges_from((str(a), str(b), weight) for (a, b), weight in zip(edges, weights, strict=True))
    (nx.write_graphml if path.suffix == ".graphml" else nx.write_gexf)(graph, path)
    return {"weights": True}


def _as_market(edges: Edges, weights: list[float], path: Path, draw: Draw) -> dict[str, Any]:
    import scipy.io
    import scipy.sparse as sp

    names = sorted({end for pair in edges for end in pair}, key=str)
    places = {name: place for place, name in enumerate(names)}
    rows, columns = ([places[pair[k]] for pair in edges] for k in (0, 1))
    upper = sp.coo_array((weights, (rows, columns)), shape=(len(names), len(names)))
    symmetric = draw.random() < 0.5
    matrix = (upper + upper.T) if symmetric else upper
    dense = draw.random() < 0.4
    scipy.io.mmwrite(path, matrix.toarray() if dense else matrix.tocoo(), symmetry="symmetric" if symmetric else None)
    edges[:] = [(places[a], places[b]) for a, b in edges]
    return {"weights": True, "directed": False}


def _as_arrays(edges: Edges, weights: list[float], path: Path, draw: Draw) -> dict[str, Any]:
    if isinstance(edges[0][0], str) and path.suffix == ".npy":
        edges[:] = [(int(str(a).rpartition("n")[2]), int(str(b).rpartition("n")[2])) for a, b in edges]
    if path.suffix == ".npy":
        del edges[1 if len(edges) == 2 else len(edges) :]  # two pairs could be read either way
        np.save(path, np.array(edges))
        return {"weights": False}
    np.savez(path, edges=np.array(edges), edge_weight=np.array(weights))
    return {"weights": True}


_WRITERS: tuple[tuple[str, Callable[..., dict[str, Any]]], ...] = (
    ("e.csv", _as_text), ("e.txt", _as_text), ("e.csv.gz", _as_text), ("e.tsv", _as_text),
    ("e.parquet", _as_parquet), ("e.graphml", _as_xml), ("e.gexf", _as_xml), ("e.mtx", _as_market),
    ("e.npz", _as_arrays), ("e.npy", _as_arrays),
)  # fmt: skip


def load_known(number: int, base: Path, own: Path) -> str | None:
    """A graph that another library wrote comes back with the same ids, edges and weights."""
    from h2hgcn.datasets import load_graph

    draw = Draw(number)
    name, write = _WRITERS[number % len(_WRITERS)]
    edges, weights = _known(draw, plain=write is _as_market)
    options = write(edges, weights, own / name, draw)
    graph = load_graph(own / name, **options)
    ids = graph.node_ids.tolist()
    given = graph.edge_weight.tolist() if "edge_weight" in graph else [1.0] * graph.edge_index.shape[1]
    found = {
        (str(ids[a]), str(ids[b])): np.float32(weight)
        for (a, b), weight in zip(graph.edge_index.T.tolist(), given, strict=True)
    }
    expected = {}
    for pair, weight in zip(edges, weights, strict=False):
        # in tables, blanks around an id are not part of it
        a, b = (str(end).strip() if write in (_as_text, _as_parquet) else str(end) for end in pair)
        expected[a, b] = np.float32(weight if options["weights"] else 1.0)
        if not graph.directed:
            expected[b, a] = expected[a, b]
    if found != expected:
        differing = sorted(set(found.items()) ^ set(expected.items()), key=str)[:4]
        return f"{name} ({json.dumps(options)}) was read as another graph: {differing}"
    return None


INPUTS = Part("damaged input files", 20_000, _write_intact, load_damaged)
LOADS = Part("known graphs in dialects of ten formats", 2_000, _write_intact, load_known)
