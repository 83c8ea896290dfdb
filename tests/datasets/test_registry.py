import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from h2hgcn.datasets.registry import DownloadError, SourceFile, SourceFolder, cache_folder, data_root, download, unzip
from h2hgcn.errors import DataError

CONTENT = bytes(range(256)) * 4000


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT at every address; half of it at /broken, an archive at /archive.zip, nothing at /missing, and no
    length that makes sense at /length-abc and the like.
    """

    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        content = archive() if self.path == "/archive.zip" else CONTENT
        self.send_response(200)
        _, is_odd, length = self.path.partition("/length-")
        self.send_header("Content-Length", length if is_odd else str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if self.path == "/broken" else content)

    def log_message(self, *arguments):
        pass


def archive():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("SET/a.txt", "1")
        opened.writestr("SET/b.txt", "2")
    return file.getvalue()


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def checksum():
    return hashlib.sha256(CONTENT).hexdigest()


def test_download(server, tmp_path):
    path = tmp_path / "deep" / "file"
    download(f"{server}/file", path, checksum())
    assert path.read_bytes() == CONTENT
    assert [file.name for file in path.parent.iterdir()] == ["file"]
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode  # other users may read it, too


@pytest.mark.parametrize(
    ("address", "sha256", "message"),
    [
        ("/broken", None, "could not be downloaded"),
        ("/file", "0" * 64, "does not match the known hash: expected 0000"),
        ("/length-abc", None, "could not be downloaded"),
        ("/missing", None, "404"),
    ],
)
def test_a_failed_download_leaves_nothing(server, tmp_path, address, sha256, message):
    with pytest.raises(DownloadError, match=message):
        download(server + address, tmp_path / "file", sha256)
    assert not any(tmp_path.iterdir())


def test_files_are_found_downloaded_and_checked(server, tmp_path):
    folder = SourceFolder("family", "Set/raw", [SourceFile("file", checksum(), f"{server}/file")])
    assert folder.find(tmp_path) is None
    assert folder.obtain(tmp_path) == tmp_path / "family/Set/raw"
    assert folder.find(tmp_path) == tmp_path / "family/Set/raw"
    assert folder.find(tmp_path / "family") == tmp_path / "family/Set/raw"  # PyG's own root does as well
    (tmp_path / "family/Set/raw/file").write_bytes(b"something else")
    with pytest.raises(DataError, match="it is damaged or another version"):
        folder.obtain(tmp_path)


@pytest.mark.parametrize(("address", "is_there"), [("/file", True), ("/missing", False)])
def test_optional_files_are_downloaded_where_they_can_be_had(server, tmp_path, address, is_there):
    files = [SourceFile("needed", url=f"{server}/file"), SourceFile("more", url=server + address, optional=True)]
    folder = SourceFolder("family", "Set", files).obtain(tmp_path)
    assert (folder / "needed").is_file()
    assert (folder / "more").is_file() == is_there


def test_files_in_an_archive(server, tmp_path):
    files = [SourceFile(name, archive=f"{server}/archive.zip") for name in ("a.txt", "b.txt")]
    folder = SourceFolder("tu", "SET/raw", files).obtain(tmp_path)
    assert [(folder / name).read_text() for name in ("a.txt", "b.txt")] == ["1", "2"]
    with pytest.raises(DataError, match=r"does not hold c\.txt, but a\.txt, b\.txt"):
        SourceFolder("tu", "X/raw", [SourceFile("c.txt", archive=f"{server}/archive.zip")]).obtain(tmp_path)
    (tmp_path / "half.zip").write_bytes(archive()[:50])
    with pytest.raises(DownloadError, match="not a whole zip archive"):
        unzip(tmp_path / "half.zip", {"a.txt": tmp_path / "a.txt"})


def corrupt(packed):
    """The first member's bytes, after its header of 30 bytes and its name, changed."""
    return packed[:36] + bytes(byte ^ 0xFF for byte in packed[36:60]) + packed[60:]


def encrypt(packed):
    """Says that the member is encrypted, in both of its headers."""
    directory = packed.index(b"PK\1\2")
    return packed[:6] + b"\1" + packed[7 : directory + 8] + b"\1" + packed[directory + 9 :]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("damage", [corrupt, encrypt])
def test_members_that_cannot_be_unpacked(tmp_path, damage, method):
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", method) as opened:
        opened.writestr("a.txt", CONTENT)
    (tmp_path / "odd.zip").write_bytes(damage((tmp_path / "whole.zip").read_bytes()))
    with pytest.raises(DownloadError, match=r"odd.zip is not a whole zip archive"):
        unzip(tmp_path / "odd.zip", {"a.txt": tmp_path / "a.txt"})
    assert not (tmp_path / "a.txt").exists()


def test_without_a_network_the_error_says_what_to_put_where(tmp_path):
    folder = SourceFolder("family", "Set/raw", [SourceFile("file", None, "http://127.0.0.1:9/file")])
    with pytest.raises(DataError, match=rf"Put file into {tmp_path}/family/Set/raw, or name the folder .* --data"):
        folder.obtain(tmp_path)
    with pytest.raises(DataError, match="no address to download them from"):
        SourceFolder("family", "Set", [SourceFile("file")]).obtain(tmp_path)


def test_downloads_go_to_the_cache_if_the_root_is_read_only(server, tmp_path, monkeypatch):
    monkeypatch.setattr("h2hgcn.datasets.registry.is_writable", lambda folder: folder != tmp_path)
    folder = SourceFolder("family", "Set", [SourceFile("file", None, f"{server}/file")])
    assert folder.obtain(tmp_path) == cache_folder() / "family" / "Set"
    assert not any(tmp_path.iterdir())
    assert folder.find(tmp_path) == cache_folder() / "family" / "Set"


def test_the_root(tmp_path, monkeypatch):
    monkeypatch.setenv("H2HGCN_DATA", str(tmp_path))
    assert data_root() == tmp_path
    assert data_root(tmp_path.parent) == tmp_path.parent
    monkeypatch.setenv("H2HGCN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"nowhere \(from \$H2HGCN_DATA\) does not exist"):
        data_root()
    monkeypatch.delenv("H2HGCN_DATA")
    assert data_root() == cache_folder()
