"""The ParaRNN forecaster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tsrnn.contract import with_shared_arguments
from tsrnn.forecasters._recurrent import RecurrentForecaster

if TYPE_CHECKING:
    from tsrnn.kernels import Cell
    from tsrnn.layers import LayerChoice

INITS = {"default": "stable", "paper": "uniform"}  # default of `init` by preset


@with_shared_arguments
class ParaRNNForecaster(RecurrentForecaster):
    r"""Forecasts by a ParaRNN, a recurrent network of small independent blocks.

    .. math:: \hat y_{t+k} = \ell_t + A_k' d_t + s_t \, g_k(h_t) + s_t \, f(x_{t+k}, h_t)

    with the mean :math:`\ell_t` and spread :math:`s_t` of the last `input_size` values,
    their deviations :math:`d_t` from that mean (the linear path, started by ridge
    regression), and the network of Cai et al. (2026), Algorithm 1, with head g: `n_layers`
    layers of K = `hidden_size` / `block_size` blocks
    :math:`h_t^{(k)} = \tanh(W_h^{(k)} h_{t-1}^{(k)} + W_x^{(k)} z_t + b^{(k)})` on
    :math:`z_t = (y_t - \ell_t) / s_t`, aggregated after the last one. Columns are inputs, too;
    x are the columns known ahead, whose effects a regression removes from y and adds to the
    forecasts (see `effects`). The h steps of `horizon` are forecast directly; any other h
    continues from the model's own forecasts. All series and, with ``multivariate="independent"``,
    all targets share the parameters.

    The last `val_size` rows of each series are the validation part. They choose the penalty of the
    ridge regression and the epoch, and calibrate the intervals by the errors of a network that was
    not trained on them. With `refit`, the network is then trained again on all rows to forecast.

    Parameters
    ----------
    horizon : int, optional
        Steps forecast directly. By default by frequency (hourly 48, daily 14, weekly 13,
        monthly 18, quarterly 8, yearly 6, otherwise 10), at most a third of the
        shortest series.
    input_size : int, optional
        Length W of the window of the local level and the linear path. By default one of a few
        candidates by frequency (hourly 168 or 336, daily 28, 56 or 112, weekly 52, 104 or 208,
        monthly 24, 36, 72 or 120, quarterly 8, 16 or 32, yearly 5, 10 or 20, otherwise 16, 32
        or 64): the one whose linear path forecasts the validation part best, or the second
        without a linear path. At most half of the training part of the shortest series.
    prior : {"auto", "only"}, path or None, default "auto"
        "auto": the pretrained network of the cell forecasts, unless an argument asks for a trained
        network, such as ``hidden_size=32``. If there are enough rows to validate, two more
        candidates are weighted by rolling forecasts of the last rows (see :doc:`/stacking`): the
        same network adapted to the series, and a network trained on them; `summary` lists
        candidates and weights. Otherwise, and with columns not known ahead, the pretrained network
        forecasts alone, adapted to series of at least 300 rows and 25 seasons, and to panels of at
        least 30 series without a season. There is no pretrained network of "gru", "lstm",
        "attention" and a user's cell, which are always trained. A file that
        `tsrnn.prior.TrainedPrior.save` wrote: as "auto" with that network, of any cell. "only":
        the pretrained network without adaptation. None: always train.
    effects : dict, optional
        Effects of exogenous columns in the regression before any network, by column:
        "linear", "smooth" (a curve), "lagged" (of past rows), a list of these, or "none". Named
        linear and smooth effects stay in the regression if there are enough rows and values; lags
        are chosen by the evidence. By default the evidence chooses all effects: see
        :doc:`/columns`. A network trained on the series learns the effects of columns that are not
        known ahead by itself, and by lags in its linear path.
    outliers : {"pulse"} or None
        "pulse": the prior network skips rows that are gross errors, as if they were missing, and
        forecasts both futures where the last row is an error or a shift of the level (see
        :doc:`/howto/outliers`); `summary` and `outliers_` list them. None leaves all rows as they
        are, as networks trained on the series do.
    season_length : int, optional
        Rows of a season, 1 for none. By default by frequency, and 1 for an integer index. The
        prior network ignores seasons longer than 60 rows.
    preset : {"default", "paper"}
        Values of the arguments left at None. "paper" is the network and the training
        of Cai et al., sections 6.2 and D.3: two layers of 128, position-wise
        feedforward aggregation, all targets jointly, no linear path, Adam from 0.002,
        halved until below 1e-6. The paper does not say how its data are scaled, batched and cut
        into inputs: in these respects, in gradient clipping and in the zero start of the output,
        "paper" equals "default", including `local_level`.
    cell : {"rnn", "gru", "lstm", "attention", "lem", "lru", "newton-gru", "newton-lstm"} or Cell
        Recurrence, by the names of `tsrnn.layers.CELLS`: the network above, gated recurrent units
        or long short-term memory with block-diagonal matrices; block-recurrent attention, section
        6.2; long expressive memory; linear recurrent units; the diagonal cells of Danieli et al.
        (2025); or a user's `tsrnn.kernels.Cell`. `LEMForecaster`, `LRUForecaster` and
        `NewtonForecaster` have further arguments of their layers. The state of all layers is
        carried on, the cells of an LSTM included. A forecaster with a user's cell is kept by
        pickle, not by `save`.
    hidden_size, block_size, n_layers : int, optional
        64 ("paper": 128), 2 and 2. With `block_size` equal to `hidden_size` each network has full
        matrices, which is the default of "lem"; "lru" and the diagonal cells have no blocks. The
        block size of a user's cell is the number of its outputs. "rnn", "gru" and "lstm" also take
        several sizes, such as (2, 2, 4), whose sum divides `hidden_size`.
    nonlinearity : {"tanh", "relu", "identity"}, optional
        "tanh". A choice of ``cell="rnn"``.
    init : {"stable", "uniform", "chrono", "orthogonal", "identity"}, optional
        Start values of the layers, see `tsrnn.layers.ParaRNN`: "stable" ("paper": "uniform"); of
        "lem" "uniform" or "chrono".
    chrono_length : float, optional
        The longest dependency expected, in steps, for ``init="chrono"``.
    n_states, window, n_heads : int, optional
        State vectors, steps of a window and heads of ``cell="attention"``, 16, 16 and 4; `n_heads`,
        which divides `hidden_size`, also of the diagonal cells. Table S.1 of Cai et al. has 3 to 5
        layers, 128 states and 8 heads.
    layer_options : dict, optional
        Further arguments of the layer of `tsrnn.layers`, such as ``{"recurrent_layer": "all"}``
        for "attention", with which each layer is recurrent.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence` that runs the recurrence, in training as in forecasts:
        in time order, "sequential" or, for blocks above 8, "dense"; parallel in time, "shooting",
        "newton" or, for linear recurrences, "scan"; "reference", a loop in torch. Forecasts agree
        to rounding. Attention has "auto" alone.
    aggregation : {"linear", "fc", "ffn"}, optional
        "linear" ("paper": "ffn"). With "linear", `contributions` splits a forecast by
        block.
    local_level : bool or "auto", optional
        Whether the level and spread of the last `input_size` values are removed before the
        forecast and restored after it. "auto" ("paper": True): not if the linear path reverts to
        the mean of the series and forecasts the validation part as well without, so that
        thresholds keep their place. False is better for short series that revert to a mean: see
        `linear_path`.
    linear_path : bool, optional
        True ("paper": False). Its coefficients vary with the autocorrelations of the last
        `input_size` values at the seasons (hours: a day and a week), and forecasts revert from the
        local level to the mean of the series, each if that lowers the validation error. Reversion
        is tried if `val_size` is at least ten times `input_size` + `horizon`.
    network : bool or "auto", optional
        Whether a network is added to the local level and the linear path. "auto" ("paper": True)
        keeps it if it lowers the mean squared error over all steps on the validation part;
        `summary` has the test of Diebold and Mariano. It is always kept without a linear path, or
        if it learns the intervals. False trains none, which takes a moment.
    use_boxcox : False, "log" or float
        Transform the targets, which must be positive, by their logarithm or by Box and Cox's
        :math:`(y^\lambda - 1) / \lambda` with a number from 0 to 1, and transform forecasts back.
        The forecast then estimates the median, and not the mean, if errors on the transformed
        scale are symmetric. Intervals are transformed by their ends and keep their coverage.
    multivariate : {"auto", "independent", "factor", "joint"}, optional
        Several targets of a series. "independent": each is forecast from its own past, all with the
        same parameters. "factor": to the linear path of each is added a reduced-rank regression
        on up to 32 common factors of the last season of all columns, or of 8 rows, and one
        network reads all targets. "joint": a regression on all lags of all targets, and one
        network. "auto", the default ("paper": "joint"): factors where they lower the squared error
        of the linear path on the validation part by 3.5 standard errors at least, in the test of
        Diebold and Mariano; else each by itself. See :doc:`/networks`.
    target : str or list of str, optional
        Columns to forecast; by default all columns of a wide frame, "y" of a long one.
        Other columns are exogenous.
    known_ahead : str or list of str, optional
        Exogenous columns whose future is known and given to `predict` as `X_future`.
        Other columns are used up to the last row of the data; beyond `horizon`, where forecasts
        continue from forecasts, they keep their last value.
    static : str or list of str, optional
        Exogenous columns of a long frame that are constant within each series, such as the size
        of a shop: numbers, inputs of a trained network at every step. The effects of columns known
        ahead may depend on them. They are checked, come with the rows of new series, and need not
        be given in `X_future`.
    calendar : bool, str or list of str, optional
        Cycles of the calendar, "minute", "hour", "dayofweek", "day" (of the month), "dayofyear",
        "month", "quarter": sines and cosines of the timestamps, columns known ahead that need
        not be given. True chooses by frequency.
    holidays : str or list of str, optional
        Countries by their ISO codes, with a subdivision or without, "DE", "US-CA": public
        holidays and the working days beside them, of weeks and longer steps the number of working
        days, columns known ahead that need not be given. Beside the prior network each holiday of
        the data has an effect of its own, too. Needs ``pip install 'tsrnn[holidays]'``.
    id_col, time_col : str
        Columns of a long frame.
    freq : str or int, optional
        Frequency of the data, where it cannot be inferred.
    missing : {"auto", "error", "interpolate", "keep"}
        Refuse missing values and rows, or fill gaps between known values linearly: a value
        filled in uses the one after the gap. "keep" is for the prior network, which skips them.
    strict : bool, default False
        Refuse arrays, lists and columns of labels.
    support : {"auto", "real", "nonnegative", "count", "binary"} or pair of bounds, default "auto"
        Values that the targets can have, within which forecasts, intervals and paths stay.
    intervals : {"conformal", "gaussian", "quantile", "student-t"}
        How intervals follow from the forecast errors of the validation part, scaled by
        :math:`s_t`. "conformal": quantiles of the absolute errors, per step. If the
        scaled errors of the validation part and of the future are exchangeable, an
        interval of level p covers with probability at least p; errors of a time series
        are dependent and the epoch was chosen on the same part, so that this holds
        approximately. "gaussian": normal with their root mean square; right if errors
        are normal. Steps with too few errors for a level are warned about; their
        intervals carry no guarantee. Unless every
        series has 100 errors of a step, the errors of all series and targets are pooled:
        coverage then holds on average over them. "quantile" and "student-t" are learned with
        the network, as functions of the state: quantiles by the check loss, or a Student
        distribution by maximum likelihood. The point forecast is then the median or the centre
        of that distribution; the loss is theirs, and there is no guarantee.
    val_size : int, optional
        Rows of the validation part of each series. By default a fifth of the shortest
        series of at least three horizons, or `horizon` + 20 if that is more or there are 30
        series, at most a third.
    loss : {"mse", "mae"}, optional
        Training loss, of errors over the naive error of each series; "mse". Learned
        distributions have their own.
    learning_rate : float, optional
        0.001 ("paper": 0.002), halved when the validation error has not improved for
        three epochs. The linear path moves at a tenth of it.
    weight_decay : float, optional
        Decoupled weight decay of the network, 0.01 ("paper": 0).
    batch_size : int
        Segments in a step of the optimiser. A segment is up to `input_size` rows that
        warm the state up and 192 rows that forecast.
    max_epochs : int, optional
        30 ("paper": 800).
    patience : int, optional
        Epochs without improvement before training stops: 8 ("paper": none).
    n_estimators : int, default 1
        Networks trained from different starts, whose forecasts are averaged.
    per_series : bool, default False
        True to fit each series, an id of a long frame or a target of a wide one, as if alone, with
        its own network, linear path, scaling, intervals and choices. Networks of equal shape are
        trained side by side. The horizon is common. `for_series` gives the forecaster of a series;
        new series are not forecast, and `static` is refused.
    refit : bool, optional
        Whether to train again on all rows, with the best number of epochs and the same learning
        rates: True ("paper": False). It doubles the time of a fit. Intervals, `history_` and
        `validation_` come from the first training.
    device : str
        Where to train, for example "cuda". Forecasts are computed on the CPU. Recurrences are
        compiled on the CPU and, by triton, on CUDA devices; elsewhere they are a loop in torch.
    strategy : {"ddp", "ddp_spawn", "ddp_fork", "ddp_notebook"}, optional
        Train in several processes, each on its part of the batches, started as Lightning does
        under this name: "ddp" in a script, "ddp_notebook" in a notebook. By default in one.
    devices : int, optional
        Number of processes of `strategy`; 1 by default.
    callbacks : list of lightning.pytorch.Callback, optional
        Passed to Lightning's trainer. "ddp_spawn", "ddp_fork" and "ddp_notebook" train in
        other processes: the ``state_dict`` of the first process's callbacks is loaded into these
        by ``load_state_dict``, and nothing else comes back.
    random_state : int, numpy random generator or None
        The same integer gives the same forecasts on the same machine. None draws anew.
    verbose : int
        1 shows a progress bar over epochs and reports when kernels are compiled.

    Attributes
    ----------
    horizon_ : int
    freq_ : str or int
    network_ : tsrnn.layers.RecurrentNetwork
    settings_ : Settings
        All arguments as they were used.
    history_ : list of dict
        Losses and learning rate of every epoch.
    best_epoch_ : int
        The epoch whose parameters are kept; 0 is the start, the linear path alone. Of several
        networks the largest.
    best_epochs_ : list of int
        Of each network.
    network_active_ : bool
        True if a network contributes to the forecasts. If epoch 0 was best, or the network was
        dropped (see `network`), the local level and the linear path forecast alone, and functions
        that read networks, such as `tsrnn.recurrence_features`, raise
        `tsrnn.interpret.UninformativeNetworkError`.
    inactive_networks_ : dict of int to str
        Reason by network, counted from 1, that contributes nothing.
    sample_length_ : int
        Rows of the longest series fitted to.
    validation_ : DataFrame
        Root mean squared error by step on the validation part, of the model, of the local
        level and of the linear path (with the level) as they were before training, of the last
        value and of the value a season before; the unit is the mean absolute error of the naive
        forecast one season ahead on the training part, of each series.
    outliers_ : DataFrame
        Gross errors and level shifts in the last rows of the series, for the prior network only:
        the id of a long frame, the time, ``target`` if there are several, ``kind``, "error" or
        "shift", ``size``, the value less its expectation or the change of the level, and
        ``probability``. `update` moves the rows.
    state_ : RecurrentState
        State and last rows of every series.
    fitted_ : FittedNetworks
        Networks, scaling and intervals, which are not changed after the fit; with effects of
        columns, a `FittedWithColumns` around these. With the prior network it is a `FittedPrior`
        and `state_` a `PriorState`; with several models, a `FittedStacked`, see `parts_`.
        Attributes of a trained network then raise `tsrnn.interpret.UninformativeNetworkError`.

    Notes
    -----
    A constant series is forecast as its constant, with intervals of zero width and a warning.
    Intervals that exclude zero are widened to zero if the share of zeros in the series exceeds the
    share that the level leaves out, as in intermittent demand. A frame without ids is the series
    fitted to if it contains the last known row; otherwise it is a new series, scaled by its own
    rows.

    A series needs at least 8 rows, and one of them three times the horizon. Series that are too
    short to validate train with all their rows, with a warning; their intervals come from the
    errors of the other series.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN: an interpretable and parallelizable
    recurrent neural network for time-dependent data.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = ParaRNNForecaster(horizon=12, max_epochs=2, random_state=0)
    >>> model.fit(load_elec_equip()).predict(3).shape
    (3, 1)
    >>> model.predict(3, level=[80]).columns.tolist()
    ['turnover', 'turnover-lo-80', 'turnover-hi-80']
    """

    column_name = "ParaRNN"

    def __init__(
        self,
        horizon: int | None = None,
        *,
        cell: str | Cell = "rnn",
        block_size: int | Sequence[int] | None = None,
        nonlinearity: str | None = None,
        init: str | None = None,
        chrono_length: float | None = None,
        n_states: int | None = None,
        window: int | None = None,
        n_heads: int | None = None,
        layer_options: dict[str, Any] | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(horizon, **shared)
        self.cell = cell
        self.block_size = block_size
        self.nonlinearity = nonlinearity
        self.init = init
        self.chrono_length = chrono_length
        self.n_states = n_states
        self.window = window
        self.n_heads = n_heads
        self.layer_options = layer_options

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        for name in ("n_states", "window", "n_heads", "layer_options"):
            header["params"].setdefault(name, None)

    @staticmethod
    def _layer(filled: dict[str, Any]) -> LayerChoice:
        from tsrnn.layers import OPTIONS, layer_choice, with_options  # torch

        options = {name: filled[name] for name in OPTIONS}
        layer = layer_choice(filled["cell"], options)
        if layer.name in ("ParaRNN", "UnequalParaRNN") and filled["init"] is None:
            options["init"] = INITS[filled["preset"]]
        choice = layer_choice(filled["cell"], options)
        return with_options(choice, filled["layer_options"], filled["cell"], OPTIONS)
