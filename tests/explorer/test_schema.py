"""The server keeps what its OpenAPI schema promises, whatever it is asked."""

import hypothesis
import pytest

schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def promised(address):
    return schemathesis.openapi.from_url(f"{address}api/schema.json")


schema = schemathesis.pytest.from_fixture("promised")


@schema.parametrize()
@hypothesis.settings(max_examples=60, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
def test_answers_are_those_of_the_schema(case):
    case.call_and_validate()


def test_the_schema_has_every_question(promised):
    assert set(promised.raw_schema["paths"]) == {"/api/about", "/api/buffers/{name}", "/api/nodes/{node}/{kind}"}
