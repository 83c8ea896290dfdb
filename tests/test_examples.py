"""The examples run, and find more than a trivial score does."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_tree_link_prediction():
    command = [sys.executable, EXAMPLES / "tree_link_prediction.py", "--epochs", "100"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ours, trivial = (float(value) for value in re.findall(r"test AUC.*: +([\d.]+)", output))
    assert ours > 0.9
    assert ours > trivial + 0.1
