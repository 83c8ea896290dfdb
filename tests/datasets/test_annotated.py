"""AnnData objects and .h5ad files: graphs in, embeddings out, by the real library."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

import h2hgcn
from h2hgcn.datasets import load_graph
from h2hgcn.errors import DataError, DataWarning

anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
import pandas as pd  # noqa: E402  # which anndata brings

pytestmark = [
    pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning"),
    pytest.mark.filterwarnings("ignore:The 'mode.chained_assignment' option"),  # anndata's, with pandas 3
]

COUNT = 60


def cells(usual=True):
    """Cells on a ring with chords, in no order of their names."""
    random = np.random.RandomState(0)
    names = [f"cell{number}" for number in random.permutation(COUNT)]
    adata = anndata.AnnData(
        sp.csr_matrix(random.poisson(0.4, (COUNT, 30)).astype(np.float32)),
        obs=pd.DataFrame(
            {"kind": pd.Categorical(np.resize(["B", "T", "NK"], COUNT)), "size": random.rand(COUNT)}, names
        ),
    )
    near = sp.lil_matrix((COUNT, COUNT))
    for step in (1, 2, 9):
        for k in range(COUNT):
            near[k, (k + step) % COUNT] = near[(k + step) % COUNT, k] = 1 / (1 + step)
    adata.obsp["connectivities" if usual else "spatial"] = near.tocsr()
    adata.obsp["distances"] = near.tocsr() * 3
    adata.obsm["X_pca"] = random.normal(size=(COUNT, 8)).astype(np.float32)
    adata.obs.loc[names[5], "kind"] = np.nan
    return adata


def test_a_graph_of_cells():
    adata = cells()
    data = load_graph(adata, labels="kind")
    assert data.node_ids.tolist() == sorted(adata.obs_names)
    order = adata.obs_names.get_indexer(data.node_ids)
    assert np.array_equal(data.x.numpy(), adata.obsm["X_pca"][order])
    kinds = adata.obs["kind"].iloc[order]
    assert [None if y < 0 else data.label_names[y] for y in data.y.tolist()] == [
        k if isinstance(k, str) else None for k in kinds
    ]
    matrix = sp.coo_matrix((data.edge_weight.numpy(), data.edge_index.numpy()), (COUNT, COUNT)).tocsr()
    expected = adata.obsp["connectivities"][order][:, order]
    assert np.allclose(matrix.toarray(), expected.toarray())
    assert not data.directed


def test_what_it_is_made_of_can_be_chosen(tmp_path):
    adata = cells(usual=False)
    order = adata.obs_names.get_indexer(sorted(adata.obs_names))
    assert np.array_equal(load_graph(adata, "X", weights="spatial").x.to_dense().numpy(), adata.X.toarray()[order])
    sizes = load_graph(adata, ["size"], weights="distances")
    assert np.allclose(sizes.x.numpy()[:, 0], adata.obs["size"].to_numpy()[order])
    assert sizes.edge_weight.max() > 1
    assert load_graph(adata, False, weights="spatial").structural
    del adata.obsp["distances"]
    assert load_graph(adata, weights=False).edge_weight is None


def test_a_run_writes_its_embedding_back():
    adata = cells()
    before = adata.copy()
    run = h2hgcn.train(adata, epochs=2, search="none", dim=4)
    assert run.to_anndata(adata) is adata
    points = dict(zip(run.nodes.tolist(), run.embeddings.numpy(), strict=True))
    assert all(
        np.array_equal(row, points[name]) for name, row in zip(adata.obs_names, adata.obsm["X_h2hgcn"], strict=True)
    )
    assert adata.uns["X_h2hgcn"]["coordinates"] == "lorentz"
    assert np.array_equal(adata.obsm["X_pca"], before.obsm["X_pca"])
    run.to_anndata(adata, "tangent", key="X_flat")
    assert adata.obsm["X_flat"].shape == (COUNT, 4)


def test_other_observations():
    adata = cells()
    run = h2hgcn.train(adata, epochs=1, search="none", dim=4)
    other = adata[:10].copy()
    other.obs_names = ["stranger", *other.obs_names[1:]]
    with pytest.warns(DataWarning, match="1 of 10 observations are no nodes of the run; their points are NaN"):
        run.to_anndata(other)
    assert np.isnan(other.obsm["X_h2hgcn"]).all(1).tolist() == [True, *[False] * 9]
    other.obs_names = [f"s{k}" for k in range(10)]
    with pytest.raises(DataError, match="no observation of adata is a node of the run"):
        run.to_anndata(other)
    with pytest.raises(DataError, match="adata is a dict"):
        run.to_anndata({})
    new = run.to_anndata()
    assert new.obs_names.tolist() == run.nodes.tolist()


def without_graph():
    adata = cells()
    del adata.obsp["connectivities"], adata.obsp["distances"]
    return adata


def twice():
    adata = cells()
    adata.obs_names = ["a", "a", *adata.obs_names[2:]]
    return adata


@pytest.mark.filterwarnings("ignore:Observation names are not unique")
@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (without_graph, {}, r"obsp holds no graph; make one, as scanpy.pp.neighbors\(adata\) does"),
        (lambda: cells(usual=False), {}, r"obsp has spatial, distances; name the one with the edges"),
        (cells, {"weights": "near"}, "obsp has no 'near'; it has connectivities, distances"),
        (cells, {"labels": "sort"}, "obs has no column 'sort'; it has kind, size"),
        (cells, {"features": "X_umap"}, "obs has no column 'X_umap'"),
        (cells, {"features": ["kind"]}, "the node attribute 'kind' holds 'B', not a number"),
        (twice, {}, "a node id comes twice"),
    ],
)
def test_bad_objects(make, options, message):
    with pytest.raises(DataError, match=message):
        load_graph(make(), **options)


def test_bad_files(tmp_path, monkeypatch):
    (tmp_path / "broken.h5ad").write_bytes(b"no HDF5")
    with pytest.raises(DataError, match=r"broken.h5ad cannot be read as an AnnData file"):
        load_graph(tmp_path / "broken.h5ad")
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(DataError, match=r"pip install 'h2hgcn\[anndata\]'"):
        load_graph(tmp_path / "broken.h5ad")
