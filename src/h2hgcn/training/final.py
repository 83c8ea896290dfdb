"""A final fit: the settings and the number of epochs of a finished run, trained again on all of its data."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from h2hgcn.errors import DataError
from h2hgcn.files import checksum_of
from h2hgcn.tasks.base import Model, Problem
from h2hgcn.training.batching import plan_batches
from h2hgcn.training.building import EncoderFactory, encoder_factory
from h2hgcn.training.folder import SETTINGS, RunFolder
from h2hgcn.training.loop import weights_of
from h2hgcn.training.result_warnings import serious_warnings

if TYPE_CHECKING:
    from h2hgcn.training.run import Run


def finalize(
    run: "Run",
    out: str | Path | None = None,
    *,
    model: EncoderFactory | None = None,
    force: bool = False,
    on_plan: Callable[[str], None] | None = None,
    on_epoch: Callable[..., None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> "Run":
    """``Run.finalize``, with the callbacks of ``fit``."""
    from h2hgcn.training.fit import fit  # which needs this module

    if not run.task.parts:
        raise DataError(f"{run.folder or 'the run'} is a final fit already; finalize the run that it comes from")
    if len(run.task.parts) < 2:
        raise DataError(f"--task {run.task.name} holds nothing out: the run has learned everything already; use it")
    if not run.finished:
        raise DataError("the run is not finished, so its number of epochs is not chosen yet; run its command again")
    if run.data is None:
        raise DataError("the run does not hold its data; run its command again, or pass them: load_run(folder, data=)")
    if run.folder is not None:
        RunFolder(run.folder).check_links()
    if run.config["model"].get("own") and model is None:
        raise DataError(f"the model {run.config['model']['name']} is your own; pass what makes it as model=")
    place = run.final_folder if out is None else Path(out)
    settings = replace(run.settings, stop_after=run.result["best_epoch"])
    if settings.batch_size == "auto":  # more data must not turn it from the whole graph to samples of it
        sampling = plan_batches(settings, run.problem, run.model.encoder, run.model.dim).sampling
        settings = replace(settings, batch_size="full" if sampling is None else sampling.batch_size)
    return fit(
        replace(run.task, final=True), run.data, model or encoder_factory(run.config["model"]),
        seed=run.config["seed"], settings=settings, folder=place, force=force or _is_outdated(place, run),
        source={name: value for name, value in run.config["data"].items() if name != "fingerprint"},
        origin=run, on_plan=on_plan, on_epoch=on_epoch, should_stop=should_stop,
    )  # fmt: skip


def origin_of(run: "Run") -> dict[str, Any]:
    """What the ``config.toml`` of a final fit says about the run that it comes from."""
    settings = json.dumps({name: run.config[name] for name in SETTINGS}, sort_keys=True)
    return {
        "run": "memory" if run.folder is None else str(Path(run.folder).resolve()),
        "epochs": run.result["best_epoch"],
        "config": hashlib.sha256(settings.encode()).hexdigest(),
        "weights": checksum_of(weights_of(run.model)),
    }


def result_of_origin(run: "Run") -> dict[str, Any]:
    """What the ``result.json`` of a final fit has of the run that it comes from, as the final fit has no scores."""
    warnings = [f"of the run that this final fit comes from: {text}" for text in serious_warnings(run.result)]
    scores = {name: run.result[name] for name in ("metrics", "trivial", "baselines") if name in run.result}
    return {"of_run": scores, "doubts": warnings}


@torch.no_grad()
def take_over(origin: "Run", model: Model, problem: Problem) -> None:
    """Gives a model what was fitted on the validation data of a run after training: the buffers of its head. Those of
    batch normalizations are left out, which training itself has filled.
    """
    fitted = dict(origin.model.head.named_buffers())
    for path, module in model.head.named_modules():
        if not isinstance(module, nn.modules.batchnorm._NormBase):
            for name, buffer in module.named_buffers(recurse=False):
                buffer.copy_(fitted[f"{path}.{name}" if path else name])
    if hasattr(problem, "refit"):
        problem.refit(model, origin.problem.split)


def load_final(run: "Run") -> tuple["Run | None", str | None]:
    """The final fit in the folder of a run, or why one that is there cannot be used."""
    from h2hgcn.training.loading import load_run  # which needs this module

    place = run.final_folder
    if place is None or not RunFolder(place).config.exists():
        return None, None
    if _is_outdated(place, run):
        return None, f"the final fit in {place} is of other weights than the run; h2hgcn finalize fits it again"
    if RunFolder(place).read_result() is None:
        return None, f"the final fit in {place} is not finished; h2hgcn finalize resumes it"
    return load_run(place, run.data, device=str(run.device)), None


def _is_outdated(place: Path | None, run: "Run") -> bool:
    """Whether a folder is that of a run's final fit, but made when the run had other weights."""
    if place is None or place != run.final_folder or not RunFolder(place).config.exists():
        return False
    origin = RunFolder(place).read_config().get("final", {})
    return bool(origin) and origin.get("weights") != checksum_of(weights_of(run.model))
