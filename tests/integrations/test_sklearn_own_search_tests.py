"""scikit-learn's own tests of RandomizedSearchCV, run with ShoestringSearchCV in its place.

They are those of the installed scikit-learn: whatever version is there says what a search must do. They run in a process of their
own, with this file as a plugin of pytest, which replaces the class before they are imported. What differs on purpose is skipped,
with the reason.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

OTHER_CANDIDATES = "it expects the candidates that RandomizedSearchCV draws, or their order"
MORE_COLUMNS = "it expects that cv_results_ has no further columns, and ours has costs"
DIFFERENT_ON_PURPOSE = {
    "test_random_search_cv_results": MORE_COLUMNS,
    "test_random_search_cv_results_multimetric": MORE_COLUMNS,
    "test_search_cv_results_rank_tie_breaking": OTHER_CANDIDATES,
    "test_search_default_iid": OTHER_CANDIDATES,
    "test_search_cv_timing": OTHER_CANDIDATES,
    "test_search_with_2d_array": OTHER_CANDIDATES,
}
MAKES_SEARCHES = ("RandomizedSearchCV", "_searchcv_callback_test_cases")  # words in a test that is about this class


def pytest_configure(config):
    """Of the plugin: ShoestringSearchCV takes the place of RandomizedSearchCV."""
    import sklearn.model_selection

    from shoestring.integrations.sklearn import ShoestringSearchCV

    sklearn.model_selection.RandomizedSearchCV = ShoestringSearchCV


def pytest_collection_modifyitems(items):
    """Of the plugin: only tests in which the class occurs."""
    items[:] = [item for item in items if any(word in "".join(inspect.getsourcelines(item.obj)[0]) for word in MAKES_SEARCHES)]
    for item in items:
        if reason := DIFFERENT_ON_PURPOSE.get(item.originalname):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.mark.slow
def test_it_passes_scikit_learn_s_own_tests_of_randomized_search(tmp_path):
    here = Path(__file__)
    pytest.importorskip("sklearn.model_selection.tests", reason="scikit-learn is installed without its tests")
    options = ["-p", here.stem, "-p", "no:cacheprovider", "-q", "-W", "ignore", "-rs", f"--rootdir={tmp_path}"]
    command = [sys.executable, "-m", "pytest", "--pyargs", "sklearn.model_selection.tests.test_search", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parent), str(here.parents[2])])}
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", run.stdout)}
    print(run.stdout[-3000:])
    assert run.returncode == 0, run.stdout[-3000:]
    assert counts["passed"] >= 20
    assert counts.get("failed", 0) == counts.get("error", 0) == 0
