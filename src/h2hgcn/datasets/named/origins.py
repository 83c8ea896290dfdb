"""Where the files of the named datasets come from. Imports nothing that takes long, so that a list is there at once."""

from dataclasses import dataclass

from h2hgcn.datasets.named.source_files import SourceFile, SourceFolder

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

_PLANETOID_FOLDERS = {"cora": "Cora", "pubmed": "PubMed"}

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
    files = [
        SourceFile(f"ind.{name}.{part}", checksum, f"{_PLANETOID}/ind.{name}.{part}")
        for part, checksum in _PLANETOID_CHECKSUMS[name].items()
    ]
    return SourceFolder("planetoid", f"{_PLANETOID_FOLDERS[name]}/raw", files)


def tu_files(name: str) -> SourceFolder:
    facts = TU_FACTS[name]
    parts = [
        "A",
        "graph_indicator",
        "graph_labels",
        "node_labels",
        *(["node_attributes"] if facts.with_attributes else []),
    ]
    archive = f"{_TU}/{facts.folder}.zip"
    files = [SourceFile(f"{facts.folder}_{part}.txt", archive=archive) for part in parts]
    return SourceFolder("tu", f"{facts.folder}/raw", files)


def disease_files(name: str) -> SourceFolder:
    files = [
        SourceFile(
            f"{name}.{part}",
            _DISEASE_CHECKSUMS.get(f"{name}.{part}"),
            f"{_HGCN}/{name}/{name}.{part}",
            optional=optional,
        )
        for part, optional in (("edges.csv", False), ("labels.npy", False), ("feats.npz", name == "disease_nc"))
    ]
    return SourceFolder("hgcn", name, files)


def airport_files() -> SourceFolder:
    return SourceFolder("hgcn", "airport", [SourceFile("airport.npz")], hint=_AIRPORT_HINT)
