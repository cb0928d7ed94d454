"""Many targets beside few rows are refused at once; what is slow shows how far it is."""

import numpy as np
import pandas as pd
import pytest

from tsrnn.linear import CCC, DCC, VARMA, VECMGARCH
from tsrnn.linear._mean import Mean
from tsrnn.linear.vech._specification import Specification


def noise(rows, columns, seed=0):
    values = np.random.default_rng(seed).standard_normal((rows, columns))
    return pd.DataFrame(values, columns=[f"y{i}" for i in range(columns)])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (VARMA(order=(1, 1)), "4060 parameters of 40 targets need at least 123 observed rows"),
        (VECMGARCH(), "4060 parameters need at least 8120 values; there are 120 rows of 40"),
        (VECMGARCH(structure="full"), "1345660 parameters need at least"),
        (VECMGARCH(structure="diagonal"), "2500 parameters need at least 5000 values"),
        (VECMGARCH(mean="vecm"), "at least 122 rows; got 120"),
        (CCC(mean="var", mean_order=2), "needs at least 122 rows; got 120"),
        (DCC(mean="var"), "2542 parameters need at least 5084 values"),
    ],
    ids=str,
)
def test_more_parameters_than_rows_can_tell_are_refused(model, reason):
    with pytest.raises(ValueError, match=reason):
        model.fit(noise(120, 40))


@pytest.mark.parametrize("kind", ["bekk", "full", "diagonal", "scalar"])
@pytest.mark.parametrize("targeting", [False, True])
def test_parameters_are_counted_as_they_are_named(kind, targeting):
    spec = Specification(kind, 2, 1, targeting, Mean("var"), tuple("abc"), False, 1)
    assert spec.n_params == len(spec.names)


def test_a_varma_has_rows_for_its_coefficients_and_its_covariance():
    """Eight targets, one lag: with 1 + 9 + 8 rows or fewer, some combination fits exactly."""
    with pytest.raises(ValueError, match="need at least 19 observed rows; got 18"):
        VARMA().fit(noise(18, 8))
    assert np.isfinite(VARMA().fit(noise(40, 8)).loglik_).all()


@pytest.mark.few("VARMA()", "DCC()")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (VARMA(), "9 parameters of 1 series"),
        (VECMGARCH(n_starts=1, random_state=0), "2 starts, 13 parameters"),
        (DCC(), "correlations of 2 targets"),
    ],
    ids=str,
)
def test_progress_is_shown_when_asked_for(model, words, capsys):
    frame = noise(200, 2)
    model.set_params(verbose=0).fit(frame)
    assert capsys.readouterr().err == ""
    model.set_params(verbose=1).fit(frame)
    shown = capsys.readouterr().err
    assert words in shown
    assert "evaluations" in shown
