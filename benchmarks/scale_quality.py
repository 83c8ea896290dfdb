"""Sampled beside full-batch training: what is learnt in the same number of epochs."""

from functools import partial
from typing import Any, cast

from h2hgcn.datasets import load_dataset
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import TrainingSettings, fit


def quality_table(name: str, epochs: int, batch_size: int = 4096, fanout: str = "15,10") -> list[dict[str, Any]]:
    data, task = load_dataset(name), cast(Any, LinkPrediction(message_share=0.5))
    choices: list[tuple[Any, str | None]] = [("full", None), (batch_size, fanout)]
    rows = []
    for size, widths in choices:
        settings = TrainingSettings(epochs=epochs, patience=None, device="cpu", batch_size=size, fanout=widths)
        run = fit(task, data, partial(H2HGCN, dim=64), settings=settings)
        test = run.metrics["test"]
        rows.append(
            {"dataset": name, "links of a batch": size, "epochs": epochs, "test AUC": f"{test['auc']:.4f}",
             "seconds": run.result["seconds"]}
        )  # fmt: skip
    return rows
