"""Commands that are killed or run out of disk, jobs of processes that differ, and a server that is asked for long."""

import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from faults_trials import GRAPH, SMALL, Outcome, Part, invoke, write_graph, write_runs

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "shutil.move"}

# Commands, and the files that they are for.
_TRAIN = ("train", *GRAPH, *SMALL)
COMMANDS: tuple[tuple[tuple[Any, ...], str], ...] = (
    ((*_TRAIN, "--out", "new"), "new/model.safetensors"),
    ((*_TRAIN, "--out", "lp", "--seed", 1, "--force"), "lp/model.safetensors"),
    (("finalize", "lp"), "lp/final/model.safetensors"),
    (("recommend", "lp", "--top", 30, "--out", "links.csv", "--force"), "links.csv"),
    (("recommend", "nc", "--all", "--index", "ivf", "--out", "ivf.csv", "--force"), "ivf.csv"),
    (("convert", "--edges", "my.csv", "--features", "x.csv", "--out", "big"), "big/graph.json"),
    (("explore", "lp", "--export", "page.html", "--force"), "page.html"),
    (("embed", "lp", "--out", "points.parquet", "--force"), "points.parquet"),
)


def change_until_killed(folder: Path, arguments: tuple[Any, ...], changes: int, count: Any = None) -> None:
    """Runs a command in a folder, and kills this process just before its change number ``changes`` of files there."""
    done = 0

    def watch(event: str, given: tuple[Any, ...]) -> None:
        nonlocal done
        wanted = event in _CHANGES or (event == "open" and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        path = given[0] if given and isinstance(given[0], str | os.PathLike) else ""
        if wanted and str(folder) in str(Path.cwd() / path):
            if done == changes:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
            if count is not None:
                count.value = done

    sys.addaudithook(watch)
    outcome = invoke(folder, *arguments)
    if outcome.code:
        sys.__stderr__.write(outcome.errors)  # type: ignore[union-attr]
    sys.exit(outcome.code)


def whole_files(folder: Path) -> dict[str, str]:
    """What a person sees: files without a dot, by content, but for the times that results tell."""

    def digest(path: Path) -> str:
        data = path.read_bytes()
        if path.suffix in (".json", ".jsonl"):
            data = re.sub(rb'"(seconds|changed)": [0-9.]+|[0-9a-f]{64}', b"", data)
        if path.suffix == ".safetensors":  # without the header, which has the time
            data = data[8 + int.from_bytes(data[:8], "little") :]
        if path.name == "report.html":
            data = b""
        return hashlib.sha256(data).hexdigest()

    return {
        str(path.relative_to(folder)): digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def _forked(folder: Path, arguments: tuple[Any, ...], changes: int = -1, after: float = 0, count: Any = None) -> int:
    """The exit code of a command in a process of its own, which is killed at a change, or after some seconds."""
    child = multiprocessing.get_context("fork").Process(
        target=change_until_killed, args=(folder, arguments, changes, count)
    )
    child.start()
    if after:
        child.join(after)
        child.kill()
    child.join(60)
    if child.exitcode is None:
        child.kill()
        child.join()
        return 1000
    return child.exitcode


_warm: set[Path] = set()


def _warm_up(base: Path) -> None:
    """Imports and loads in this process what its children would spend their time on."""
    if base not in _warm:
        _warm.add(base)
        shutil.copytree(base / "intact", base / "warm")
        for arguments, _ in COMMANDS:
            invoke(base / "warm", *arguments)
        shutil.rmtree(base / "warm")


def _prepare_kills(base: Path) -> None:
    """The folder that commands begin with, and what each makes of it, in how many changes and seconds."""
    write_runs(base / "intact")
    _warm_up(base)
    facts = []
    for number, (arguments, _) in enumerate(COMMANDS):
        own = base / "own"
        shutil.copytree(base / "intact", own / "folder")
        count = multiprocessing.Value("i", 0)
        start = time.monotonic()
        if _forked(own / "folder", arguments, count=count):
            raise RuntimeError(f"{arguments} failed")
        seconds = time.monotonic() - start
        facts.append({"changes": count.value, "seconds": seconds, "files": whole_files(own / "folder")})
        (base / f"{number}.json").write_text(json.dumps(facts[-1]))
        shutil.rmtree(own)


def _wrong(folder: Path, number: int, base: Path) -> str | None:
    """How a folder differs from what its command makes of it."""
    wanted, found = json.loads((base / f"{number}.json").read_text())["files"], whole_files(folder)
    if found != wanted:
        return f"differ: {sorted(set(found.items()) ^ set(wanted.items()))[:4]}"
    parts = [str(path) for path in folder.rglob(".*") if re.search(r"\.(part|old)$", path.name)]
    return f"{parts[0]} is left" if parts else None


def killed(number: int, base: Path, own: Path) -> str | None:
    """A command is killed, and given again: it ends with the same files, and nothing was half-written or lost."""
    _warm_up(base)
    which, turn = number % len(COMMANDS), number // len(COMMANDS)
    arguments, _ = COMMANDS[which]
    facts = json.loads((base / f"{which}.json").read_text())
    folder = base / "own" / "folder"  # a final fit names the folder of its run
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base / "intact", folder)
    before = whole_files(folder)
    at_change = turn < facts["changes"]
    after = 0 if at_change else random.Random(number).uniform(0.01, facts["seconds"])
    where = f"{' '.join(map(str, arguments))}, killed {f'at change {turn}' if at_change else f'after {after:.2f} s'}"
    code = _forked(folder, arguments, turn if at_change else -1, after)
    if code not in (-signal.SIGKILL, 0) or (at_change and code == 0):
        return f"{where}: ended with {code} instead"
    found = whole_files(folder)
    lost = set(before) - set(found)
    if "lp" in lost or (lost and "--force" not in arguments and "convert" not in arguments):
        return f"{where}: {sorted(lost)} are lost"
    code = _forked(folder, arguments)
    if code:
        return f"{where}: given again, it ended with {code}"
    wrong = _wrong(folder, which, base)
    return None if wrong is None else f"{where}: {wrong}"


def full(number: int, base: Path, own: Path) -> str | None:
    """The disk is full at some point: a message, nothing is lost, and with room the same command ends as it would."""
    _warm_up(base)
    which, draw = number % len(COMMANDS), random.Random(number)
    arguments, _ = COMMANDS[which]
    disk = base / "own"  # where the kills were, since a final fit names the folder of its run
    disk.mkdir(exist_ok=True)
    size = sum(path.stat().st_size // 4096 + 1 for path in (base / "intact").rglob("*")) * 4 + draw.randrange(0, 160, 4)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(disk)], check=True)
    try:
        shutil.copytree(base / "intact", disk / "folder")
        outcome = _outcome_of(disk / "folder", arguments)
        where = f"{' '.join(map(str, arguments))}, on a disk of {size} kB"
        failure = outcome.failure((0, 1))
        if failure is not None:
            return f"{where}: {failure}"
        if outcome.code and "no space left" not in outcome.errors:
            return f"{where}: {outcome.errors[-300:]}"
        subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
        if outcome.code and _forked(disk / "folder", arguments):
            return f"{where}: fails with room, too"
        wrong = _wrong(disk / "folder", which, base)
        return None if wrong is None else f"{where}: {wrong}"
    finally:
        os.chdir(base)
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _outcome_of(folder: Path, arguments: tuple[Any, ...]) -> Outcome:
    """How a command ends in a process of its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(tuple(invoke(folder, *arguments))))
    child.start()
    sender.close()
    try:
        outcome = Outcome(*receiver.recv()) if receiver.poll(60) else Outcome(1000, "", "more than 60 s")
    except EOFError:
        child.join()
        outcome = Outcome(child.exitcode or 1000, "", "the process ended")
    child.kill()
    child.join()
    return outcome


# To start two processes, and to give up a silent one.
_JOB_SECONDS = 90.0

# What a process of a job has otherwise than the first, and whether they may go on.
MISMATCHES: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("--lr", "0.02"), False), (("--seed", "1"), False), (("--batch-size", "17"), False), (("--fanout", "2,1"), False),
    (("--dim", "5"), False), (("--layers", "1", "--fanout", "2"), False), (("--epochs", "2"), False),
    (("--set", "training.dtype=float64"), False), (("--model", "gcn"), False), (("--edges", "other.csv"), False),
    (("--features", "x2.csv"), False), (("--protocol", "legacy"), False), (("--set", "task.val=0.2"), False),
    (("--set", "training.patience=7"), False), (("--set", "training.weight_decay=0.1"), False),
    (("--set", "model.dropout=0.3"), False), (("--set", "training.schedule=cosine"), False),
    (("--set", "task.split_seed=5"), False), (("--set", "task.negatives=2"), False), (("--workers", "1"), True),
)  # fmt: skip


def _prepare_jobs(base: Path) -> None:
    write_graph(base)
    (base / "other.csv").write_text((base / "my.csv").read_text() + "n01,n30\n")
    (base / "x2.csv").write_text((base / "x.csv").read_text().replace("n39,", "n39,1"))


def mismatched(number: int, base: Path, own: Path) -> str | None:
    """The second process of a job differs from the first: both say in what, and end with exit code 2."""
    flags, fine = MISMATCHES[number % len(MISMATCHES)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "h2hgcn",
        *map(str, _TRAIN),
        "--batch-size",
        "16",
        "--fanout",
        "2,2",
    ]
    command = [str(base / part) if (base / part).is_file() else part for part in command]
    differing = [str(base / flag) if (base / flag).is_file() else flag for flag in flags]
    address = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "COLUMNS": "200"}
    job = [
        subprocess.Popen(
            [*command, *more, "--out", "run"], cwd=own, env=address | {"RANK": str(rank)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank, more in enumerate(([], differing))
    ]  # fmt: skip
    try:
        for rank, process in enumerate(job):
            try:
                _, errors = process.communicate(timeout=_JOB_SECONDS)
            except subprocess.TimeoutExpired:
                return f"{' '.join(flags)}: process {rank} hangs"
            failure = Outcome(process.returncode, "", errors).failure((0,) if fine else (2,))
            if failure is not None:
                return f"{' '.join(flags)}, process {rank}: {failure}"
    finally:
        for process in job:
            process.kill()
            process.communicate()
    return None


def _requests(draw: random.Random, count: int) -> tuple[bytes, int | None]:
    """A request of a browser or of an attacker, and the status it has to get; None for any but success."""
    own = b"Host: localhost\r\nConnection: close\r\n\r\n"
    node, k = draw.randrange(count), draw.randrange(1, 101)
    good = (
        b"GET / HTTP/1.1\r\n", b"GET /api/about HTTP/1.1\r\n", b"GET /static/view.mjs HTTP/1.1\r\n",
        b"GET /api/nodes/%d/neighbors?k=%d HTTP/1.1\r\n" % (node, k), b"GET /api/nodes/%d/links HTTP/1.1\r\n" % node,
        b"GET /api/buffers/points?start=%d HTTP/1.1\r\n" % node,
    )  # fmt: skip
    if draw.random() < 0.5:
        return draw.choice(good) + own, 200
    paths = (
        b"/../../etc/passwd", b"/static/../server.py", b"/static/%2e%2e/server.py", b"/static//etc/passwd", b"/%00",
        b"/api/nodes/-1/links", b"/api/nodes/%d/links" % 10**30, b"/api/nodes/1/links?k=999999", b"/api/buffers/x",
        b"/api/buffers/points?start=-1", b"/api/nodes/nan/neighbors", b"/\xff\xfe", b"/" + b"a" * 50_000, b"/?<script>",
    )  # fmt: skip
    hosts = (
        b"evil.example", b"127.0.0.1#.evil.example", b"127.0.0.1/.evil.example", b"localhost:0", b"localhost:99999",
        b"", b"127.0.0.1@evil.example", b"[::1", b"localhost.", b"127.1", b"0x7f000001",
    )  # fmt: skip
    kind = draw.randrange(4)
    if kind == 0:
        path = draw.choice(paths)
        return b"GET " + path + b" HTTP/1.1\r\n" + own, 200 if path == b"/?<script>" else None
    if kind == 1:
        return b"GET /api/about HTTP/1.1\r\nHost: " + draw.choice(hosts) + b"\r\nConnection: close\r\n\r\n", None
    if kind == 2:
        method = draw.choice((b"POST", b"PUT", b"DELETE", b"PATCH", b"CONNECT", b"X"))
        return method + b" /api/about HTTP/1.1\r\n" + own, None
    return draw.randbytes(draw.randrange(1, 2000)), None


def _prepare_soak(base: Path) -> None:
    write_runs(base / "intact")


def soak(number: int, base: Path, own: Path) -> str | None:
    """A server is asked for half a minute, by requests good and hostile: each gets its answer, memory stays flat."""
    from h2hgcn.cli.explore import open_scene
    from h2hgcn.explorer.server import make_server, open_port

    os.chdir(base / "intact")
    opened = open_port(0)
    port, server = opened.getsockname()[1], os.fork()
    if not server:
        with suppress(BaseException):
            make_server(open_scene(Path("lp"))).run(sockets=[opened])
        os._exit(0)
    opened.close()
    draw, end, asked, memory = random.Random(number), time.monotonic() + SOAK_SECONDS, 0, 0
    try:
        while time.monotonic() < end:
            request, status = _requests(draw, 40)
            answer = _answer(port, request, whole=status == 200)
            asked += 1
            found = int(answer[9:12]) if answer[9:12].isdigit() else None
            if (status == 200) != (found == 200) or b"Traceback" in answer or b"root:" in answer:
                return f"request {asked}: {request[:200]!r} got {answer[:200]!r}"
            if asked == 300:
                memory = _memory_of(server)
        grown = _memory_of(server) - memory
        if memory and grown > 50_000:
            return f"the server grew by {grown // 1000} MB in {asked} requests"
        return None if asked > 20 else f"only {asked} requests were answered"
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


SOAK_SECONDS = 30.0


def _answer(port: int, request: bytes, whole: bool) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        answer = b""
        with suppress(ConnectionError, BrokenPipeError):
            connection.sendall(request)
            if not whole:  # or the server waits for the rest
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                answer += part
        return answer


def _memory_of(process: int) -> int:
    """Kilobytes."""
    (found,) = re.findall(r"VmRSS:\s+([0-9]+)", Path(f"/proc/{process}/status").read_text())
    return int(found)


def can_mount() -> bool:
    """Whether a small disk can be made here."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mount") is not None


KILLS = Part("commands killed at a change of files or at any time", 500, _prepare_kills, killed, patience=60)
DISKS = Part("commands on a disk that gets full", 100, _prepare_kills, full, patience=60)
JOBS = Part("jobs of two processes that differ", 20, _prepare_jobs, mismatched, patience=3 * _JOB_SECONDS)
SOAK = Part("half a minute of requests to the explorer", 20, _prepare_soak, soak, patience=60)
