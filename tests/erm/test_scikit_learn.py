"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a sample twice and a sample of weight 2 fall into different batches and validation parts"
    )
}
# Checks that ask for a good fit; of all others the fit may be short.
OF_ACCURACY = ("check_regressors_train", "check_classifiers_classes")


@pytest.mark.few(
    "ParaRNNRegressor(hidden_size=8,learning_rate=0.02,max_epochs=1,random_state=0)",
    "check_classifiers_train",
    "check_classifiers_classes",
    "check_classifiers_one_label",
)
@parametrize_with_checks(
    [
        ParaRNNRegressor(8, learning_rate=0.02, max_epochs=1, random_state=0),
        ParaRNNClassifier(8, learning_rate=0.02, max_epochs=1, random_state=0),
    ],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn(estimator, check):
    if check.func.__name__ in OF_ACCURACY:
        estimator.set_params(max_epochs=10)
    check(estimator)
