"""``h2hgcn models``."""

import json

from h2hgcn.models import ENCODERS


def test_models(run):
    listed = json.loads(run("models", "--json").stdout)
    assert [row["name"] for row in listed] == list(ENCODERS)
    assert {"lp", "nc", "gc"} >= set(listed[0]["tasks"])
    assert "h2h-gcn" in run("models").stdout
