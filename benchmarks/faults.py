"""What becomes of commands that are killed, of damaged files, foreign folders, full disks, jobs that differ and hostile
requests. A try fails by a lost or differing result, a crash, a traceback, a hang, a damage that nobody notices, a graph
that is read as another one, or more memory than 1 GB and 100 times the size of the input.

The tries are numbered, and a number is the same try each time. Results are kept in `results/faults.jsonl`, and a part
that was stopped resumes where it was. `--parts` and `--tries` choose what is run, `--failed` repeats failures, and
`--markdown` runs nothing. The test suite makes the first tries.
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from faults_folders import FLIPS, FOLDERS
from faults_inputs import INPUTS, LOADS
from faults_processes import DISKS, JOBS, KILLS, SOAK, can_mount
from faults_trials import Part, attempts, prepared
from report import parser, publish

PARTS: dict[str, Part] = {
    "inputs": INPUTS, "loads": LOADS, "flips": FLIPS, "folders": FOLDERS, "kills": KILLS, "disks": DISKS, "jobs": JOBS,
    "soak": SOAK,
}  # fmt: skip
RECORDS = Path(__file__).parents[1] / "results" / "faults.jsonl"
_SECONDS = 60  # after so many, what was tried is recorded


def records_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(name: str, first: int, last: int, path: Path) -> None:
    """Makes the tries from one number to another of a part, and appends what became of them."""
    part = PARTS[name]
    with tempfile.TemporaryDirectory() as base:
        prepared(part, Path(base))
        record, start = _record(name, first), time.monotonic()
        for result in attempts(part, range(first, last), Path(base)):
            record["tries"] += 1
            record["seconds"] = round(max(record["seconds"], result.seconds), 2)
            record["MB"] = round(max(record["MB"], result.megabytes))
            if result.failure is not None:
                record["failures"][str(result.number)] = result.failure
                print(f"{name} {result.number}: {result.failure}", flush=True)
            if result.number + 1 == last or time.monotonic() - start > _SECONDS:
                with path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                record, start = _record(name, result.number + 1), time.monotonic()


def repeat(record: dict[str, Any]) -> dict[str, Any]:
    """A record with the tries made again that failed."""
    numbers = sorted(map(int, record["failures"]))
    if not numbers:
        return record
    part = PARTS[record["part"]]
    with tempfile.TemporaryDirectory() as base:
        prepared(part, Path(base))
        results = list(attempts(part, numbers, Path(base)))
    return record | {"failures": {str(one.number): one.failure for one in results if one.failure is not None}}


def _record(name: str, first: int) -> dict[str, Any]:
    state = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=RECORDS.parent)
    commit = state.stdout.strip()
    return {"part": name, "first": first, "tries": 0, "failures": {}, "seconds": 0.0, "MB": 0, "commit": commit}


def table(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tries and failures of each part."""
    rows = []
    for name, part in PARTS.items():
        mine = [record for record in records if record["part"] == name]
        rows.append(
            {
                "part": name,
                "tries": f"{sum(record['tries'] for record in mine):,} of {part.tries:,}",
                "failures": sum(len(record["failures"]) for record in mine),
                "longest, s": max((record["seconds"] for record in mine), default=0.0),
                "memory, MB": max((record["MB"] for record in mine), default=0),
                "what": part.title,
            }
        )
    return rows


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what is tried")
    arguments.add_argument("--tries", type=int, help="how many tries of each part, with those that are recorded")
    arguments.add_argument("--again", action="store_true", help="forget what was recorded of these parts")
    arguments.add_argument("--failed", action="store_true", help="first make those again that failed")
    arguments.add_argument("--records", type=Path, default=RECORDS, help="the file of records")
    options = arguments.parse_args()
    if not options.markdown:
        kept = [one for one in records_of(options.records) if not (options.again and one["part"] in options.parts)]
        if options.failed:
            kept = [repeat(one) if one["part"] in options.parts else one for one in kept]
        options.records.write_text("".join(json.dumps(record) + "\n" for record in kept))
        for name in options.parts:
            if name == "disks" and not can_mount():
                print("disks: left out, since no small disk can be made here (that takes root on Linux)")
                continue
            done = max((one["first"] + one["tries"] for one in kept if one["part"] == name), default=0)
            wanted = PARTS[name].tries if options.tries is None else options.tries
            if done < wanted:
                run(name, done, wanted, options.records)
    publish({"Tries and failures": table(records_of(options.records))}, options)


if __name__ == "__main__":
    main()
