"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a sample twice and a sample of weight 2 fall into different batches and validation parts"
    ),
}
SMALL = {"hidden_size": 8, "learning_rate": 0.02, "max_epochs": 10, "random_state": 0}


@parametrize_with_checks(
    [ParaRNNRegressor(**SMALL), ParaRNNClassifier(**SMALL)],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn(estimator, check):
    check(estimator)
