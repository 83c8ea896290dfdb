"""The folder of a run: its files, its lock, and how it is resumed."""

import json
import math
import shutil
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EIO, ENOSPC, ESTALE
from pathlib import Path
from typing import Any

import tomli_w
from filelock import FileLock, Timeout

from h2hgcn.datasets.registry import sha256_of
from h2hgcn.errors import DamagedRunError, DataError, DataWarning, PlaceError
from h2hgcn.files import atomic_write, stamped, unstamped
from h2hgcn.models.encoder import read_config
from h2hgcn.tasks import TASKS

# Raised when the meaning of a file changes.
FORMAT = 1

SETTINGS = ("data", "task", "model", "training", "seed")

# Settings that the result does not depend on.
_FREE = ("checkpoint_seconds", "workers")

_KINDS = {"seed": int, **dict.fromkeys(("data", "task", "model", "training", "facts", "versions"), dict)}
_RESULT_KINDS: dict[str, Any] = {
    "selection": str, "metrics": dict, "trivial": dict | None, "best_epoch": int, "epochs": int, "stopped_early": bool,
    "seconds": int | float, "parameters": int,
}  # fmt: skip
_RESTORE = "restore it, or train again"
_ELSEWHERE = "choose another folder, or train again with --force (force=True)"


class BusyFolderError(PlaceError):
    """Another process trains in the folder."""


class RunFolder:
    """Paths and small files of a run. Large ones are written by those who know what is in them."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.metrics = self.path / "metrics.jsonl"
        self.model = self.path / "model.safetensors"
        self.graph = self.path / "graph.safetensors"
        self.embeddings = self.path / "embeddings.parquet"
        self.layout = self.path / "layout.safetensors"
        self.report = self.path / "report.html"
        self.result = self.path / "result.json"
        self.checkpoint = self.path / "checkpoint" / "latest.safetensors"
        self.tensorboard = self.path / "tensorboard"
        self.loggers = self.path / "loggers.json"
        self.index = (self.path / "index.json", self.path / "index.faiss")
        self.search = self.path / ".search"
        self.final = self.path / "final"
        self._lock = self.path / ".lock"
        # what a run writes, except for the configuration; the result first, which says that the others are whole
        self._files = (
            self.result, *self.index, self.report, self.layout, self.embeddings, self.model, self.graph, self.metrics,
            self.checkpoint, self.loggers,
        )  # fmt: skip
        self._checksums: dict[str, str] = {}  # as the result has them

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Within, no other process trains in this folder; the lock goes with the process, however it ends."""
        lock = FileLock(self._lock, timeout=0)
        try:
            self._check_place()
            self.path.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            raise BusyFolderError(
                f"another process trains in {self.path}; wait for it, or choose another folder"
            ) from None
        except OSError as error:
            if error.errno in (ENOSPC, EDQUOT, EIO):
                raise
            raise PlaceError(f"{self.path} cannot be written to ({error.strerror}); choose another folder") from error
        try:
            yield
        finally:
            lock.release()

    def _check_place(self) -> None:
        """Refuses what is no run before anything is written there."""
        self.check_links()
        if self.path.exists() and not self.path.is_dir():
            raise PlaceError(f"{self.path} is a file; choose a folder for the run")
        if not self.path.exists() or self.config.exists():
            return
        others = sorted(item.name for item in self.path.iterdir() if not item.name.startswith("."))
        if others:
            raise PlaceError(f"{self.path} is not empty and not a run (it holds {others[0]}); choose another folder")

    def check_links(self) -> None:
        """Refuses links, through which a run would write outside of its folder."""
        folders = (self.checkpoint.parent, self.tensorboard, self.search, self.final)
        for place in (self._lock, self.config, *self._files, *folders):
            if place.is_symlink():
                raise PlaceError(
                    f"{place} is a symbolic link, and a run writes only inside its own folder; replace the link by "
                    "what it leads to, or choose another folder"
                )

    def check_there(self) -> None:
        """Raises if somebody took the folder away; a file that is written would make another one in its place."""
        if not self.config.exists():
            raise OSError(ESTALE, "the run's folder was deleted or renamed while it was trained", str(self.path))

    def prepare(self, config: dict[str, Any], force: bool) -> dict[str, Any]:
        """Makes the folder this run's: a new one, or one where the same run was begun, with as many epochs or fewer.
        Returns the configuration, with the search that had chosen the settings of a run that gets more epochs.
        """
        files = (self.config, *self._files)
        for file in files:  # before anything is deleted
            if file.is_dir():
                raise PlaceError(f"{file} is a folder, where a run has a file; move it away, or choose another folder")
        for file in files:  # what killed writers have left; under the lock there is no other one
            for part in file.parent.glob(f".{file.name}.*.part"):
                part.unlink()
        if self.config.exists() and not force:
            return self._continued(config)
        self._clear()
        self._write_config(config)
        shutil.rmtree(self.search, ignore_errors=True)  # its choice is in the configuration now
        return config

    def _clear(self) -> None:
        """Deletes what a run wrote, and nothing else. The configuration stays, so that a crash leaves a run."""
        for file in (*self._files, *self.tensorboard.glob("events.out.tfevents.*")):
            file.unlink(missing_ok=True)

    def _continued(self, config: dict[str, Any]) -> dict[str, Any]:
        """The configuration of a run that is in the folder; raises if that is another run."""
        there = self.read_config()
        differing = difference(there, config)
        if differing is None:
            return config
        name, old, new = differing
        if name == "training.epochs" and new > old:
            longer = there | {"training": there["training"] | {"epochs": new}}
            if difference(longer, config) is None:
                return self._lengthened(there, longer)
        what = f"with other settings ({name} is {old} there and {new} now)"
        if name == "data.fingerprint":
            what = "of other data: edges, features, labels or weights are not the same"
        raise DataError(f"{self.path} holds a run {what}; {_ELSEWHERE}")

    def _lengthened(self, there: dict[str, Any], longer: dict[str, Any]) -> dict[str, Any]:
        """Gives the run in the folder more epochs, after which it is unfinished; raises if it would not end as if it
        had had them from the start.
        """
        training, result = there["training"], self.read_result()
        done, every = max((row["epoch"] for row in self.read_history()), default=0), training["eval_every"]
        why = None
        if training["schedule"] == "cosine":
            why = "its learning rates (training.schedule=cosine) depend on the number of epochs"
        elif done == training["epochs"] and done % every:
            why = f"its last epoch was validated out of turn (training.eval_every={every})"
        elif result is not None and not self.checkpoint.exists():
            why = f"{self.checkpoint} is not there"
        if why is not None:
            raise DataError(
                f"{self.path} holds a run of {training['epochs']} epochs that cannot continue to "
                f"{longer['training']['epochs']}: {why}; {_ELSEWHERE}"
            )
        if result is not None and result["stopped_early"]:
            note = (
                f"the run in {self.path} stopped early after epoch {result['epochs']} "
                f"(training.patience={training['patience']}), so it is the same with more epochs"
            )
            warnings.warn(note, DataWarning, stacklevel=4)
            return there
        for file in (self.result, *self.index):  # before the configuration: a finished run is never of another length
            file.unlink(missing_ok=True)
        self._write_config(longer)
        return longer

    def _write_config(self, config: dict[str, Any]) -> None:
        again = "finalize RUN --out FOLDER" if "final" in config else "train --config config.toml --out FOLDER"
        with atomic_write(self.config) as file:
            file.write(f"# Run it again: h2hgcn {again}\n".encode())
            tomli_w.dump(config, file)

    def read_config(self) -> dict[str, Any]:
        """The configuration, if it is of this version."""
        if self.path.is_file():
            raise DataError(f"{self.path} is a file; give the folder of a run")
        if not self.path.exists():
            raise DataError(f"{self.path} is not there; give the folder of a run")
        try:
            config = read_config(self.path)
        except DataError as error:
            raise DamagedRunError(f"{error}; {_RESTORE}" if self.config.exists() else str(error)) from None
        if not isinstance(config.get("format"), int):
            raise DamagedRunError(f"{self.config} is not that of a run, or damaged: it has no format; {_RESTORE}")
        if config["format"] != FORMAT:
            raise DataError(
                f"{self.config} has the format {config['format']}, but this version of h2hgcn reads {FORMAT}; "
                "use the version that is named there, or train again"
            )
        for name, kind in _KINDS.items():
            if not isinstance(config.get(name), kind):
                wanted = "a section" if kind is dict else "a whole number"
                found = repr(config[name]) if name in config else "missing"
                raise DamagedRunError(f"{self.config} is damaged: {name} is {found}, not {wanted}; {_RESTORE}")
        return config

    def read_result(self) -> dict[str, Any] | None:
        """Metrics and more of a run that is over; None if it is not."""
        try:
            result: dict[str, Any] = json.loads(self.result.read_text(encoding="utf-8"))
            _check_result(result)
            result = unstamped(result)
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise DamagedRunError(f"{self.result} is damaged ({error}); {self.how_to_restore(self.result)}") from None
        self._checksums = result.pop("files", {})
        return result

    def write_result(self, result: dict[str, Any]) -> None:
        """Writes the result, with checksums of the files beside it that have none in themselves."""
        files = (self.config, self.metrics, self.embeddings, self.report)
        self._checksums = {file.name: sha256_of(file) for file in files if file.exists()}
        result = stamped(result | {"files": self._checksums})
        with atomic_write(self.result) as file:
            file.write((json.dumps(result, indent=2) + "\n").encode())

    def is_whole(self, file: Path) -> bool:
        """Whether a file is there and, as far as the result says, as it was written."""
        return file.exists() and self._checksums.get(file.name) in (None, sha256_of(file))

    def warn_of_changes(self, *files: Path) -> None:
        """Says if files are not as they were. For those that the predictions of a run do not depend on."""
        for file in files:
            if file.exists() and not self.is_whole(file):
                note = f"{file} is not as it was when the run finished: it was damaged or edited since"
                warnings.warn(note, DataWarning, stacklevel=3)

    def how_to_restore(self, file: Path) -> str:
        """The advice for a file that follows from the checkpoint."""
        which = " and ".join(str(one) for one in dict.fromkeys((file, self.result)) if one.exists())
        return f"delete {which} and run the same command again, which makes it again"

    def read_history(self, epochs: int | None = None) -> list[dict[str, Any]]:
        """One entry for each epoch, of the first ``epochs`` if they are given; a warning says if some are missing."""
        rows, last = [], math.inf if epochs is None else epochs
        for line in self.metrics.read_bytes().splitlines() if self.metrics.exists() else ():
            with suppress(ValueError, TypeError, LookupError, RecursionError):  # a damaged line
                row = json.loads(line)
                if row["epoch"] <= last:
                    rows.append(row)
        if epochs is not None and len(rows) < epochs:
            missing = f"{epochs - len(rows)} of {epochs} epochs"
            words = f"{self.metrics} is damaged or missing: {missing} are left out of the curves, nothing else is lost"
            warnings.warn(words, DataWarning, stacklevel=3)
        return rows

    def write_history(self, rows: Iterable[dict[str, Any]]) -> None:
        with atomic_write(self.metrics) as file:
            file.writelines(map(metrics_line, rows))


def metrics_line(row: dict[str, Any]) -> bytes:
    """A line of ``metrics.jsonl``."""
    return (json.dumps(row) + "\n").encode()


def difference(
    there: dict[str, Any], given: dict[str, Any], sections: Iterable[str] = SETTINGS
) -> tuple[str, Any, Any] | None:
    """The first setting that differs, and its two values. Data that hold the same are the same, wherever they lie."""
    if there["data"].get("fingerprint") == given.get("data", {}).get("fingerprint"):
        there, given = there | {"data": {}}, given | {"data": {}}
    for section in sections:
        old, new = there.get(section), given.get(section)
        if not isinstance(old, dict) or not isinstance(new, dict):
            if old != new:
                return section, old, new
            continue
        for key in (*old, *new):
            if old.get(key) != new.get(key) and key not in _FREE:
                return f"{section}.{key}", old.get(key), new.get(key)
    return None


def _check_result(result: Any) -> None:
    """Raises unless this is what a finished run came to."""
    if not isinstance(result, dict):
        raise ValueError(f"it holds a {type(result).__name__}, no result")
    for name, kind in _RESULT_KINDS.items():
        if name not in result or not isinstance(result[name], kind):
            raise ValueError(f"{name!r} is missing or of another kind")
    if "of_run" in result:  # a final fit has no metrics
        return
    kinds = [task.parts for task in TASKS.values()]
    parts = next((parts for parts in kinds if not result["metrics"].keys().isdisjoint(parts)), kinds[0])
    for part in parts:
        metrics = result["metrics"].get(part)
        if not isinstance(metrics, dict) or not isinstance(metrics.get(result["selection"]), int | float):
            raise ValueError(f"it has no {part} {result['selection']}")
