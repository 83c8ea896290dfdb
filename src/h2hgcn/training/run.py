"""A trained model with all that belongs to it."""

from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from h2hgcn.datasets.on_disk import is_graph, keep_graph
from h2hgcn.datasets.table_files import TextFormat
from h2hgcn.embeddings.coordinates import convert
from h2hgcn.embeddings.nearest import Direction, Rank, as_links, check_direction
from h2hgcn.errors import DataError
from h2hgcn.files import write_tensors
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.tasks.base import Problem
from h2hgcn.tasks.checks import check_same_columns
from h2hgcn.tasks.graphs import encode_graphs, graph_probabilities
from h2hgcn.tasks.links import LinkHead
from h2hgcn.tasks.model import Model, encode_nodes
from h2hgcn.tasks.neighborhoods import Neighborhoods
from h2hgcn.training.artifacts import coordinates_of, labels_of, write_layout, write_points, write_report_of
from h2hgcn.training.building import EncoderFactory, settings_from
from h2hgcn.training.folder import RunFolder
from h2hgcn.training.loop import evaluate, weights_of
from h2hgcn.training.names import NodeNames, chosen_graphs, ids_of
from h2hgcn.training.recommending import (
    RecommendedLinks,
    TopLinks,
    import_pandas,
    recommend_links_of,
    top_links_of,
)
from h2hgcn.training.settings import TrainingSettings, limited_threads

if TYPE_CHECKING:
    import pandas

    from h2hgcn.training.explaining import Explanation
    from h2hgcn.training.exporting import Exported
    from h2hgcn.training.new_nodes import ExtendedRun


# Columns of a split that name nodes or graphs.
_NAMING = ("source", "target", "node", "graph")

_NO_DATA = "the run does not hold its data; pass them: load_run(folder, data=...)"


class Run:
    """What ``fit`` returns and ``load_run`` reads: the selected weights, metrics, embeddings and predictions.

    ``metrics`` has ``"val"`` and ``"test"``, or the other ``parts`` of its task, ``history`` one entry an epoch,
    ``config`` what ``config.toml`` holds, ``result`` what ``result.json`` holds. A run that was interrupted has no test
    metrics, and ``finished`` is False. ``final`` is its final fit on all data, if there is one.
    """

    def __init__(
        self,
        model: Model,
        task: Any,
        config: dict[str, Any],
        result: dict[str, Any],
        history: list[dict[str, Any]],
        data: Any = None,
        problem: Problem | None = None,
        folder: Path | None = None,
    ) -> None:
        self.model, self.task, self.data, self.folder = model.eval(), task, data, folder
        self.config, self.result, self.history = config, result, history
        self._problem = problem
        self._final: Run | None = None

    def __repr__(self) -> str:
        name = self.result["selection"]
        scores = [f"{part} {name} {metrics[name]:.4f}" for part, metrics in self.metrics.items() if metrics]
        scores = scores or ["no epoch yet" if self.task.parts else "final fit, nothing held out"]
        place = "" if self.folder is None else f", in {self.folder}"
        return f"Run({self.config['model']['name']} for {self.task.name}: {', '.join(scores)}{place})"

    @property
    def finished(self) -> bool:
        return bool(self.result.get("finished"))

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        metrics: dict[str, dict[str, float]] = self.result["metrics"]
        return metrics

    @property
    def classes(self) -> list[str] | None:
        """The names of the classes, in the order of probabilities."""
        return self.config["facts"].get("classes")

    @property
    def settings(self) -> TrainingSettings:
        """How the model was trained."""
        return settings_from(self.config["training"])

    @property
    def problem(self) -> Problem:
        """The task on the data of the run, split as it was."""
        if self._problem is None:
            if self.data is None:
                raise DataError(_NO_DATA)
            self._problem = self.task.bind(self.data)
            self._problem.to(self.device)
        assert self._problem is not None
        return self._problem

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @cached_property
    def embeddings(self) -> Tensor:
        """A point for each node, or for each graph of a collection, in the space of the encoder.

        For link prediction, messages went along the training edges alone, as they did when the model was evaluated.
        """
        with self.threads(self.problem.num_nodes), torch.no_grad():
            return self.problem.points(self.model).cpu()

    @property
    def nodes(self) -> NDArray[Any]:
        """The ids of the nodes, in the order of ``embeddings`` and of ``predict()``; of a collection, the names of
        its graphs, or their numbers.
        """
        if self.data is None:
            raise DataError(_NO_DATA)
        return ids_of(self.data)

    def to_pandas(self, coordinates: str | None = None) -> "pandas.DataFrame":
        """The embeddings as a DataFrame: node ids as its index, a column for each coordinate (``x0`` is time).

        ``coordinates`` are ``"lorentz"``, ``"poincare"``, ``"klein"`` or ``"tangent"``, the tangent space at the
        origin, whose vectors scikit-learn can work with; of Euclidean models ``"euclidean"``. None leaves the points in
        those of the model.
        """
        space = coordinates_of(self.model.encoder)
        points = self.embeddings.numpy() if coordinates is None else convert(self.embeddings, coordinates, space)
        first = 0 if (coordinates or space) == "lorentz" else 1
        names = [f"x{first + k}" for k in range(points.shape[1])]
        pandas = import_pandas()
        return pandas.DataFrame(points, pandas.Index(self.nodes.tolist(), name="id"), names)

    def to_anndata(self, adata: Any = None, coordinates: str | None = None, key: str = "X_h2hgcn") -> Any:
        """Writes the embeddings to ``adata.obsm[key]``, by the names of its observations, and returns it.

        Args:
            adata: An ``AnnData`` object; None makes one of the run's nodes and labels. Observations that the run does
                not know get NaN, and a ``DataWarning`` says so.
            coordinates: As for ``to_pandas``. ``"tangent"`` suits Euclidean methods, such as ``scanpy.pp.neighbors``.
            key: The name in ``obsm``. What the points are is in ``adata.uns[key]``.
        """
        from h2hgcn.training.artifacts import annotated  # which needs this module

        return annotated(self, self.embeddings, self.data, adata, coordinates, key)

    def split_table(self) -> dict[str, NDArray[Any]]:
        """The split as columns: ``source``, ``target``, ``split`` and ``label`` (1, or 0 for a pair without a link) for
        links, ``node`` or ``graph``, ``label`` and ``split`` for nodes and graphs.
        """
        split = self.problem.split
        if split is None:
            raise DataError(f"the task {self.task.name} holds nothing out, so there is no split")
        table: dict[str, NDArray[Any]] = split.table()
        named = {name: self.nodes[column] if name in _NAMING else column for name, column in table.items()}
        if "label" in table:
            return named
        (item, ids), labels = next(iter(named.items())), np.array(labels_of(self.data), dtype=object)
        return {item: ids, "label": labels[table[item]], "split": named["split"]}

    @property
    def links(self) -> Tensor:
        """Links ``(2, k)`` that need not be recommended: those of the graph, or of the closure that was learned."""
        links: Tensor = getattr(self.problem, "learned_links", self.data.edge_index)
        return links

    def evaluate(self, part: str | None = None) -> dict[str, float]:
        """The metrics on one of the task's ``parts``, ``"val"`` or ``"test"``, computed again; by default the last."""
        part = self._checked_part(part)
        with self.threads(self.problem.num_nodes):
            return evaluate(self.problem, self.model, part)

    def details(self, part: str | None = None) -> dict[str, Any]:
        """Details of the metrics on one of the task's ``parts``, by default the last, as far as the task has them.

        ``reliability`` has for bins of probabilities the number of predictions (``count``; of links, among all pairs
        that are not training edges), their mean probability (``predicted``) and the fraction that is right
        (``actual``); ``classes`` precision, recall, F1 and support of each class; ``confusion`` a row for each true
        class and a column for each predicted one.
        """
        part = self._checked_part(part)
        if not hasattr(self.problem, "details"):
            return {}
        with self.threads(self.problem.num_nodes):
            found: dict[str, Any] = self.problem.details(self.model, part)
        if "classes" in found:
            rows = zip(self.classes or (), found["classes"], strict=False)
            found["classes"] = [{"name": name, **row} for name, row in rows]
        return found

    def _checked_part(self, part: str | None) -> str:
        parts: tuple[str, ...] = self.task.parts
        if not parts:
            raise DataError("nothing was held out of a final fit; result['of_run'] has the metrics of its run")
        if part is not None and part not in parts:
            raise DataError(f"part={part!r} is not known; use {' or '.join(map(repr, parts))}")
        return parts[-1] if part is None else part

    def finalize(
        self, out: str | Path | None = None, *, model: EncoderFactory | None = None, force: bool = False
    ) -> "Run":
        """Trains the settings of this run again on all of its data, for as many epochs as were best, and returns that.

        All edges, labels or graphs are trained on, so the final fit has no metrics. What was fitted on validation data
        after training (neighborhood and feature terms) is taken over.

        Args:
            out: Its folder, by default ``final`` in the folder of this run, where ``final`` and the command line find
                it. A final fit that exists there is resumed or loaded. A run in memory is finalized in memory.
            model: Makes the encoder from a number of features, if it has something of your own.
            force: Whether a final fit that is there is trained again. One of earlier weights of this run always is.
        """
        from h2hgcn.training.fit import finalize  # which needs this module

        final = finalize(self, out, model=model, force=force)
        if out is None or Path(out) == self.final_folder:
            self._final = final
        return final

    @property
    def final(self) -> "Run | None":
        """The final fit of this run, see ``finalize``; None if there is none that is finished and of these weights."""
        from h2hgcn.training.loading import load_final  # which needs this module

        if self._final is None:
            self._final = load_final(self)[0]
        return self._final

    @property
    def final_folder(self) -> Path | None:
        """Where the final fit is kept; None for a run in memory."""
        return None if self.folder is None else RunFolder(self.folder).final

    def predict(self, what: Any = None, data: Any = None) -> Tensor:
        """Probabilities: of links for pairs ``(k, 2)`` of nodes, of classes for nodes, of classes for graphs.

        Nodes are named by their ids (``data.node_ids``), or by number if the graph has none; without ``what``, all
        nodes or graphs are meant. ``data`` is another graph, with the features that the model knows. For graphs
        ``what`` is a graph or several, or numbers or names of those in ``data``, which else is the run's collection.
        """
        graph = self.data if data is None else data
        if self.task.of_collections:
            graphs = chosen_graphs(what, graph, self.config["facts"].get("feature_names"))
            with self.threads(max(map(_num_rows, graphs))):
                return graph_probabilities(self.model, graphs, self.config["facts"]["in_features"]).cpu()
        if self.task.predicts is None:
            raise DataError("a run of --task embed has distances, no probabilities; use recommend, or embeddings")
        if graph is None:
            raise DataError("the run does not hold its graph; pass one: run.predict(..., data=graph)")
        points = (self.embeddings if data is None else self.encode(data)).to(self.device)
        of_pairs = self.task.predicts == "pairs"
        if what is None and of_pairs:
            raise DataError("say which pairs of nodes to score: run.predict([[a, b], [c, d]])")
        numbers = torch.from_numpy(NodeNames(graph).numbers(what)) if what is not None else torch.arange(len(points))
        if of_pairs:
            if numbers.dim() != 2 or numbers.shape[1] != 2:
                raise DataError(f"pairs of nodes have the shape (k, 2), not {tuple(numbers.shape)}")
            alone = (numbers[:, 0] == numbers[:, 1]).nonzero()
            if len(alone):
                raise DataError(
                    f"pair {int(alone[0]) + 1} is the node {np.asarray(what)[int(alone[0])][0]} with itself; leave it "
                    "out, since a link joins two nodes"
                )
            if data is None:
                return torch.from_numpy(self.link_probabilities(numbers.numpy()))
        chosen = numbers if of_pairs else numbers.flatten()
        probabilities: Tensor = self.task.probabilities(self.model, points, chosen, graph)
        return probabilities.cpu()

    def encode(self, data: Any) -> Tensor:
        """Points of the nodes of another graph, all of whose edges carry messages; of a classifier of graphs, a point
        for each graph of another collection.

        A model with node vectors finds the nodes of its own graph by their ids, see ``known_nodes``; new ones get their
        place from their neighbors and features.
        """
        if self.task.of_collections:
            graphs = chosen_graphs(data, None, self.config["facts"].get("feature_names"))
            with self.threads(max(map(_num_rows, graphs))):
                return encode_graphs(self.model, graphs, self.config["facts"]["in_features"]).cpu()
        self.check_fits(data)
        nodes = self.known_nodes(data)
        with self.threads(_num_rows(data)):
            return encode_nodes(self.model, data, self.task.name, self.config["facts"]["in_features"], nodes).cpu()

    def known_nodes(self, data: Any) -> Tensor | None:
        """The training node that each node of another graph is, -1 for a new one; None without node vectors.

        Nodes are matched by ``node_ids``. Without them in both graphs they are matched by number, unless the other
        graph has fewer nodes: then all of them are new.
        """
        if node_vectors_of(self.model.encoder) is None:
            return None
        if self.data is None:
            raise DataError("the run does not hold its graph, by whose ids nodes are known; run its command again")
        has_ids = getattr(data, "node_ids", None) is not None
        if not has_ids and getattr(self.data, "node_ids", None) is not None:
            raise DataError(
                "the graph has no node_ids, but this run knows its nodes by their ids; set data.node_ids, with ids of "
                "their own for new nodes"
            )
        ids, names = NodeNames(data).ids, NodeNames(self.data)
        known = names.known(ids) if has_ids or len(ids) >= len(names.ids) else np.full(len(ids), -1)
        if (known < 0).any() and not self.places_by_features(data):
            lost = np.flatnonzero(~reached_from(data.edge_index, known >= 0))
            if len(lost):
                raise DataError(
                    f"node {ids[lost[0]]} is new and no path leads from it to a node of the training graph, so nothing "
                    "gives it a place; check its id, add its edges, or train with features"
                )
        return torch.from_numpy(known)

    def places_by_features(self, data: Any) -> bool:
        """Whether features, not made from the graph, give a node its place, even if no edge does."""
        uses = getattr(self.model.encoder, "config", {}).get("use_features", True)
        return uses and not getattr(data, "structural", False)

    def with_new(
        self,
        edges: Any = None,
        features: Any = None,
        *,
        weights: Any = None,
        columns: tuple[str, str] | None = None,
        header: bool | None = None,
        delimiter: str | None = None,
        comment: str | None = None,
    ) -> "ExtendedRun":
        """This run on its own graph joined with new nodes and edges, to predict and recommend links of new nodes.

        ``edges`` are those of new nodes, with each other and with nodes of the run, and ``features`` have a row for
        each new node; both are anything that ``load_graph`` takes, and so are the other arguments.
        Nodes are matched by their ids. New nodes of a model with features may go without edges.

        >>> run.with_new([("zoe", "ann")], {"zoe": [1.0, 0.5]}).recommend("zoe")
        """
        from h2hgcn.training.new_nodes import extended_run  # which needs this module

        return extended_run(self, edges, features, weights, columns, TextFormat(header, delimiter, comment))

    def check_fits(self, data: Any) -> None:
        """Raises unless points of another graph can be computed: by its kind, and by the names of its features."""
        self.check_inductive()
        if not is_graph(data):
            raise DataError(f"data is a {type(data).__name__}; pass one graph: PyG's Data")
        if self.data is not None:
            check_same_columns(getattr(self.data, "feature_names", None), data)

    def check_inductive(self) -> None:
        """Raises if the model knows the nodes of its own graph alone."""
        if not getattr(self.model.encoder, "inductive", True):
            raise DataError(
                f"{self.config['model']['name']} has learned a vector for each node of its graph and knows no others; "
                "train a model that computes points from features, such as h2h-gcn"
            )

    def recommend(self, node: Any, k: int = 10, direction: str | None = None) -> RecommendedLinks:
        """The ``k`` likeliest missing links of a node: the nearest that it is not linked with, nearest first. If there
        are fewer, all of them, and a ``DataWarning`` says so.

        Probabilities are those of the link decoder, which classifiers have if they were trained with a link term.
        Several nodes, such as ``run.nodes``, give the links of one after the other; ``to_pandas()`` says whose each is.
        In a directed graph ``direction`` is ``"out"``, links from the node (the default of a directed decoder), or
        ``"in"``, links to it; a directed decoder puts the likeliest first.
        """
        if node is None or np.ndim(node) > 1 or (np.ndim(node) == 1 and not len(node)):
            raise DataError(f"node={node!r}: give the id of one node, or a list of ids")
        return RecommendedLinks(recommend_links_of(self, node, k, direction=direction))

    def recommend_top(self, k: int = 100, index: str | None = None) -> TopLinks:
        """The ``k`` likeliest missing links of the whole graph, or all if fewer are left, which a ``DataWarning`` says.

        Each pair of nodes is there once, or each direction of it if the decoder is directed. Order is by the logits
        that ``predict`` has probabilities of, or by distance where no decoder of links was trained. ``index`` is
        ``"exact"``, or ``"hnsw"`` or ``"ivf"`` of FAISS; by default the search is exact below 50,000 nodes.
        """
        return TopLinks(top_links_of(self, k, index))

    def explain(self, node: Any, other: Any = None, *, k: int = 10, epochs: int = 200, seed: int = 0) -> "Explanation":
        """Which ``k`` edges and features made the prediction for a node, or for the pair of a node and an ``other``.

        They are ordered by how much the probability changes without them; beside it is the mask that GNNExplainer (Ying
        et al. 2019) learns in ``epochs`` steps from a start that ``seed`` decides on.

        >>> run.explain("ann").edges
        """
        from h2hgcn.training.explaining import explain  # which needs PyG's explainers

        return explain(self, node, other, k=k, epochs=epochs, seed=seed)

    @property
    def link_decoder(self) -> LinkHead | None:
        """The decoder of links, if one was trained."""
        head = self.model.head
        decoder = head if isinstance(head, LinkHead) else getattr(head, "links", None)
        return decoder if isinstance(decoder, LinkHead) else None

    @cached_property
    def neighborhoods(self) -> Neighborhoods:
        """Degrees and shared neighbors in the whole graph: links that were held out are known by now."""
        decoder = self.link_decoder
        return Neighborhoods(self.links.T.numpy(), len(self.embeddings), decoder is not None and decoder.directed)

    def link_order(self, direction: str | None = None) -> tuple[Direction | None, Rank | None]:
        """Which links of a node to recommend, ``"out"``, ``"in"`` or None (both), and a function of pairs (node, other)
        to sort them by, or None for the distance.
        """
        if direction is not None and not getattr(self.data, "directed", False):
            raise DataError(f"direction={direction!r}: the graph of this run is undirected; leave the direction out")
        way = check_direction(direction)
        if self.link_decoder is None or self.link_decoder.goes_by_distance:
            return way, None
        way = way or ("out" if self.link_decoder.directed else None)
        return way, lambda pairs: self.link_logits(as_links(pairs, way)).numpy()

    def link_probabilities(self, pairs: NDArray[np.int64]) -> NDArray[np.floating] | None:
        """Of links between nodes named by number, in pairs ``(k, 2)``; None where no decoder of links was trained."""
        if self.link_decoder is None:
            return None
        return self.link_decoder.probabilities(self.link_logits(pairs).to(self.device)).cpu().numpy()

    @torch.no_grad()
    def link_logits(self, pairs: NDArray[np.int64]) -> Tensor:
        """What the decoder makes of links between nodes named by number."""
        assert self.link_decoder is not None
        numbers = torch.from_numpy(np.ascontiguousarray(pairs)).to(self.device)
        points, scale = self.embeddings.to(self.device), self.model.distance_scale
        return self.link_decoder.logits_in(lambda: self.neighborhoods, points, numbers, scale).cpu()

    def export(
        self,
        path: str | Path,
        format: str | None = None,  # noqa: A002
        *,
        part: str = "all",
        graph: Any = None,
        opset: int = 18,
    ) -> "Exported":
        """Writes the model on its graph as a program that runs without this package: ONNX, or one of ``torch.export``.

        Its inputs are ``x``, the features of all nodes as they were given (left out where the model does not use any,
        or they were made from the graph), and for link prediction ``pairs (k, 2)`` of nodes by number, in the order of
        ``nodes``. Its outputs are ``embeddings`` and ``probabilities``, those of this run. They are compared with those
        of the run after the export.

        Args:
            path: The file, which is replaced if it is there.
            format: ``"onnx"`` or ``"torch"``; by default ONNX if the file ends with ``.onnx``, and PyTorch if with
                ``.pt2``.
            part: ``"all"``, or ``"encoder"`` for embeddings alone.
            graph: Of a classifier of graphs, the graph: one of the collection by name or number, or a ``Data``.
            opset: Of ONNX, 18 or newer.
        """
        from h2hgcn.training.exporting import export_run  # which needs this module

        return export_run(self, path, format, part, graph, opset)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        graph: bool = False,
        private: bool | None = None,
        branch: str | None = None,
        create_pr: bool | None = None,
        commit_message: str = "Push a run of h2hgcn",
        token: str | bool | None = None,
    ) -> str:
        """Publishes the run on the Hugging Face Hub with a model card, for ``from_pretrained``; returns the commit's
        address. It needs the extra ``hub``.

        Args:
            repo_id: ``"OWNER/NAME"``; it is made if it is not there.
            graph: Whether the graph is published, too, with its features, labels and ids, the embeddings and the
                report. Models with node vectors need it.
            private, branch, create_pr, commit_message, token: As for ``huggingface_hub.ModelHubMixin``.
        """
        from h2hgcn.training.hub import push  # which needs this module

        return push(
            self, repo_id, graph, private=private, branch=branch, create_pr=create_pr, commit_message=commit_message,
            token=token,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls,
        repo_id: str | Path,
        *,
        data: Any = None,
        revision: str | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        device: str = "cpu",
    ) -> "Run":
        """A run from the Hugging Face Hub, or from its folder. Nothing that is downloaded is executed.

        Args:
            repo_id: ``"OWNER/NAME"``, or a folder.
            data: The data of the run, if the graph was not published.
            revision: A branch, tag or commit.
            token, local_files_only: As for ``huggingface_hub.ModelHubMixin``.
            device: Where the model goes.
        """
        from h2hgcn.training.hub import pull  # which needs this module

        return pull(
            str(repo_id), data=data, revision=revision, token=token, local_files_only=local_files_only, device=device
        )

    def threads(self, num_nodes: int) -> AbstractContextManager[None]:
        """As many threads as training has for so many nodes."""
        return limited_threads(self.settings.threads, num_nodes * self.model.dim)

    def save(self, path: str | Path) -> None:
        """Writes the folder of the run, which must be new or empty."""
        if not self.finished:
            raise DataError("the run is not finished; give fit a folder, where it is kept and can be resumed")
        folder = RunFolder(path)
        with folder.locked():
            if folder.config.exists():
                raise DataError(f"{path} holds a run already; choose another folder")
            folder.prepare(self.config, force=False)
            folder.write_history(self.history)
            self.write_model(folder)
            self.write_result(folder)
        self.folder = folder.path

    def write_model(self, folder: RunFolder) -> None:
        """Writes the weights, the graph, the embedding and its layout."""
        self.write_weights(folder)
        if is_graph(self.data):
            keep_graph(folder.graph, self.data)
        write_points(self, self.embeddings, self.data, folder.embeddings)
        write_layout(self, folder.layout)

    def write_weights(self, folder: RunFolder) -> None:
        """Writes the weights."""
        folder.check_there()
        config = {name: section for name, section in self.config.items() if name != "search"}
        write_tensors(folder.model, weights_of(self.model), {"config": config})

    def write_result(self, folder: RunFolder) -> None:
        """Writes the report, and then the result, which says that all files are there."""
        folder.check_there()
        write_report_of(self, folder.report)
        folder.write_result(self.result)

    def complete(self, folder: RunFolder) -> None:
        """Writes the embedding and the report of a finished run again, where they were deleted or damaged."""
        damaged = [file for file in (folder.embeddings, folder.report) if not folder.is_whole(file)]
        if folder.embeddings in damaged:
            write_points(self, self.embeddings, self.data, folder.embeddings)
        if folder.report in damaged:
            write_report_of(self, folder.report)
        if damaged:
            folder.write_result(self.result)


def reached_from(edge_index: Tensor, start: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which nodes are connected with one of ``start``, whatever the direction of edges."""
    ends = edge_index.numpy()
    graph = coo_array((np.ones(ends.shape[1], np.int8), tuple(ends)), shape=(len(start), len(start)))
    component = connected_components(graph, directed=False)[1]
    return np.isin(component, component[start])


def _num_rows(graph: Any) -> int:
    """The number of a graph's nodes, if it has features; those who need them say so."""
    x = getattr(graph, "x", None)
    return len(x) if isinstance(x, Tensor) and x.dim() else 0
