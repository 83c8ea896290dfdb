"""The suite with older and newer versions of Python, PyTorch and PyG.

Each combination gets a virtual environment of its own, in which the package is installed without pinned versions, but
for those of the combination. The suite runs there; what it needs of extras that cannot be installed is skipped. An
interpreter that is not on this machine is left out, with a note. Results are appended to a file of records; a
combination is tried again if its last record is of other code. `--markdown` and `--json` print the records and run
nothing.

PyPI's PyTorch for Linux brings several gigabytes of CUDA libraries: allow for 8 GB of disk for each combination.

    python benchmarks/versions.py --python 3.11 --torch 2.6.0 --pyg 2.6.1
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from report import parser, publish

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "versions.jsonl"
EXTRAS = "anndata,explorer,export,hub,plot,scale,tensorboard,tune"
TOOLS = ("hypothesis", "httpx", "mpmath", "pandas", "pytest", "pytest-timeout", "pytest-xdist", "hatchling", "build")
# Packaging, pages and the explorer do not depend on these versions; accelerators are elsewhere.
LEFT_OUT = (
    "tests/test_packaging.py", "tests/test_settings_page.py", "tests/docs", "tests/explorer", "tests/accelerator",
)  # fmt: skip


def try_versions(options: argparse.Namespace) -> dict[str, Any] | None:
    python = shutil.which(f"python{options.python}")
    if python is None:
        print(f"python{options.python} is not on this machine: left out", file=sys.stderr)
        return None
    folder = options.environments / f"py{options.python}-torch{options.torch}-pyg{options.pyg}"
    if not folder.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = (f"torch=={options.torch}", f"torch-geometric=={options.pyg}")
    subprocess.run([*pip, *pinned, *TOOLS, "--editable", f"{ROOT}[{EXTRAS}]"], check=True)
    command = [
        folder / "bin" / "python",
        "-m",
        "pytest",
        "-q",
        *(f"--ignore={path}" for path in LEFT_OUT),
        *options.tests,
    ]
    suite = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not options.keep:
        shutil.rmtree(folder)
    last = suite.stdout.rstrip().splitlines()[-1] if suite.stdout.strip() else suite.stderr
    counts = {name: int(number) for number, name in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
    for line in suite.stdout.splitlines():
        if line.startswith(("FAILED", "ERROR")):
            print(line, file=sys.stderr)
    return {
        "python": options.python,
        "torch": options.torch,
        "pyg": options.pyg,
        "passed": counts.get("passed", 0),
        "failed": counts.get("failed", 0) + counts.get("error", 0),
        "skipped": counts.get("skipped", 0),
        "code": subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip(),
    }


def read_records() -> list[dict[str, Any]]:
    """The last record of each combination, oldest versions first."""
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    last = {tuple(record[name] for name in ("python", "torch", "pyg")): record for record in map(json.loads, lines)}
    return [last[key] for key in sorted(last, key=lambda key: [[*map(int, name.split("."))] for name in key])]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--python", default=f"{sys.version_info.major}.{sys.version_info.minor}")
    arguments.add_argument("--torch", default="2.13.0")
    arguments.add_argument("--pyg", default="2.8.0")
    arguments.add_argument("--environments", type=Path, default=ROOT / ".venvs", help="folder (default: %(default)s)")
    arguments.add_argument("--keep", action="store_true", help="do not delete the environment afterwards")
    arguments.add_argument("tests", nargs="*", help="folders of tests (default: nearly all)")
    options = arguments.parse_args()
    if not (options.json or options.markdown):
        record = try_versions(options)
        if record is not None and not options.tests:
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
    publish({"Versions": read_records()}, options)


if __name__ == "__main__":
    main()
