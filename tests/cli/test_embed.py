"""``h2hgcn embed``: files, coordinates, ids."""

import numpy as np
import pytest
import scipy.sparse as sp

from h2hgcn.embeddings import read_embeddings
from h2hgcn.embeddings.coordinates import lorentz_tensor
from h2hgcn.training import load_run
from h2hgcn.training.artifacts import make_texts_plain


@pytest.mark.parametrize("coordinates", ["lorentz", "poincare", "klein", "tangent"])
@pytest.mark.parametrize("suffix", ["parquet", "npz", "csv"])
def test_points_come_back_with_the_ids_and_labels_of_their_nodes(run, trained, tmp_path, suffix, coordinates):
    result = run("embed", trained / "nc", "--out", f"e.{suffix}", "--coordinates", coordinates)
    assert (result.stdout, result.stderr) == ("", f"40 points: e.{suffix}\n")
    read = read_embeddings(tmp_path / f"e.{suffix}", coordinates)
    expected = load_run(trained / "nc")
    assert read.ids.tolist() == expected.data.node_ids.tolist()
    assert read.labels[:4].tolist() == ["red", "green", "blue", "red"]
    assert np.allclose(lorentz_tensor(read.points, coordinates), expected.embeddings, atol=1e-5)


def test_points_of_graphs(run, trained, shapes, tmp_path):
    assert run("embed", trained / "gc", "--out", "g.parquet").returncode == 0
    read = read_embeddings(tmp_path / "g.parquet")
    assert read.ids.tolist() == list(range(40))
    assert read.labels[:2].tolist() == ["0", "1"]


def test_points_of_new_nodes(run, files, trained):
    new = ("--edges", "new.csv", "--features", "newx.csv")
    assert run("embed", trained / "lp", *new, "--out", "n.csv").returncode == 0
    assert read_embeddings(files / "n.csv").ids.tolist() == ["n01", "n02", "new1", "new2"]


@pytest.mark.parametrize("coordinates", ["lorentz", "poincare"])
def test_points_of_a_converted_graph_go_to_the_file_block_by_block(run, files, trained, coordinates):
    graph = ("--features", "x.csv", "--labels", "y.csv")
    assert run("convert", "--edges", "my.csv", *graph, "--out", "big").returncode == 0
    embed = ("embed", trained / "nc", "--coordinates", coordinates, "--edges")
    assert run(*embed, "my.csv", *graph, "--out", "whole.parquet").returncode == 0
    result = run(*embed, "big", "--out", "parts.parquet")
    assert (result.returncode, result.stderr) == (0, "40 points: parts.parquet\n")
    assert run(*embed, "big", "--out", "parts.npy").returncode == 0
    whole, parts = (read_embeddings(files / f"{name}.parquet") for name in ("whole", "parts"))
    assert parts.coordinates == coordinates
    assert (parts.ids.tolist(), parts.labels.tolist()) == (whole.ids.tolist(), whole.labels.tolist())
    assert np.allclose(parts.points, whole.points, atol=1e-5)
    assert np.array_equal(np.load(files / "parts.npy"), parts.points)
    assert not [path for path in files.iterdir() if path.name.startswith((".", "tmp"))]


def test_points_alone_of_the_run_itself(run, trained, tmp_path):
    assert run("embed", trained / "lp", "--out", "p.npy").returncode == 0
    assert np.allclose(np.load(tmp_path / "p.npy"), load_run(trained / "lp").embeddings, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lp", "--out", "my.csv"], "my.csv is there already; name another file, or use --force"),
        (["lp", "--out", "."], "is a folder"),
        (["lp", "--out", "e.txt"], "end the name with one of these"),
        (["lp", "--out", "e.csv", "--coordinates", "round"], "'round' is not one of 'lorentz', 'poincare'"),
        (["lp", "--out", "e.csv", "--coordinates", "euclidean"], "euclidean"),
        (["gc", "--out", "e.csv", "--edges", "new.csv"], "is about graphs of a collection"),
        (["lp"], "Missing option '--out'"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, files, trained, arguments, message):
    before = {path: path.read_bytes() for path in files.iterdir()}
    result = run("embed", trained / arguments[0], *arguments[1:])
    assert result.returncode == 2
    assert message in result.stderr
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_points_of_cells_go_back_to_their_file(run, files):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    random = np.random.RandomState(0)
    adata = anndata.AnnData(random.rand(40, 6).astype(np.float32))
    adata.obs["kind"] = np.resize(["B", "T"], 40)
    adata.obs["site"] = adata.obs["kind"].astype("category")
    adata.obsp["connectivities"] = sp.csr_matrix(np.roll(np.eye(40), 1, 0) + np.roll(np.eye(40), -1, 0))
    for frame in (adata.obs, adata.var):
        make_texts_plain(frame)
    adata.write_h5ad(files / "cells.h5ad", convert_strings_to_categoricals=False)
    train = ("train", "--edges", "cells.h5ad", "--labels", "kind", "--features", "X", "--task", "nc")
    result = run(*train, "--epochs", 1, "--search", "none", "--out", "r")
    assert result.returncode == 0, result.stderr
    assert run("embed", "r", "--out", "cells.h5ad").returncode == 2  # it is there already
    assert run("embed", "r", "--out", "cells.h5ad", "--force", "--coordinates", "tangent").returncode == 0
    written, trained_run = anndata.read_h5ad(files / "cells.h5ad"), load_run(files / "r")
    assert np.array_equal(written.X, adata.X)
    assert written.obs["site"].tolist() == adata.obs["kind"].tolist()
    assert written.obsm["X_h2hgcn"].shape == (40, trained_run.embeddings.shape[1] - 1)
    (files / "cells.h5ad").unlink()
    assert run("embed", "r", "--out", "new.h5ad").returncode == 0
    new = anndata.read_h5ad(files / "new.h5ad")
    assert new.obs_names.tolist() == trained_run.nodes.tolist()
    assert set(new.obs["label"]) == {"B", "T"}
