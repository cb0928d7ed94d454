"""Intervals that know that parameters are estimated: widths, coverage, paths, files."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tsrnn import load
from tsrnn.contract import read_file, write_file
from tsrnn.linear import ARMA, CES, ETS, VARMA, AutoARIMA, Theta

MODELS = {
    "ARMA": (ARMA, {"order": (1, 0)}),
    "AutoARIMA": (AutoARIMA, {"max_p": 1, "max_q": 1, "season_length": 1}),
    "ETS": (ETS, {"error": "add", "trend": "none", "seasonal": "none"}),
    "Theta": (Theta, {"seasonal": "none"}),
    "CES": (CES, {"seasonal": "none"}),
}
ROWS = 24


@pytest.fixture(params=MODELS)
def make(request):
    cls, arguments = MODELS[request.param]
    return lambda **more: cls(**arguments, freq=1, random_state=0, **more)


@pytest.fixture
def series():
    noise = np.random.default_rng(0).normal(size=ROWS)
    return pd.Series(50 + 0.3 * noise.cumsum() + noise, name="y")


def widths(model, h=4, level=90):
    found = model.predict(h, level=level)
    return ((found.iloc[:, 2] - found.iloc[:, 1]) / 2).to_numpy()


def test_are_those_of_student_and_the_final_prediction_error(make, series):
    wide, narrow = (make(parameter_uncertainty=p).fit(series) for p in (True, False))
    estimates = wide.estimates_
    n = estimates.n_obs[0]
    k = len(estimates.names) if estimates.n_params is None else estimates.n_params[0]
    constants = wide.fitted_.constants
    corrected = wide.fitted_.family.variance_correction(constants) * np.ones(1)
    if isinstance(wide, ARMA | AutoARIMA):  # whose forecasts are corrected by the model
        corrected = np.array([n / (n - k + 1)])
    factor = stats.t.ppf(0.95, n - k) / stats.norm.ppf(0.95)
    factor *= np.sqrt((n + k) / (n - k) / corrected[0])
    np.testing.assert_allclose(widths(wide), factor * widths(narrow))
    pd.testing.assert_frame_equal(wide.predict(4).to_frame(), narrow.predict(4).to_frame())
    assert "Widened" in wide.interval_guarantee_
    assert "taken as known" in narrow.interval_guarantee_


def test_known_parameters_leave_the_unbiased_variance(make, series):
    """Sum of squares over n less the parameters of the mean, in every class."""
    model = make(parameter_uncertainty=False).fit(series)
    estimates, k = model.estimates_, len(model.params_.columns)
    n, k = estimates.n_obs[0], k if estimates.n_params is None else estimates.n_params[0]
    first = (widths(model, h=1)[0] / stats.norm.ppf(0.95)) ** 2
    sigma2 = model.params_["sigma2"].iloc[0]
    assert first == pytest.approx(sigma2 * n / (n - k + 1), rel=1e-3)
    given = make(parameter_uncertainty=False)
    if not isinstance(given, AutoARIMA):
        known = widths(given.filter(series, model.params_), h=1)[0] / stats.norm.ppf(0.95)
        assert known**2 == pytest.approx(sigma2, rel=1e-3)


def test_the_unbiased_variance_of_several_targets():
    """Each equation of a vector model has its own coefficients."""
    y = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
    fitted = VARMA((1, 0)).fit(y)
    known = VARMA((1, 0)).filter(y, fitted.params_)
    ratio = [model.predict(1, level=90)[["a-hi-90", "b-hi-90"]] for model in (fitted, known)]
    mean = known.predict(1)[["a", "b"]].to_numpy()
    np.testing.assert_allclose(
        ratio[0].to_numpy() - mean, np.sqrt(20 / (20 - 3)) * (ratio[1].to_numpy() - mean)
    )


def test_paths_have_these_quantiles(make, series):
    model = make().fit(series)
    paths = model.sample_paths(20_000, h=3)
    ends = model.predict(3, level=80)
    name = paths.columns[-1]
    by_step = paths[name].to_numpy().reshape(20_000, 3)
    spread = np.diff(np.quantile(by_step, [0.1, 0.9], axis=0), axis=0)[0]
    expected = (ends.iloc[:, 2] - ends.iloc[:, 1]).to_numpy()
    np.testing.assert_allclose(spread, expected, rtol=0.06)


def test_of_given_parameters_nothing_is_unknown(make, series):
    if isinstance(make(), AutoARIMA):
        pytest.skip("takes no parameters")
    fitted = make().fit(series)
    given = make().filter(series, fitted.params_)
    assert "Widened" not in given.interval_guarantee_
    known = make(parameter_uncertainty=False).filter(series, fitted.params_)
    np.testing.assert_allclose(widths(given), widths(known))


@pytest.mark.few("ARMA", "ETS", "Theta", "CES")
def test_of_a_long_series_they_differ_little(make):
    y = pd.Series(np.random.default_rng(1).normal(size=2000))
    wide, narrow = (widths(make(parameter_uncertainty=p).fit(y)) for p in (True, False))
    assert (wide > narrow).all()
    np.testing.assert_allclose(wide, narrow, rtol=0.01)


def test_files_of_format_3_take_parameters_as_known(make, series, tmp_path):
    model = make(parameter_uncertainty=False).fit(series)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    header, arrays = read_file(file)
    del header["params"]["parameter_uncertainty"], header["params"]["intervals"]
    write_file(tmp_path / "model", header | {"format": 3}, arrays)
    np.testing.assert_allclose(widths(load(tmp_path / "model")), widths(model))


@pytest.mark.parametrize(("rows", "level"), [(12, 80), (12, 95), (30, 95)])
def test_cover_a_model_of_given_order(rows, level):
    """Short autoregressions with a mean: 3 parameters; 3,000 series, error under one percent."""
    rng, n, h = np.random.default_rng(2), 3000, 1
    y = np.zeros((n, 50 + rows + h))
    noise = rng.normal(size=y.shape)
    for t in range(1, y.shape[1]):
        y[:, t] = 0.5 * y[:, t - 1] + noise[:, t]
    y = y[:, 50:]
    frame = pd.DataFrame({
        "unique_id": np.repeat(np.arange(n), rows),
        "ds": np.tile(np.arange(rows), n),
        "y": y[:, :rows].ravel(),
    })  # fmt: skip
    shares = []
    for uncertain in (True, False):
        model = ARMA(order=(1, 0), freq=1, parameter_uncertainty=uncertain).fit(frame)
        found = model.predict(h, level=level)
        low, high = found[f"ARMA-lo-{level}"], found[f"ARMA-hi-{level}"]
        shares.append(np.mean((low <= y[:, rows]) & (y[:, rows] <= high)))
    assert shares[0] == pytest.approx(level / 100, abs=0.03)
    assert shares[1] < shares[0]


def test_must_be_a_truth_value(series):
    with pytest.raises((TypeError, ValueError), match="parameter_uncertainty must be"):
        ARMA(order=(1, 0), parameter_uncertainty="yes").fit(series)
