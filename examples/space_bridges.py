"""A search space of ConfigSpace, as a JSON file has it, tuned here; then the same space for Optuna and for scikit-learn.

    python examples/space_bridges.py
"""

import shoestring as st
from shoestring.integrations.configspace_spaces import space_from_configspace, space_to_configspace
from shoestring.integrations.sklearn_spaces import space_to_sklearn

SERIALIZED = {  # as ConfigurationSpace.to_json() writes it; the path of the file works too
    "hyperparameters": [
        {"type": "categorical", "name": "booster", "choices": ["gbtree", "dart"]},
        {"type": "uniform_float", "name": "eta", "lower": 0.001, "upper": 0.3, "log": True},
        {"type": "uniform_float", "name": "rate_drop", "lower": 0.0, "upper": 0.5},
    ],
    "conditions": [{"type": "EQ", "child": "rate_drop", "parent": "booster", "value": "dart"}],
}


def train(config):
    return abs(config["eta"] - 0.03) + (0.1 if config["booster"] == "gbtree" else abs(config["rate_drop"] - 0.2))


if __name__ == "__main__":
    space = space_from_configspace(SERIALIZED)
    result = st.minimize(train, space, budget=12, seed=0)
    print(f"best {result.best.value:.4f} at {result.best.config}")
    print("the same space again:", space_from_configspace(space_to_configspace(space)) == space)
    for part in space_to_sklearn(space):  # one dict for each value of the parent
        print("for scikit-learn:", sorted(part))
    try:
        from shoestring.integrations.optuna import to_distributions
    except ImportError as problem:
        print(problem)
    else:
        try:
            to_distributions(space)
        except st.SpaceError as problem:  # what the other side cannot express is named
            print("for Optuna:", problem)
        print("for Optuna:", sorted(to_distributions(space, conditions=True)))
