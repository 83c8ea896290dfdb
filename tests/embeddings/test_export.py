import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import random_points

from h2hgcn.embeddings import read_embeddings, write_embeddings
from h2hgcn.embeddings.coordinates import convert
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.geometry import lorentz

ENDINGS = ["parquet", "npz", "csv"]
IDS = {
    "integers": [3, -1, 2**62, 0],
    "texts": ["b", "ä, \"x\"", "007", "two\nlines"],
    "numerals": ["12", "7", "100", "0"],
    "words": ["null", "NA", "nan", "true"],
}  # fmt: skip


def sample(dtype="float32"):
    return random_points(4, 3, 4.0).numpy().astype(dtype)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("labels", [None, ["a", None, "", "NA"], [1, 2, 2, 1], [None] * 4])
def test_what_was_written_is_read(tmp_path, ending, ids, labels):
    path = write_embeddings(tmp_path / f"points.{ending}", sample(), ids, labels)
    found = read_embeddings(path)
    np.testing.assert_array_equal(found.points.astype("float32"), sample())
    assert found.ids.tolist() == ids
    assert found.coordinates == "lorentz"
    wanted = None if labels is None else [None if label is None else str(label) for label in labels]
    assert (None if found.labels is None else found.labels.tolist()) == wanted


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts, min_size=4, max_size=4, unique=True), st.lists(st.none() | texts, min_size=4, max_size=4))
def test_any_text_survives(tmp_path, ending, ids, labels):
    found = read_embeddings(
        write_embeddings(tmp_path / f"any.{ending}", sample("float64"), ids, labels, overwrite=True)
    )
    np.testing.assert_array_equal(found.points, sample("float64"))
    assert found.ids.tolist() == ids
    assert found.labels.tolist() == labels


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("coordinates", ["poincare", "klein", "tangent"])
def test_other_coordinates_lead_back(tmp_path, ending, coordinates):
    path = write_embeddings(tmp_path / f"points.{ending}", sample(), range(4), coordinates=coordinates)
    found = read_embeddings(path, coordinates)
    assert found.points.shape == (4, 3)
    np.testing.assert_allclose(convert(found.points, "lorentz", found.coordinates), sample(), rtol=1e-5)


@pytest.mark.parametrize("ending", ENDINGS)
def test_euclidean_points_and_further_columns(tmp_path, ending):
    extra = {"degree": np.array([1, 2, 3, 4]), "split": ["train", "val", "", "test"], "score": [0.5, np.nan, 1, 2]}
    points = np.random.default_rng(0).normal(size=(4, 2))
    path = write_embeddings(tmp_path / f"points.{ending}", points, list("abcd"), extra=extra, space="euclidean")
    found = read_embeddings(path, "euclidean")
    np.testing.assert_array_equal(found.points, points)
    for name, values in extra.items():
        np.testing.assert_array_equal(found.extra[name], values)


def test_parquet_columns_and_metadata(tmp_path):
    table = pq.read_table(write_embeddings(tmp_path / "points.parquet", sample(), range(4), list("abca")))
    assert table.column_names == ["id", "label", "x0", "x1", "x2", "x3"]
    assert table.schema.metadata == {b"coordinates": b"lorentz", b"dim": b"3"}
    assert str(table.schema.field("x0").type) == "float"


def test_far_points_are_written_in_double_precision_or_refused():
    far = lorentz.exp_origin(random_points(3, 2, 1.0)[:, 1:] * 0 + 11).numpy()
    assert (np.linalg.norm(convert(far.astype("float32"), "klein"), axis=1) < 1).all()
    beyond = lorentz.exp_origin(random_points(3, 2, 1.0)[:, 1:] * 0 + 20).numpy()
    with pytest.raises(DataError, match="use Lorentz coordinates"):
        convert(beyond, "klein")


def test_a_file_that_is_there_is_kept(tmp_path):
    path = write_embeddings(tmp_path / "points.csv", sample(), range(4))
    with pytest.raises(DataError, match="is there already"):
        write_embeddings(path, sample(), range(4))
    assert write_embeddings(path, sample(), list("abcd"), overwrite=True) == path
    assert read_embeddings(path).ids.tolist() == list("abcd")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "points.xls"}, r"\.parquet, \.npz, \.csv"),
        ({"coordinates": "sphere"}, "not known"),
        ({"coordinates": "euclidean"}, "lorentz points have no euclidean coordinates"),
        ({"space": "euclidean", "coordinates": "poincare"}, "euclidean points have no poincare coordinates"),
        ({"ids": [1, 2, 3]}, "there are 3 ids for 4 points"),
        ({"ids": [1, 2, 2, 3]}, "the id 2 is there twice"),
        ({"ids": [1, "a", 2, 3]}, "values of one kind"),
        ({"ids": ["a", None, "b", "c"]}, "gap in row 1"),
        ({"ids": [0.5, 1, 2, 3]}, "integers or texts"),
        ({"ids": np.array([2**64 - 1, 0, 1, 2], np.uint64)}, "as texts"),
        ({"ids": ["\ud800", "a", "b", "c"]}, "cannot be used"),
        ({"labels": [0.5, 1, 2, 3]}, "labels are of type double"),
        ({"extra": {"x1": [1, 2, 3, 4]}}, "cannot be called 'x1'"),
        ({"extra": {"more": [1, None, 3, 4]}}, "gap in row 1"),
    ],
)
def test_bad_input_is_refused_and_nothing_written(tmp_path, changes, message):
    arguments = {"path": "points.csv", "points": sample(), "ids": range(4)} | changes
    arguments["path"] = tmp_path / arguments["path"]
    with pytest.raises(DataError, match=message):
        write_embeddings(**arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"id,x1\n1,0.5\n", "does not say which coordinates"),
        ("a.csv", b"id,x0,x1\n1,1,zero\n", "a.csv: the column 'x1' holds something else"),
        ("a.csv", b"id,x0,x1\n1,1,\n", "or a gap"),
        ("a.csv", b"id,x0,x2\n1,1,0\n", "without a gap"),
        ("a.csv", b"x0,x1\n1,0\n", "needs one column 'id'"),
        ("a.csv", b"id,x0,x1\n1,3,0\n", "a.csv: row 0 of the points is not on the hyperboloid"),
        ("a.csv", b"id,x0,x1\n1,1,0\n1,1,0\n", "a.csv: the id 1 is there twice"),
        ("a.csv", b"", "not a whole CSV file"),
        ("a.parquet", b"PAR1", "not a whole Parquet file"),
        ("a.npz", b"PK", "not a whole NPZ file"),
        ("a.txt", b"", "end the name"),
    ],
)
def test_bad_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_embeddings(tmp_path / name)


@pytest.mark.parametrize("flag", [0x01, 0x20])  # encrypted, and patched: Python's zip files do not know these
def test_archives_that_cannot_be_opened_are_refused(tmp_path, flag):
    data = bytearray(write_embeddings(tmp_path / "a.npz", sample(), range(4)).read_bytes())
    for header in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[header] |= flag
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"a\.npz is not a whole NPZ file"):
        read_embeddings(tmp_path / "a.npz")


def test_unknown_coordinates_name_the_file(tmp_path):
    np.savez(tmp_path / "a.npz", points=sample(), id=np.arange(4), coordinates=np.array("polar"))
    with pytest.raises(DataError, match=r"a\.npz: the coordinates 'polar' are not known"):
        read_embeddings(tmp_path / "a.npz")


def test_coordinates_that_contradict_the_file(tmp_path):
    path = write_embeddings(tmp_path / "points.parquet", sample(), range(4), coordinates="klein")
    with pytest.raises(DataError, match="holds klein coordinates, not poincare"):
        read_embeddings(path, "poincare")
    with pytest.raises(DataError, match="does not exist"):
        read_embeddings(tmp_path / "none.csv")


def test_coordinates_of_another_space_are_told_their_names():
    with pytest.raises(DataError, match="euclidean points have no poincare coordinates; theirs are called euclidean"):
        convert(np.zeros((2, 2)), "poincare", "euclidean")
    with pytest.raises(DataError, match="theirs are called lorentz, poincare, klein and tangent"):
        convert(np.array([[1.0, 0.0]]), "euclidean")


def test_files_of_other_people_are_read(tmp_path):
    """Categories, dates, gaps, labels that became floats, and columns of no use."""
    table = pa.table(
        {
            "id": pa.array(["a", "b", "c"]).dictionary_encode(),
            "label": pa.array([1.0, None, float("nan")]),
            "x1": [0.1, 0.2, 0.3],
            "x2": pa.array([0, 0, 0]),
            "kind": pa.array(["x", None, "y"]).dictionary_encode(),
            "size": pa.array([1, None, 3]),
            "sure": pa.array([True, None, False]),
            "nothing": pa.nulls(3),
            "when": pa.array([0, 86_400, None], pa.timestamp("s")),
            "lists": pa.array([[1], [2], [3]]),
        }
    )
    pq.write_table(table, tmp_path / "theirs.parquet")
    with pytest.warns(DataWarning, match="the column 'lists' is left out: the values of 'lists' are of type list"):
        read = read_embeddings(tmp_path / "theirs.parquet", "poincare")
    assert read.ids.tolist() == ["a", "b", "c"]
    assert read.labels.tolist() == ["1", None, None]
    assert read.extra["kind"].tolist() == ["x", None, "y"]
    assert read.extra["sure"].tolist() == [True, None, False]
    assert read.extra["when"][1].startswith("1970-01-02")
    np.testing.assert_array_equal(read.extra["size"], [1, np.nan, 3])
    assert np.isnan(read.extra["nothing"]).all()
    assert "lists" not in read.extra


def test_a_file_without_rows_is_said_to_be_one(tmp_path):
    (tmp_path / "none.csv").write_text("id,x1,x2\n")
    with pytest.raises(DataError, match=r"none\.csv has no rows"):
        read_embeddings(tmp_path / "none.csv", "poincare")


def test_ids_of_a_csv_file_keep_their_zeros(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("id,x1,x2\n007,0.1,0.2\n7,0.3,0.1\n")
    assert read_embeddings(path, "poincare").ids.tolist() == ["007", "7"]
    path.write_text("id,x1,x2\n10,0.1,0.2\n7,0.3,0.1\n")
    assert read_embeddings(path, "poincare").ids.tolist() == [10, 7]
