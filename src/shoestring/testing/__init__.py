"""Contract suites for classes from outside: derive a test class, say what to test, and let pytest collect it.

    from shoestring.testing import AcquisitionContract

    class TestThompson(AcquisitionContract):
        def make(self):
            return Thompson()

Each suite checks what the library relies on: shapes and finite numbers, the same seed giving the same trials, a study that is
stored and opened again, ``replay``. The library's own classes pass the same suites. Nothing here needs pytest itself.
"""

from .acquisition import AcquisitionContract
from .cost_model import CostModelContract
from .rule import RuleContract
from .surrogate import SurrogateContract

__all__ = ["AcquisitionContract", "CostModelContract", "RuleContract", "SurrogateContract"]
