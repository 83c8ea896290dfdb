"""Modules as one script."""

import pytest

from h2hgcn.embeddings.pages import bundle

MODULES = {
    "main.mjs": 'import { twice } from "./double.mjs";\nimport { ONE } from "./one.mjs";\nrun(twice(ONE));\n',
    "double.mjs": 'import { ONE } from "./one.mjs";\n\nexport function twice(x) {\n  return (x * 2) / ONE;\n}\n',
    "one.mjs": "export const ONE = 1;\n",
}


def test_what_is_imported_comes_before_and_once():
    script = bundle(MODULES, "main.mjs")
    assert "import" not in script
    assert "export" not in script
    assert script.count("const ONE") == 1
    assert script.index("const ONE") < script.index("function twice") < script.index("run(")
    assert script.startswith('(() => {\n"use strict";')


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"one.mjs": "export default 1;\n"}, "one.mjs imports or exports in a way"),
        ({"one.mjs": 'import * as all from "./double.mjs";\n'}, "one.mjs imports or exports in a way"),
        ({"one.mjs": "export let ONE = 1;\n"}, "one.mjs imports or exports in a way"),
        ({"one.mjs": 'import { twice } from "./double.mjs";\n'}, "in a circle: main.mjs → double.mjs → one.mjs"),
    ],
)
def test_what_cannot_be_joined_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        bundle(MODULES | changes, "main.mjs")
