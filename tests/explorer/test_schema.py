"""The server keeps what its OpenAPI schema promises, whatever it is asked."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest


def test_answers_are_those_of_the_schema(address, tmp_path):
    program = Path(sys.executable).with_name("schemathesis")
    if not program.exists():
        pytest.skip("schemathesis is not installed, which asks the server all kinds of questions")
    command = [program, "run", f"{address}api/schema.json", "--max-examples=6", "--seed=1", "--no-color"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=200)
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout


def test_the_schema_has_every_question(address):
    paths = httpx.get(f"{address}api/schema.json").json()["paths"]
    assert set(paths) == {"/api/about", "/api/buffers/{name}", "/api/nodes/{node}/{kind}"}
