"""Contract suites for classes from outside: derive a test class, say what to test, and let pytest collect it.

    from shoestring.testing import AcquisitionContract

    class TestThompson(AcquisitionContract):
        def make(self):
            return Thompson()

Each suite checks what the library relies on: shapes and finite numbers, the same seed giving the same trials, a study that is
stored and opened again, ``replay``. ``StorageContract`` checks a storage call by call, through the ``open`` of the derived class.
``ExecutorContract`` checks an executor alone, and in the run of a study. The library's own classes pass the same suites. Nothing
here needs pytest itself.
"""

from .acquisition import AcquisitionContract
from .cost_model import CostModelContract
from .executor import ExecutorContract
from .rule import RuleContract
from .storage import StorageContract
from .surrogate import SurrogateContract

__all__ = [
    "AcquisitionContract", "CostModelContract", "ExecutorContract", "RuleContract", "StorageContract", "SurrogateContract",
]  # fmt: skip
