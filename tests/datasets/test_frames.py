"""Tables in memory: which columns are ids, and that ids stay as they are."""

import pyarrow as pa
import pytest

from h2hgcn.datasets import DataError, load_graph

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")

PEOPLE = pandas.DataFrame(
    [("ann", "bob"), ("bob", "cid"), ("cid", "dan"), ("ann", "dan")], columns=["source", "target"]
)
PAPERS = pandas.DataFrame({"citing": [5, 7, 9], "cited": [7, 9, 20]})
X = pandas.DataFrame({"a": [1.5, 2, 3, 4], "b": [0, 1, 0, 1]}, index=["dan", "cid", "bob", "ann"])


class Other:
    """A frame of another library, which shares its data in Arrow's format."""

    def __init__(self, table):
        self.columns = table.column_names
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class Older:
    """A frame that speaks the older protocol alone."""

    def __init__(self, table):
        self.columns = table.column_names
        self.__dataframe__ = table.__dataframe__


@pytest.mark.parametrize(
    "kind",
    [
        lambda frame: frame,
        pa.table,
        lambda frame: pa.table(frame).to_batches()[0],
        lambda frame: Other(pa.table(frame)),
        lambda frame: Older(pa.table(frame)),
    ],
    ids=["pandas", "arrow", "batch", "stream", "interchange"],
)
def test_frames_of_any_library(kind):
    graph = load_graph(
        kind(PEOPLE), kind(X.reset_index(names="id")), kind(pandas.DataFrame({"id": ["bob"], "y": ["z"]}))
    )
    assert graph.node_ids.tolist() == ["ann", "bob", "cid", "dan"]
    assert graph.edge_index.tolist() == load_graph([tuple(row) for row in PEOPLE.to_numpy()]).edge_index.tolist()
    assert graph.x.tolist() == [[4, 1], [3, 0], [2, 1], [1.5, 0]]
    assert graph.feature_names == ["a", "b"]
    assert graph.y.tolist() == [-1, 0, -1, -1]


@pytest.mark.parametrize(
    ("sources", "targets", "ids"),
    [
        ([1, 2], [2, 3], [1, 2, 3]),
        ([1.0, 2.0], [2, 3], [1, 2, 3]),  # a column that had gaps once
        (["1", "2"], ["2", "3"], ["1", "2", "3"]),
        (["007", "7"], ["7", " 7"], [" 7", "007", "7"]),
        ([1, 2], ["2", "x"], ["1", "2", "x"]),
        (pandas.array([1, 2], "UInt64"), [2, 3], [1, 2, 3]),
        (pandas.Categorical(["b", "a"]), ["a", "c"], ["a", "b", "c"]),
    ],
)
def test_ids_stay_as_they_are(sources, targets, ids):
    graph = load_graph(pandas.DataFrame({"source": sources, "target": targets}))
    assert graph.node_ids.tolist() == ids


def test_columns_and_weights():
    frame = pandas.DataFrame({"amount": [0.5, 0.25], "to_": ["b", "c"], "from_": ["a", "b"]})
    graph = load_graph(frame, columns=("from_", "to_"), weights="amount", directed=True)
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_weight.tolist() == [0.5, 0.25]
    assert load_graph(pandas.DataFrame([[4, 5], [5, 6]]), columns=(0, 1)).node_ids.tolist() == [4, 5, 6]
    by_column = load_graph(frame, columns=("from_", "to_"), weights=frame["amount"])
    assert by_column.edge_weight.tolist() == [0.5, 0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    "features",
    [
        X,
        X.rename_axis("id"),
        X.reset_index(names="person"),
        X.reset_index(names="node")[["a", "node", "b"]],
        X.reset_index(names="person").set_axis([3, 4, 8, 9]),  # what is left of other rows
        X.rename_axis("person").assign(extra=0).drop(columns="extra"),
    ],
)
def test_ids_of_features_are_found(features):
    assert load_graph(PEOPLE, features).x.tolist() == [[4, 1], [3, 0], [2, 1], [1.5, 0]]


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (pandas.DataFrame({"u": [1, 2, 3, 4]}, index=[20, 9, 7, 5]), [4, 3, 2, 1]),
        (pandas.DataFrame({"paper": [20, 9, 7, 5], "u": [1, 2, 3, 4]}), [4, 3, 2, 1]),
        (pandas.Series([1, 2, 3, 4], index=[20, 9, 7, 5]), [4, 3, 2, 1]),
    ],
)
def test_integers_may_be_ids(features, expected):
    assert load_graph(PAPERS, features).x.flatten().tolist() == expected


def test_rows_without_ids_belong_to_the_nodes_in_order():
    edges = [(0, 1), (1, 2)]
    assert load_graph(edges, pandas.DataFrame({"a": [2, 1, 5], "b": [1, 1, 0]})).x.tolist() == [[2, 1], [1, 1], [5, 0]]
    assert load_graph(edges, labels=pandas.Series([1, 0, -1])).y.tolist() == [1, 0, -1]
    assert load_graph(edges, labels=pandas.DataFrame({"label": ["z", None, "q"]})).y.tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    "labels",
    [
        pandas.Series(["q", "z"], index=[9, 7]),
        pandas.DataFrame({"kind": ["q", "z"]}, index=[9, 7]),
        pandas.DataFrame({"paper": [9, 7], "label": ["q", "z"]}),
        pandas.DataFrame({"label": ["q", "z"], "id": [9, 7], "year": [1, 2]}),
        pandas.DataFrame({"name": ["a", "b"], "label": ["q", "z"]}, index=pandas.Index([9, 7], name="id")),
    ],
)
def test_labels_by_id(labels):
    graph = load_graph(PAPERS, labels=labels)
    assert graph.y.tolist() == [-1, 1, 0, -1]
    assert graph.label_names == ["q", "z"]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (
            PEOPLE[["source"]],
            {},
            "the DataFrame has the columns source (texts); an edge needs two columns of node",
        ),
        (pandas.DataFrame(), {}, "the DataFrame has the columns (none); an edge needs two"),
        (PEOPLE["source"].set_axis(list("abcd")), {}, "the Series has the columns value (texts)"),
        (
            pandas.DataFrame({"w": [0.5], "n": [1]}),
            {},
            "the columns w (numbers), n (integers); an edge needs two columns",
        ),
        (PEOPLE.set_index(["source", "target"]).assign(w=1), {}, "columns=(source, target), after df.reset_index()"),
        (PEOPLE, {"columns": ("source", "to")}, "the DataFrame has no column 'to'; it has source, target"),
        (PEOPLE, {"header": True}, "header for delimited files"),
        (PEOPLE.iloc[:0], {}, "the DataFrame has no rows"),
        (PEOPLE.replace("cid", None), {}, "the DataFrame, row 2: no node id"),
        (pandas.DataFrame({"source": ["a", 1], "target": [1, 2]}), {}, "column source with type object"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), {}, "Duplicate column names found: ['a', 'a']"),
        (PEOPLE, {"features": X.reset_index(drop=True)}, "pass them with ids, as in a column 'id'"),
        (PEOPLE, {"features": X.iloc[:2]}, "the DataFrame of features: node 'ann' has no features (and 1 more)"),
        (PEOPLE, {"features": X.assign(b="blue")}, "the DataFrame of features, row 0: column 'b' holds 'blue'"),
        (PEOPLE, {"features": X.set_index("b", append=True)}, "has an index of 2 levels"),
        (PEOPLE, {"features": X.assign(a=[1, None, 2, 3])}, "row 1: no finite number in column 'a'"),
        (PEOPLE, {"features": X.rename({"ann": "bob"})}, "the id 'bob' comes a second time"),
        (PAPERS, {"labels": pandas.Series(["q"], index=["x"])}, "the id 'x' is not an integer, but those of the edges"),
    ],
)
def test_what_is_wrong_is_said(frame, options, message):
    with pytest.raises(DataError) as error:
        load_graph(frame, **options)
    assert message in str(error.value)
