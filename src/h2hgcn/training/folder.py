"""The folder of a run: who may write to it, what it holds, and what is never lost."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import tomli_w
from filelock import FileLock, Timeout

from h2hgcn.atomic import atomic_write
from h2hgcn.errors import DataError
from h2hgcn.models.pretrained import read_config

# Raised when the meaning of a file changes.
FORMAT = 1

_FILES = (
    "config.toml", "metrics.jsonl", "model.safetensors", "graph.safetensors", "embeddings.parquet", "report.html",
    "result.json", "checkpoint/latest.safetensors",
)  # fmt: skip


class RunFolder:
    """Paths and small files of a run. Large ones are written by those who know what is in them."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.metrics = self.path / "metrics.jsonl"
        self.model = self.path / "model.safetensors"
        self.graph = self.path / "graph.safetensors"
        self.embeddings = self.path / "embeddings.parquet"
        self.report = self.path / "report.html"
        self.result = self.path / "result.json"
        self.checkpoint = self.path / "checkpoint" / "latest.safetensors"
        self.tensorboard = self.path / "tensorboard"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Within, no other process trains in this folder; the lock goes with the process, however it ends."""
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path} is a file; choose a folder for the run")
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise DataError(f"another process trains in {self.path}; wait for it, or choose another folder") from None
        try:
            yield
        finally:
            lock.release()

    def prepare(self, config: dict[str, Any], force: bool) -> None:
        """Makes the folder this run's: a new one, or one where the same run was begun."""
        if self.config.exists() and force:
            self._clear()
        if self.config.exists():
            self._check_same(config)
            return
        others = [item.name for item in self.path.iterdir() if not item.name.startswith(".")]
        if others:
            raise DataError(
                f"{self.path} is not empty and not a run (it holds {sorted(others)[0]}); choose another folder"
            )
        with atomic_write(self.config) as file:
            file.write(b"# Run it again: h2hgcn train --config config.toml --out FOLDER\n")
            tomli_w.dump(config, file)

    def read_config(self) -> dict[str, Any]:
        """The configuration, if it is of this version."""
        config = read_config(self.path)
        if config.get("format") != FORMAT:
            raise DataError(
                f"{self.config} has the format {config.get('format')}, but this version of h2hgcn reads {FORMAT}; "
                "use the version that is named there, or train again"
            )
        return config

    def read_result(self) -> dict[str, Any] | None:
        """Metrics and more of a run that is over; None if it is not."""
        try:
            result: dict[str, Any] = json.loads(self.result.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(f"{self.result} is damaged ({error}); delete it and run the same command again") from None
        return result

    def write_result(self, result: dict[str, Any]) -> None:
        with atomic_write(self.result) as file:
            file.write((json.dumps(result, indent=2) + "\n").encode())

    def read_history(self, length: int | None = None) -> list[dict[str, Any]]:
        """One entry for each epoch, of the whole file or of its first bytes."""
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_bytes()[:length].splitlines()
        try:
            return [json.loads(line) for line in lines]
        except ValueError as error:
            raise DataError(f"{self.metrics} is damaged ({error})") from None

    def open_metrics(self, length: int) -> BinaryIO:
        """The file of epochs, cut back to what a checkpoint knows of."""
        file = self.metrics.open("ab")
        if file.tell() < length:
            file.close()
            raise DataError(f"{self.metrics} is shorter than the checkpoint knows it; run anew with --force")
        file.truncate(length)
        return file

    def _check_same(self, config: dict[str, Any]) -> None:
        there = self.read_config()
        difference = _difference(there, config)
        if difference:
            raise DataError(
                f"{self.path} holds a run with other settings ({difference}); choose another folder, or run anew "
                "with --force"
            )

    def _clear(self) -> None:
        """Deletes what a run wrote, and nothing else; the configuration last, so that a crash leaves a run."""
        for file in (self.path / "tensorboard").glob("events.out.tfevents.*"):
            file.unlink()
        for name in reversed(_FILES):
            (self.path / name).unlink(missing_ok=True)


def _difference(there: dict[str, Any], given: dict[str, Any]) -> str:
    """The first setting that differs, as words."""
    for section in ("data", "task", "model", "training", "seed"):
        old, new = there.get(section), given.get(section)
        if old == new:
            continue
        if not isinstance(old, dict) or not isinstance(new, dict):
            return f"{section} is {old} there and {new} now"
        key = next(key for key in (*old, *new) if old.get(key) != new.get(key))
        return f"{section}.{key} is {old.get(key)} there and {new.get(key)} now"
    return ""


def metrics_line(row: dict[str, Any]) -> bytes:
    """A line of ``metrics.jsonl``."""
    return (json.dumps(row) + "\n").encode()
