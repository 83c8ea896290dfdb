"""``h2hgcn models``."""

import json

from h2hgcn.models import ENCODERS
from h2hgcn.tasks import TASKS


def test_models(run):
    listed = json.loads(run("models", "--json").stdout)
    assert [row["name"] for row in listed] == list(ENCODERS)
    assert set(TASKS) >= set(listed[0]["tasks"])
    assert "h2h-gcn" in run("models").stdout
