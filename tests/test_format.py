import math

import pytest

from shoestring._format import amount, config_text, duration, listed, plural, rounded


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (0.123456, "0.1235"), (3.0, "3"), (math.nan, "nan"), (-math.inf, "-inf"),
        (12345.6, "12346"), (-9999.7, "-10000"), (9.9e8, "990000000"), (1e9, "1e+09"),
    ],
)
def test_numbers_have_four_significant_digits(value, text):
    assert rounded(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123, "12.3 ms"), (5, "5 s"), (59.9, "59.9 s"), (85, "1 m 25 s"), (600, "10 m 00 s"),
        (3599.9, "1 h 00 m"), (7384, "2 h 03 m"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_amounts_configs_plurals_and_lists():
    assert amount(600, "s") == "10 m 00 s"
    assert amount(1.23456, "USD") == "1.235 USD"
    assert config_text({"lr": 0.00123456, "n": 3, "c": "a"}) == "lr = 0.001235, n = 3, c = a"
    assert (plural(1, "trial"), plural(2, "trial"), plural(0, "trial")) == ("1 trial", "2 trials", "0 trials")
    assert (listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])) == ("", "a", "a and b", "a, b and c")
