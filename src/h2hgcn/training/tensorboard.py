"""Curves for TensorBoard, an extra."""

from pathlib import Path
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.training.loop import EpochReport


def check_tensorboard(folder: Any) -> None:
    """Raises if curves are asked for that cannot be written."""
    if folder is None:
        raise DataError("TensorBoard's files go to the folder of the run; pass folder=")
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        raise DataError("TensorBoard is not installed; pip install 'h2hgcn[tensorboard]', or leave it out") from None


class TensorBoardCurves:
    """Writes the loss and the validation metrics of every epoch."""

    def __init__(self, folder: Path, first_epoch: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # what a killed run wrote beyond its last checkpoint is written again
        self._writer = SummaryWriter(str(folder), purge_step=first_epoch)

    def add(self, report: EpochReport) -> None:
        values = {"train/loss": report.loss, "train/lr": report.lr}
        values |= {f"{report.part}/{name}": value for name, value in (report.val or {}).items()}
        for name, value in values.items():
            self._writer.add_scalar(name, value, report.epoch)

    def close(self) -> None:
        self._writer.close()
