"""Names of parametrized tests that are the same in every process, as pytest-xdist needs them."""

import re


def without_address(value):
    """The text of a value, without the addresses of objects in it."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
