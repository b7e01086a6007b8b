import pytest


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Of the checks that scikit-learn makes, those with torch are slow: to import it takes seconds."""
    for item in items:
        if "test_sklearn_checks.py" in item.nodeid and "torch" in item.name:
            item.add_marker(pytest.mark.slow)
