"""What the benchmark scripts share: interleaved medians, tables, --json and --markdown."""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table


def parser(description: str | None) -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    form = arguments.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the figures as JSON instead of tables")
    form.add_argument("--markdown", action="store_true", help="print the page for the documentation")
    arguments.add_argument("--threads", type=int, default=1, help="PyTorch threads (default: %(default)s)")
    return arguments


def interleaved_medians(systems: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each system, measured in turns so that a noisy machine is noisy to all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for function in systems.values():
        function()
    for _ in range(repeats):
        for name, function in systems.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def publish(tables: Mapping[str, Sequence[Mapping[str, Any]]], options: argparse.Namespace) -> None:
    """Prints all tables as they were asked for, with what they were measured with."""
    setting = {"torch": torch.__version__, "processor": _processor(), "threads": options.threads}
    if options.json:
        print(json.dumps({**setting, **tables}, indent=2))
    elif options.markdown:
        print("\n".join(_page(tables, setting)))
    else:
        print(", ".join(f"{key} {value}" for key, value in setting.items()))
        for title, rows in tables.items():
            _show(rows, title)


def _show(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    table = Table(title=title, title_justify="left")
    for key in rows[0]:
        table.add_column(key, justify="right")
    for row in rows:
        table.add_row(*map(_text, row.values()))
    Console(width=160).print(table)


def _page(tables: Mapping[str, Sequence[Mapping[str, Any]]], setting: Mapping[str, Any]) -> Iterator[str]:
    script = Path(sys.argv[0])
    description = sys.modules["__main__"].__doc__ or ""
    yield f"# {script.stem.replace('_', ' ').capitalize()}\n\n{description.strip()}\n"
    yield f"Printed by `python benchmarks/{' '.join([script.name, *sys.argv[1:]])}`"
    yield f"({', '.join(f'{key} {value}' for key, value in setting.items())}). Written by the script, not by hand."
    for title, rows in tables.items():
        yield f"\n## {title}\n"
        yield f"| {' | '.join(rows[0])} |"
        yield f"|{'---:|' * len(rows[0])}"
        yield from (f"| {' | '.join(map(_text, row.values()))} |" for row in rows)


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
