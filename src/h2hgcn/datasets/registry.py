"""The named datasets: one table, where their files come from, and how they are found. Imports no PyTorch."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from os.path import expanduser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import platformdirs
from rich.console import Console
from rich.progress import Progress

from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write
from h2hgcn.options import suggestion

if TYPE_CHECKING:
    from torch_geometric.data import Data, Dataset

    from h2hgcn.datasets.collection import GraphCollection

ROOT_VARIABLE = "H2HGCN_DATA"
CACHE_VARIABLE = "H2HGCN_CACHE"


def data_root(root: str | Path | None = None) -> Path:
    """The folder of the data: the one given, ``$H2HGCN_DATA``, or the cache."""
    given = root if root is not None else os.environ.get(ROOT_VARIABLE)
    if not given:
        return cache_folder()
    folder = Path(expanduser(given))
    if not folder.is_dir():
        source = "" if root is not None else f" (from ${ROOT_VARIABLE})"
        raise DataError(f"the data folder {folder}{source} does not exist; create it, or name another one")
    return folder


def cache_folder() -> Path:
    """``$H2HGCN_CACHE``, or this system's cache folder: downloads and processed copies, safe to delete."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(expanduser(given)) if given else platformdirs.user_cache_path("h2hgcn", appauthor=False)


def is_writable(folder: Path) -> bool:
    """Whether files can be put there; a folder that does not exist counts by its nearest parent that does."""
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK)


_TIMEOUT_SECONDS = 30

# What damaged, encrypted or oddly packed members end in.
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


class DownloadError(DataError):
    """A file that could not be had; nothing was left behind."""


def download(url: str, path: Path, sha256: str | None = None) -> None:
    """Writes ``url`` to ``path``, if all of it arrives and its checksum fits."""
    import pooch  # here and not above: with requests it takes a while, and serves this alone
    import requests

    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS)
    with TemporaryDirectory() as folder:
        try:
            with Console(stderr=True).status(f"downloading {path.name}"):
                downloaded = Path(pooch.retrieve(url, sha256, path.name, folder, downloader=downloader))
        except (requests.RequestException, ValueError) as error:  # of values: another checksum
            raise DownloadError(f"{url} could not be downloaded ({error})") from error
        with downloaded.open("rb") as source, atomic_write(path) as file:
            shutil.copyfileobj(source, file)


def unzip(archive: Path, wanted: dict[str, Path]) -> None:
    """Takes members, by the names their paths end with, out of an archive; their own checksums are verified."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = {Path(name).name: name for name in opened.namelist()}
            for name, path in wanted.items():
                if name not in members:
                    raise DownloadError(f"{archive.name} does not hold {name}, but {', '.join(sorted(members))}")
                with opened.open(members[name]) as source, atomic_write(path) as file:
                    shutil.copyfileobj(source, file)
    except _ZIP_FAULTS as error:
        raise DownloadError(f"{archive.name} is not a whole zip archive ({error}); try again") from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class SourceFile:
    """A file, its checksum where it is known, and its address where there is one."""

    name: str
    sha256: str | None = None
    url: str | None = None
    archive: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class SourceFolder:
    """The files of one dataset: ``family`` is what PyG's classes call ``root``, ``path`` is inside it."""

    family: str
    path: str
    files: Sequence[SourceFile]
    hint: str = ""

    def find(self, root: str | Path | None) -> Path | None:
        """The first folder that holds all the files, or None; nothing is downloaded."""
        needed = [file.name for file in self.files if not file.optional]
        bases = dict.fromkeys([data_root(root), cache_folder()])
        folders = (folder for base in bases for folder in (base / self.family / self.path, base / self.path))
        return next((folder for folder in folders if all((folder / name).is_file() for name in needed)), None)

    def obtain(self, root: str | Path | None) -> Path:
        """The folder that holds all the files, downloaded if they are not there yet, and checked."""
        folder = self.find(root) or self._download(root)
        for file in self.files:
            path = folder / file.name
            if file.sha256 is not None and path.is_file() and sha256_of(path) != file.sha256:
                raise DataError(
                    f"{path} has the checksum {sha256_of(path)}, but {file.sha256} was expected: it is damaged or "
                    "another version; put the original in its place, or delete it so that it is downloaded"
                )
        return folder

    def _download(self, root: str | Path | None) -> Path:
        base = data_root(root)
        folder = (base if is_writable(base) else cache_folder()) / self.family / self.path
        missing = [file for file in self.files if not file.optional and not (folder / file.name).is_file()]
        try:
            for file in missing:
                if file.url is not None:
                    download(file.url, folder / file.name, file.sha256)
                elif file.archive is None:
                    raise DownloadError("there is no address to download them from")
            for archive in dict.fromkeys(file.archive for file in missing if file.archive is not None):
                with TemporaryDirectory() as temporary:
                    packed = Path(temporary) / "archive.zip"
                    download(archive, packed)
                    unzip(packed, {file.name: folder / file.name for file in missing if file.archive == archive})
        except (DownloadError, OSError) as error:
            names = ", ".join(file.name for file in missing)
            raise DataError(
                f"files are missing, and could not be downloaded: {error}. Put {names} into {folder}{self.hint}, or "
                "name the folder that holds them with --data or $H2HGCN_DATA"
            ) from error
        for file in self.files:
            if file.optional and file.url is not None and not (folder / file.name).is_file():
                with suppress(DownloadError, OSError):  # whoever loads the files says what it goes without
                    download(file.url, folder / file.name, file.sha256)
        return folder


# The addresses of PyG's Planetoid and TUDataset.
_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_TU = "https://www.chrsmrrs.com/graphkerneldatasets"
_HGCN = "https://raw.githubusercontent.com/HazyResearch/hgcn/master/data"

_PLANETOID_CHECKSUMS = {
    "cora": {
        "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
        "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    },
    "pubmed": {
        "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
    },
}

_DISEASE_CHECKSUMS = {
    "disease_lp.edges.csv": "b5b7e41bbfd28fc7f61590e5587622103ee9c3aa1b59911c74873a6f328dca07",
    "disease_lp.feats.npz": "b4a726b13598c036a75e1b49f08e92820553b972966ad950b8d4d5416eb339f8",
    "disease_lp.labels.npy": "8f2b26602764fbb785b93775d9f71194f1f36920e185af8bc5c31aea07dde858",
    "disease_nc.edges.csv": "08b2dcf00db1e6a8f491af5294dee98197f1251a63bc9190d05fb4e77507782e",
    "disease_nc.labels.npy": "70be7f91a854d924f3b7ac423615d75b1f9ee2506261c44113de27cc2caadd51",
}

_AIRPORT_HINT = (
    " (airport.npz with the arrays edges (k × 2), feats (n × 5) and labels_nc (n), converted from the pickled networkx"
    " graph airport.p of HGCN's repository)"
)


@dataclass(frozen=True)
class TUFacts:
    """What a collection must come to, since its archive has no published checksum."""

    folder: str
    num_graphs: int
    num_nodes: int
    num_edges: int
    num_classes: int
    with_attributes: bool = False


TU_FACTS = {
    "dd": TUFacts("DD", 1178, 334_925, 843_046, 2),
    "proteins": TUFacts("PROTEINS_full", 1113, 43_471, 81_044, 2),
    "enzymes": TUFacts("ENZYMES", 600, 19_580, 37_282, 6, with_attributes=True),
}


def planetoid_files(name: str) -> SourceFolder:
    checksums = {f"ind.{name}.{part}": checksum for part, checksum in _PLANETOID_CHECKSUMS[name].items()}
    files = [SourceFile(file, checksum, f"{_PLANETOID}/{file}") for file, checksum in checksums.items()]
    return SourceFolder("planetoid", {"cora": "Cora/raw", "pubmed": "PubMed/raw"}[name], files)


def tu_files(name: str) -> SourceFolder:
    facts = TU_FACTS[name]
    parts = ["A", "graph_indicator", "graph_labels", "node_labels", *["node_attributes"] * facts.with_attributes]
    files = [SourceFile(f"{facts.folder}_{part}.txt", archive=f"{_TU}/{facts.folder}.zip") for part in parts]
    return SourceFolder("tu", f"{facts.folder}/raw", files)


def disease_files(name: str) -> SourceFolder:
    files = [
        SourceFile(
            file, _DISEASE_CHECKSUMS.get(file), f"{_HGCN}/{name}/{file}", optional=file not in _DISEASE_CHECKSUMS
        )
        for file in (f"{name}.edges.csv", f"{name}.labels.npy", f"{name}.feats.npz")
    ]
    return SourceFolder("hgcn", name, files)


def airport_files() -> SourceFolder:
    return SourceFolder("hgcn", "airport", [SourceFile("airport.npz")], hint=_AIRPORT_HINT)


Root = str | Path | None


@dataclass(frozen=True)
class NamedDataset:
    """How a dataset is loaded, what it is good for, and where its files are; generated ones have none.

    ``protocols`` are the splits of published figures, by task; tasks that are not named have clean ones.
    """

    description: str
    size: str
    tasks: tuple[str, ...]
    load: Callable[[Root], Data | GraphCollection]
    files: SourceFolder | None = None
    protocols: Mapping[str, str] = field(default_factory=dict)

    def is_here(self, root: Root = None) -> bool:
        """Whether it can be loaded without the network."""
        return self.files is None or self.files.find(root) is not None

    def can_be_downloaded(self) -> bool:
        """Whether its files have addresses."""
        return self.files is not None and all(file.url or file.archive for file in self.files.files)


def _call(place: str, *arguments: Any) -> Any:
    """Calls ``module.function`` of this package, imported only now, since PyTorch takes seconds."""
    module, function = place.split(".")
    return getattr(import_module(f"h2hgcn.datasets.{module}"), function)(*arguments)


def _synthetic(root: Root) -> Any:
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("generating random graphs", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return _call("synthetic.load_synthetic", cache_folder() / "processed", 6000, 0, show)


def _published(files: Callable[..., SourceFolder], load: str, *name: str, **protocols: str) -> dict[str, Any]:
    """The files of a ``NamedDataset`` and the function that reads them."""
    return {"load": partial(_call, f"benchmarks.{load}", *name), "files": files(*name), "protocols": protocols}


def _hyperbolic(num_edges: int) -> NamedDataset:
    return NamedDataset(
        "random graph with a hidden hierarchy, generated",
        f"{num_edges // 10:,} nodes, about {num_edges:,} edges",
        ("lp", "nc"),
        lambda root: _call("hyperbolic.generate_hyperbolic", num_edges),
    )


DATASETS = {
    "disease": NamedDataset(
        "spreading of a disease on a random tree, generated", "2,500 nodes, 2,499 edges", ("lp", "nc"),
        lambda root: _call("disease.generate_disease"),
    ),
    "disease_lp": NamedDataset(
        "HGCN's disease tree for link prediction", "2,665 nodes, 2,664 edges", ("lp", "nc"),
        **_published(disease_files, "load_disease_file", "disease_lp", lp="legacy"),
    ),
    "disease_nc": NamedDataset(
        "HGCN's disease tree for node classification", "1,044 nodes, 1,043 edges", ("nc", "lp"),
        **_published(disease_files, "load_disease_file", "disease_nc"),
    ),
    "airport": NamedDataset(
        "HGCN's airports and flight routes", "3,188 nodes, 18,631 edges", ("lp", "nc"),
        **_published(airport_files, "load_airport", lp="legacy"),
    ),
    "cora": NamedDataset(
        "citations of machine-learning papers", "2,708 nodes, 5,278 edges", ("lp", "nc"),
        **_published(planetoid_files, "load_planetoid", "cora", lp="legacy", nc="planetoid"),
    ),
    "pubmed": NamedDataset(
        "citations of papers on diabetes", "19,717 nodes, 44,324 edges", ("lp", "nc"),
        **_published(planetoid_files, "load_planetoid", "pubmed", lp="legacy", nc="planetoid"),
    ),
    "hyperbolic-10k": _hyperbolic(10_000),
    "hyperbolic-100k": _hyperbolic(100_000),
    "hyperbolic-1m": _hyperbolic(1_000_000),
    "hyperbolic-10m": _hyperbolic(10_000_000),
    "synthetic": NamedDataset("HGNN's random graphs of three kinds, generated", "18,000 graphs", ("gc",), _synthetic),
    "dd": NamedDataset(
        "proteins, enzymes or not (large graphs)", "1,178 graphs", ("gc",),
        **_published(tu_files, "load_tu", "dd", gc="fair-comparison"),
    ),
    "proteins": NamedDataset(
        "proteins, enzymes or not", "1,113 graphs", ("gc",),
        **_published(tu_files, "load_tu", "proteins", gc="fair-comparison"),
    ),
    "enzymes": NamedDataset(
        "enzymes of six classes", "600 graphs", ("gc",),
        **_published(tu_files, "load_tu", "enzymes", gc="fair-comparison"),
    ),
}  # fmt: skip


def load_dataset(name: str | Data | Dataset, root: Root = None) -> Any:
    """A named dataset: a PyG ``Data``, or a collection of them; a PyG object comes back as it is.

    Files are looked for in ``root``, else in ``$H2HGCN_DATA``, else in the cache folder, and downloaded if they are
    in none. A graph has ``x``, ``y``, ``edge_index`` (every edge in both directions), ``name``, ``directed`` and
    ``notes``.
    """
    from torch_geometric.data import Data, Dataset

    if isinstance(name, Data | Dataset):
        return name
    known = str(name).lower()
    if known not in DATASETS:
        raise DataError(f"{name!r} is not a named dataset (load_graph reads files); {suggestion(known, DATASETS)}")
    loaded = DATASETS[known].load(root)
    loaded.name = known
    if isinstance(loaded, Dataset):
        loaded.data_root = root
    if isinstance(loaded, Data):
        loaded.directed = False
        loaded.notes = getattr(loaded, "notes", [])
    return loaded
