"""Folders of runs and converted graphs with a flipped bit, and with files that are damaged or belong elsewhere."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

from faults_trials import Outcome, Part, invoke, train, write_runs

_PREDICT = ("predict", "nc", "--json")
_SCORE = ("evaluate", "lp", "--json")
_LINKS = ("recommend", "lp", "--all", "--index", "hnsw", "--json")
_PAGE = ("explore", "nc", "--export", "page.html", "--force")
_AGAIN = ("train", "lp")

# Each file, and what reads it.
_READERS: dict[str, tuple[Any, ...]] = {
    "nc/config.toml": _PREDICT,
    "nc/result.json": _PREDICT,
    "nc/metrics.jsonl": _PREDICT,
    "nc/model.safetensors": _PREDICT,
    "nc/graph.safetensors": _PREDICT,
    "nc/embeddings.parquet": _PAGE,
    "lp/embeddings.parquet": _AGAIN,
    "lp/report.html": _AGAIN,
    "lp/checkpoint/latest.safetensors": ("train", "lp", "--epochs", 5),
    "lp/config.toml": _SCORE,
    "lp/model.safetensors": _SCORE,
    "lp/graph.safetensors": _SCORE,
    "lp/result.json": _SCORE,
    "lp/index.faiss": _LINKS,
    "lp/index.json": _LINKS,
    "big/graph.json": ("inspect", "big", "--json"),
    "big/edge_index.npy": ("inspect", "big", "--json"),
    "big/node_ids.npy": ("inspect", "big", "--json"),
    "big/x.npy": ("inspect", "big", "--json"),
    "big/y.npy": ("inspect", "big", "--json"),
}


def _prepare(base: Path) -> None:
    """Runs, and what their commands say while nothing is damaged."""
    write_runs(base / "intact")
    for command in set(_READERS.values()):
        shutil.copytree(base / "intact", base / "copy")
        outcome = _use(base / "copy", command)
        if outcome.code:
            raise RuntimeError(f"{command}: {outcome.errors}")
        (base / f"{_name(command)}.json").write_text(json.dumps(outcome))
        shutil.rmtree(base / "copy")


def _use(folder: Path, command: tuple[Any, ...]) -> Outcome:
    if command[0] == "train":
        return train(folder, "lp", *command[1:])
    return invoke(folder, *command)


def _name(command: tuple[Any, ...]) -> str:
    return "-".join(map(str, command)).replace(".", "")


def _said(base: Path, command: tuple[Any, ...]) -> Outcome:
    return Outcome(*json.loads((base / f"{_name(command)}.json").read_text()))


def flip(number: int, base: Path, own: Path) -> str | None:
    """A bit is flipped in a file: it is refused by its name, noted, restored, or made again; nothing else changes."""
    draw = random.Random(number)
    name = list(_READERS)[number % len(_READERS)]
    command = _READERS[name]
    shutil.copytree(base / "intact", own / "copy")
    path = own / "copy" / name
    intact = path.read_bytes()
    flipped = bytearray(intact)
    place = draw.randrange(len(flipped))
    flipped[place] ^= 1 << draw.randrange(8)
    path.write_bytes(flipped)
    outcome, before = _use(own / "copy", command), _said(base, command)
    where = f"{name}, byte {place} of {len(intact)}"
    failure = outcome.failure((0, 2))
    if failure is not None:
        return f"{where}: {failure}"
    if outcome.code == 2:
        named = any(part in outcome.errors for part in (Path(name).name, name.split("/")[0]))
        return None if named else f"{where} is not named: {outcome.errors[-300:]}"
    if outcome.output != before.output and command != _AGAIN:
        return f"{where}: another result, without a word"
    if outcome.errors == before.errors and path.read_bytes() == bytes(flipped):
        return f"{where}: nobody noticed"
    return None


_JUNK: tuple[bytes, ...] = (
    b"", b"\0" * 100, b"{}", b"[]", b"null", b"[" * 100_000, b'{"a":' * 5000, b"9" * 5000, b"\xff\xfe", b"PK\x03\x04",
    (2**62).to_bytes(8, "little") + b"{}", b"PAR1" * 4, b'{"epoch": 1}\n' * 3, b"format = 1\n", b"\x93NUMPY\x01\x00",
)  # fmt: skip
_COMMANDS: tuple[tuple[Any, ...], ...] = (
    _PREDICT, _SCORE, _LINKS, _PAGE, _AGAIN, ("inspect", "big", "--json"), ("embed", "lp", "--out", "e.csv", "--force"),
    ("finalize", "lp"), ("recommend", "lp", "--top", 5, "--json"), ("split", "nc", "--out", "s.csv", "--force"),
)  # fmt: skip


def _spoil(folder: Path, base: Path, draw: random.Random) -> str:
    """Does something bad to one file of a folder, and says what."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.parent != folder)
    path = draw.choice(files)
    name, kind = path.relative_to(folder), draw.randrange(9)
    if kind == 0:
        path.unlink()
        return f"{name} deleted"
    if kind == 1:
        path.write_bytes(path.read_bytes()[: draw.randrange(max(1, path.stat().st_size))])
        return f"{name} cut"
    if kind == 2:
        path.write_bytes(draw.choice(_JUNK))
        return f"{name} replaced by junk"
    if kind == 3:
        path.unlink()
        path.mkdir()
        return f"{name} is a folder"
    if kind == 4:
        path.unlink()
        path.symlink_to(draw.choice([base / "outside", Path("/dev/zero"), path, base / "nowhere"]))
        return f"{name} is a link"
    if kind == 5:
        other = draw.choice([one for one in files if one.suffix == path.suffix])
        path.write_bytes(other.read_bytes())
        return f"{name} is {other.relative_to(folder)}"
    if kind == 6 and path.suffix == ".json":
        facts = json.loads(path.read_text())
        facts[draw.choice(sorted(facts))] = draw.choice([None, -1, "x", [], {}, [[1]], 10**400, True])
        path.write_text(json.dumps(facts))
        return f"{name} with another value"
    if kind == 7:
        lines = path.read_bytes().split(b"\n")
        del lines[draw.randrange(len(lines))]
        path.write_bytes(b"\n".join(lines))
        return f"{name} without a line"
    path.write_bytes(draw.randbytes(200))
    return f"{name} replaced by noise"


def spoiled(number: int, base: Path, own: Path) -> str | None:
    """A file of a folder is damaged or foreign: a command works as before, or says which file is wrong, and writes
    nothing outside.
    """
    draw = random.Random(number)
    shutil.copytree(base / "intact", own / "copy")
    outside = base / "outside"
    outside.write_bytes(b"untouched")
    what = _spoil(own / "copy", base, draw)
    command = _COMMANDS[number % len(_COMMANDS)]
    outcome = _use(own / "copy", command)
    where = f"{what}, then {' '.join(map(str, command))}"
    failure = outcome.failure((0, 2))
    if failure is not None:
        return f"{where}: {failure}"
    if outside.read_bytes() != b"untouched" or (base / "nowhere").exists():
        return f"{where}: something was written outside of the folder"
    compared = outcome.code == 0 and command in _READERS.values() and command != _AGAIN
    if compared and outcome.output != _said(base, command).output:
        return f"{where}: another result"
    return None


FLIPS = Part("bits flipped in files of runs and converted graphs", 1_000, _prepare, flip)
FOLDERS = Part("damaged or foreign files in folders", 500, _prepare, spoiled)
