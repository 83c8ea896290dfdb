"""Runs on the Hugging Face Hub, by the mixin of ``huggingface_hub``."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2hgcn.errors import DataError, first_line
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.lazy import import_extra
from h2hgcn.models import ENCODERS
from h2hgcn.training.folder import RunFolder

if TYPE_CHECKING:
    from h2hgcn.training.run import Run

_TEMPLATE = Path(__file__).parent / "templates" / "model_card.md"


def _client(module: str = "huggingface_hub") -> Any:
    return import_extra(module, "the client of the Hugging Face Hub", "hub")


@cache
def _hub_run() -> Any:
    """The class of a run on the hub; it is made here, since its base class belongs to an extra."""
    Mixin: Any = _client().ModelHubMixin  # noqa: N806
    about: dict[str, Any] = {
        "library_name": "h2hgcn",
        "tags": ["graph-machine-learning", "hyperbolic", "pytorch-geometric"],
        "model_card_template": _TEMPLATE.read_text(encoding="utf-8"),
    }

    class HubRun(Mixin, **about):  # type: ignore[misc]
        """A run, with the graph or without."""

        def __init__(self, run: "Run", graph: bool = False) -> None:
            self.run, self.graph = run, graph

        def _save_pretrained(self, save_directory: Path) -> None:
            write_published(self.run, save_directory, self.graph)

        @classmethod
        def _from_pretrained(cls, *, model_id: str, data: Any = None, device: str = "cpu", **options: Any) -> "HubRun":
            from h2hgcn.training.loading import load_run

            folder = model_id if Path(model_id).is_dir() else _client().snapshot_download(model_id, **options)
            return cls(load_run(folder, data, device=device))

    return HubRun


def push(run: "Run", repo_id: str, graph: bool, **options: Any) -> str:
    """``Run.push_to_hub``."""
    kind = _hub_run()
    if not run.finished:
        raise DataError("the run is not finished; run its command again before it is published")
    if run.config["model"].get("own"):
        raise DataError(f"the model {run.config['model']['name']} is your own, which nobody else could load")
    if not graph and node_vectors_of(run.model.encoder) is not None:
        raise DataError(
            "the model has a vector for each node of its graph and is of no use without it; pass graph=True (--graph), "
            "which also publishes the edges, features, labels and ids"
        )
    with _reached(repo_id, "the run is as it was; give the same command again later"):
        return str(
            kind(run, graph).push_to_hub(
                repo_id, config=_summary(run), model_card_kwargs=_card(run, repo_id, graph), **options
            )
        )


def pull(repo_id: str, **options: Any) -> "Run":
    """``Run.from_pretrained``."""
    kind = _hub_run()
    with _reached(repo_id, "nothing was written"):
        run: Run = kind.from_pretrained(repo_id, **options).run
    return run


@contextmanager
def _reached(repo_id: str, state: str) -> Iterator[None]:
    """Turns errors of the hub and of the network into messages."""
    errors, network = _client("huggingface_hub.errors"), _client("huggingface_hub.utils").httpx
    try:
        yield
    except errors.HFValidationError as error:
        raise DataError(f"{repo_id!r} is no name on the hub; use OWNER/NAME") from error
    except errors.RepositoryNotFoundError as error:
        raise DataError(
            f"{repo_id} is not on the hub, or you may not see it; log in with hf auth login, or check the name"
        ) from error
    except (OSError, network.HTTPError) as error:
        raise DataError(f"the hub cannot be reached for {repo_id} ({first_line(error)}); {state}") from error


def write_published(run: "Run", folder: Path, graph: bool) -> None:
    """Writes a run's folder for others: without the places of its files, and the graph only if that is wanted."""
    public, place = copy(run), RunFolder(folder)
    public.config = {name: _without_places(section) for name, section in run.config.items()}
    place.prepare(public.config, force=False)
    place.write_history(run.history)
    if graph:
        public.write_model(place)
        public.write_result(place)
    else:
        public.write_weights(place)
        place.write_result(run.result)


def _without_places(section: Any) -> Any:
    """Settings with the names of files instead of their paths."""
    if isinstance(section, dict):
        return {name: _without_places(value) for name, value in section.items()}
    return Path(section).name if isinstance(section, str) and Path(section).is_absolute() else section


def _summary(run: "Run") -> dict[str, Any]:
    """``config.json``, by which the hub counts downloads."""
    return {"library": "h2hgcn", "task": run.task.name, "model": run.config["model"], "facts": run.config["facts"]}


def _card(run: "Run", repo_id: str, graph: bool) -> dict[str, Any]:
    """What the model card says."""
    config, result = run.config, run.result
    name, encoder = config["model"]["name"], run.model.encoder
    kind = ENCODERS.get(name)
    data = config["data"].get("dataset") or Path(str(config["data"].get("edges", "a graph"))).name
    if run.data is not None and not run.task.of_collections:
        data += f", {run.data.num_nodes:,} nodes and {run.data.edge_index.shape[1]:,} edges (each direction counts)"
    return {
        "repo_id": repo_id,
        "title": f"{name} for {run.task.title}",
        "summary": f"A run of {name}: {getattr(kind, 'summary', 'an encoder of graphs')}.",
        "task": run.task.name,
        "task_title": run.task.title,
        "model": name,
        "paper": getattr(kind, "paper", None),
        "space": encoder.space,
        "dim": encoder.dim,
        "parameters": result["parameters"],
        "data": data,
        "epochs": result["epochs"],
        "best_epoch": result["best_epoch"] if run.task.parts else None,
        "seed": config["seed"],
        "with_graph": graph,
        "metrics": [(part, metric, value) for part, found in run.metrics.items() for metric, value in found.items()],
        "baselines": result["trivial"],
        "selection": result["selection"],
        "warnings": result.get("doubts", ()),
        "versions": config["versions"],
    }
