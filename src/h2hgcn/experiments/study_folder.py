"""The folder of a study: one process at a time, one setting, and a journal that survives being killed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from h2hgcn.errors import DataError
from h2hgcn.experiments.tuning import Study, Tuning
from h2hgcn.files import atomic_write

if TYPE_CHECKING:
    import optuna

_STUDY = "study"
_LOCK = ".lock"
_JOURNAL = "study.journal"
_WORDS = {
    "data": "other data", "settings": "other settings", "seeds": "other seeds", "space": "another search space",
}  # fmt: skip


@contextmanager
def open_study(tuning: Tuning) -> Iterator[Study]:
    """The study in a folder, a new one or one to go on with; no other process has it at the same time."""
    optuna = _optuna()
    path = tuning.folder / _JOURNAL
    check_place(tuning.folder)
    tuning.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(tuning.folder / _LOCK, timeout=0):
            _mend(path)
            study = _opened(optuna, path)
            _check_same(study, tuning)
            yield Study(tuning, study)
    except Timeout:
        raise DataError(f"another process tunes in {tuning.folder}; wait for it, or choose another folder") from None


def check_place(folder: Path) -> None:
    """Raises if a folder is of something else, whose files a study might replace."""
    if folder.is_file():
        raise DataError(f"{folder} is a file; choose a folder with --out")
    if folder.is_dir() and not (folder / _JOURNAL).exists():
        others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if others:
            raise DataError(f"{folder} holds {others[0]}, but no study; choose a new or empty folder with --out")


def _opened(optuna: Any, path: Path) -> "optuna.Study":
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    try:
        backend = JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
        return optuna.create_study(
            storage=JournalStorage(backend), study_name=_STUDY, direction="maximize", load_if_exists=True
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
        raise DataError(f"{path} is damaged ({type(error).__name__}: {error}); {_ADVICE}") from error


_ADVICE = "restore it from a copy, or begin anew in another folder with --out"


def _check_same(study: "optuna.Study", tuning: Tuning) -> None:
    """A study is of one setting."""
    identity = {
        "data": tuning.fingerprint,
        "settings": tuning.base.digest,
        "seeds": [tuning.base.seed, tuning.num_seeds],
        "space": {".".join(place): repr(dimension) for place, dimension in tuning.space.items()},
    }
    known = study.user_attrs.get("identity")
    if known is None and not study.get_trials(deepcopy=False):
        study.set_user_attr("identity", identity)
        return
    there = known if isinstance(known, dict) else {}
    differing = [words for name, words in _WORDS.items() if there.get(name) != identity[name]]
    if differing:
        raise DataError(f"{tuning.folder} holds a study with {', '.join(differing)}; choose another folder with --out")


def _mend(path: Path) -> None:
    """Takes away what a killed process left: a lock, and a line that was cut short. Nobody else has the folder."""
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if not path.exists():
        return
    written = path.read_bytes()
    end = written.rfind(b"\n") + 1
    # of a last line that was not cut short, nothing but its end is missing
    whole = written + b"\n" if _is_json(written[end:]) else written[:end]
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        if not _is_json(line):
            raise DataError(f"{path}: line {number} is damaged; {_ADVICE}")
    if whole != written:
        with atomic_write(path) as file:
            file.write(whole)


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise DataError("tuning needs Optuna; install it with: pip install h2hgcn[tune]") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
