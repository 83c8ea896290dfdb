"""Runs for other programs and people: ``h2hgcn export``, ``push`` and ``pull``."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from h2hgcn.cli import console
from h2hgcn.cli import options as flags
from h2hgcn.cli.runs import open_run
from h2hgcn.errors import DataError


def export(
    run: flags.RunPath,
    out: Annotated[Path, typer.Option(help="File to write: .onnx, or .pt2 for torch.export.")],
    format: Annotated[  # noqa: A002
        Literal["onnx", "torch"] | None, typer.Option(help="The format.", show_default="by the name of the file")
    ] = None,
    part: Annotated[Literal["all", "encoder"], typer.Option(help="encoder: embeddings alone.")] = "all",
    graph: Annotated[
        str | None, typer.Option(help="Of a classifier of graphs: the graph, by name or number.", show_default=False)
    ] = None,
    opset: Annotated[int, typer.Option(help="Opset of ONNX.")] = 18,
    data: flags.DataFolder = None,
    force: flags.Force = False,
    no_final: flags.NoFinal = False,
    json: flags.Json = False,
) -> None:
    """Write a run's model on its graph as a program that runs without h2hgcn.

    Inputs are the features (x) and, for links, pairs of nodes by number; outputs are embeddings and probabilities.
    They are compared with those of the run.

    Example: h2hgcn export runs/disease-lp-h2h-gcn-seed0 --out disease.onnx
    """
    console.check_free(out, force)
    opened = open_run(run, data, True, not no_final)
    with console.starting():
        made = opened.export(out, format, part=part, graph=graph, opset=opset)
    if json:
        found = {"inputs": made.inputs, "outputs": made.outputs, "difference": made.difference}
        console.print_json({"file": str(made.path), "format": made.format, **found})
        return
    for title, some in (("inputs", made.inputs), ("outputs", made.outputs)):
        shapes = ", ".join(f"{name} ({' × '.join(map(str, shape))})" for name, shape in some.items())
        console.tell(f"{title}: {shapes or 'none'}")
    if made.difference is None:
        console.tell("not compared with the run: ONNX Runtime is not installed (pip install 'h2hgcn[export]')")
    else:
        console.tell(f"largest difference from the run: {made.difference:.1g}")
    console.stdout.print(str(made.path), soft_wrap=True)


Repository = Annotated[str, typer.Argument(help="The repository on the hub: OWNER/NAME.", metavar="OWNER/NAME")]


def push(
    run: flags.RunPath,
    repo: Repository,
    graph: Annotated[
        bool, typer.Option("--graph", help="Also publish the graph, its labels and ids, the embeddings and the report.")
    ] = False,
    private: Annotated[bool, typer.Option("--private", help="If the repository is new, make it private.")] = False,
    branch: Annotated[str | None, typer.Option(help="The branch to push to.", show_default="main")] = None,
    data: flags.DataFolder = None,
    no_final: flags.NoFinal = False,
) -> None:
    """Publish a run on the Hugging Face Hub, with a model card. Log in with "hf auth login" first, or set HF_TOKEN.

    Without --graph, weights, settings and metrics are published, but neither edges nor ids nor labels.

    Example: h2hgcn push runs/disease-lp-h2h-gcn-seed0 OWNER/NAME --graph
    """
    opened = open_run(run, data, graph, not no_final)
    with console.starting():
        address = opened.push_to_hub(repo, graph=graph, private=private or None, branch=branch)
    console.stdout.print(address, soft_wrap=True)


def pull(
    repo: Repository,
    out: Annotated[Path, typer.Option(help="Folder of the run, which must be new.")],
    revision: Annotated[str | None, typer.Option(help="A branch, tag or commit.", show_default="main")] = None,
) -> None:
    """Download a run from the Hugging Face Hub. Nothing in it is executed.

    Example: h2hgcn pull OWNER/NAME --out runs/pulled
    """
    if out.exists():
        raise DataError(f"{out} is there already; name a new folder")
    console.check_free(out, force=False)
    with console.starting():
        from h2hgcn.training import Run

        pulled = Run.from_pretrained(repo, revision=revision)
    assert pulled.folder is not None
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:  # whole, or not at all
        shutil.copytree(pulled.folder, Path(scratch) / "run")
        (Path(scratch) / "run").rename(out)
    console.tell(str(pulled))
    console.stdout.print(str(out), soft_wrap=True)
