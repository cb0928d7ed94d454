"""Financial and economic time series that ship inside arch; nothing is downloaded."""

from importlib.resources import files

import pandas as pd

from tsrnn.datasets._record import IRREGULAR, Record, month_starts, tidy

_QUOTES = {
    "Open": "index points",
    "High": "index points",
    "Low": "index points",
    "Close": "index points",
    "Adj Close": "index points",
    "Volume": "shares",
}
_TRADING_DAYS = (
    "Daily on trading days: weekends and exchange holidays have no row, so the index has no "
    "frequency. Model returns by trading day (an integer index)."
)
_SP500 = Record(
    name="sp500",
    title="S&P 500 index, daily, 1999-2018",
    units=_QUOTES,
    frequency=IRREGULAR,
    source="quotes of the exchange as shipped with arch, which names no publisher",
    license="not stated",
    shipped_by="arch",
    rows=5031,
    columns=6,
    notes=_TRADING_DAYS,
)
_NASDAQ = Record(
    name="nasdaq",
    title="NASDAQ Composite index, daily, 1999-2018",
    units=_QUOTES,
    frequency=IRREGULAR,
    source="quotes of the exchange as shipped with arch, which names no publisher",
    license="not stated",
    shipped_by="arch",
    rows=5031,
    columns=6,
    notes=_TRADING_DAYS,
)
_VIX = Record(
    name="vix",
    title="Cboe volatility index VIX, daily, 2014-2019",
    units={"vix": "percent a year"},
    frequency="B",
    source="Cboe, as shipped with arch",
    license="not stated",
    shipped_by="arch",
    rows=1305,
    columns=1,
    notes="Every weekday has a row; the 46 holidays of the exchange are NaN.",
)
_WTI = Record(
    name="wti",
    title="Spot price of West Texas Intermediate crude oil, daily, 1986-2019",
    units={"wti": "US dollars a barrel"},
    frequency="B",
    source="FRED, Federal Reserve Bank of St. Louis, series DCOILWTICO",
    license="not stated",
    shipped_by="arch",
    rows=8611,
    columns=1,
    notes="Every weekday has a row; 290 days without a price are NaN.",
)
_CORE_CPI = Record(
    name="core_cpi",
    title="United States consumer prices less food and energy, monthly, 1957-2018",
    units={"core_cpi": "index, 1982-84 = 100"},
    frequency="MS",
    source="FRED, Federal Reserve Bank of St. Louis, series CPILFESL",
    license="not stated",
    shipped_by="arch",
    rows=743,
    columns=1,
    notes="Months are stamped on their first day. Seasonally adjusted.",
)
_CRUDE = Record(
    name="crude",
    title="Spot prices of Brent and West Texas Intermediate crude oil, monthly, 1987-2020",
    units={"Brent": "US dollars a barrel", "WTI": "US dollars a barrel"},
    frequency="MS",
    source="as shipped with arch",
    license="not stated",
    shipped_by="arch",
    rows=393,
    columns=2,
    notes="Months are stamped on their first day; the shipped file stamps them on the 15th.",
)
_CORPORATE_YIELDS = Record(
    name="corporate_yields",
    title="Yields of AAA and BAA rated corporate bonds, monthly, 1919-2018",
    units={"AAA": "percent a year", "BAA": "percent a year"},
    frequency="MS",
    source="Moody's seasoned corporate bond yields, as shipped with arch",
    license="not stated",
    shipped_by="arch",
    rows=1200,
    columns=2,
    notes="Months are stamped on their first day. BAA - AAA is the default premium.",
)
_FRENCHDATA = Record(
    name="frenchdata",
    title="Fama-French factors of the United States, monthly, 1926-2018",
    units={
        "Mkt-RF": "percent a month",
        "SMB": "percent a month",
        "HML": "percent a month",
        "RF": "percent a month",
    },
    frequency="MS",
    source="Kenneth R. French, Data Library, Tuck School of Business",
    license="not stated",
    shipped_by="arch",
    rows=1109,
    columns=4,
    notes="Months are stamped on their first day. Returns are simple, not logarithmic.",
)

RECORDS = (
    _SP500,
    _NASDAQ,
    _VIX,
    _WTI,
    _CORE_CPI,
    _CRUDE,
    _CORPORATE_YIELDS,
    _FRENCHDATA,
)


def load_sp500() -> pd.DataFrame:
    """Load the daily S&P 500 index, 4 January 1999 to 31 December 2018.

    Returns
    -------
    DataFrame, shape (5031, 6)
        Columns ``Open, High, Low, Close, Adj Close`` (index points) and ``Volume`` (shares);
        index ``ds``, trading days.

    Notes
    -----
    Weekends and exchange holidays have no row, so the index is irregular and has no frequency.
    No value is missing on a trading day.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import load_sp500
    >>> sp500 = load_sp500()
    >>> sp500.index.freq is None
    True
    >>> returns = 100 * np.log(sp500["Adj Close"]).diff().dropna()
    >>> by_trading_day = returns.reset_index(drop=True)
    """
    from arch.data import sp500

    return tidy(_SP500, sp500.load())


def load_nasdaq() -> pd.DataFrame:
    """Load the daily NASDAQ Composite index, 4 January 1999 to 31 December 2018.

    Returns
    -------
    DataFrame, shape (5031, 6)
        Columns ``Open, High, Low, Close, Adj Close`` (index points) and ``Volume`` (shares);
        index ``ds``, trading days, the same as of `load_sp500`.

    Notes
    -----
    Weekends and exchange holidays have no row, so the index is irregular and has no frequency.
    No value is missing on a trading day.

    Examples
    --------
    >>> from tsrnn.datasets import load_nasdaq
    >>> load_nasdaq().shape
    (5031, 6)
    """
    from arch.data import nasdaq

    return tidy(_NASDAQ, nasdaq.load())


def load_vix() -> pd.DataFrame:
    """Load the daily volatility index VIX, 3 January 2014 to 3 January 2019.

    Returns
    -------
    DataFrame, shape (1305, 1)
        Column ``vix`` in percent a year; index ``ds``, all weekdays (``B``).

    Notes
    -----
    The 46 weekdays on which the exchange was closed are NaN.

    Examples
    --------
    >>> from tsrnn.datasets import load_vix
    >>> int(load_vix()["vix"].isna().sum())
    46
    """
    from arch.data import vix

    return tidy(_VIX, vix.load())


def load_wti() -> pd.DataFrame:
    """Load the daily spot price of WTI crude oil, 2 January 1986 to 3 January 2019.

    Returns
    -------
    DataFrame, shape (8611, 1)
        Column ``wti`` in US dollars a barrel; index ``ds``, all weekdays (``B``).

    Notes
    -----
    290 weekdays without a price are NaN. FRED, series DCOILWTICO.

    Examples
    --------
    >>> from tsrnn.datasets import load_wti
    >>> int(load_wti()["wti"].isna().sum())
    290
    """
    from arch.data import wti

    return tidy(_WTI, wti.load().rename(columns={"DCOILWTICO": "wti"}))


def load_core_cpi() -> pd.DataFrame:
    """Load monthly US consumer prices less food and energy, January 1957 to November 2018.

    Returns
    -------
    DataFrame, shape (743, 1)
        Column ``core_cpi``, an index with 1982-84 = 100, seasonally adjusted; index ``ds``,
        months stamped on their first day (``MS``).

    Notes
    -----
    No value is missing. FRED, series CPILFESL.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import load_core_cpi
    >>> inflation = 1200 * np.log(load_core_cpi()["core_cpi"]).diff().dropna()
    >>> len(inflation)
    742
    """
    from arch.data import core_cpi

    return tidy(_CORE_CPI, core_cpi.load().rename(columns={"CPILFESL": "core_cpi"}))


def load_crude() -> pd.DataFrame:
    """Load the monthly spot prices of two crude oils, May 1987 to January 2020.

    Returns
    -------
    DataFrame, shape (393, 2)
        Columns ``Brent`` and ``WTI`` in US dollars a barrel; index ``ds``, months stamped on
        their first day (``MS``), where the shipped file has the 15th.

    Notes
    -----
    No value is missing.

    Examples
    --------
    >>> from tsrnn.datasets import load_crude
    >>> load_crude().index.freqstr
    'MS'
    """
    from arch.data import crude

    frame = crude.load()
    stamps = pd.DatetimeIndex(frame.index)
    return tidy(_CRUDE, frame.set_axis(month_starts(stamps.year, stamps.month)))


def load_corporate_yields() -> pd.DataFrame:
    """Load the monthly yields of AAA and BAA rated bonds, January 1919 to December 2018.

    Returns
    -------
    DataFrame, shape (1200, 2)
        Columns ``AAA`` and ``BAA`` in percent a year; index ``ds``, months stamped on their
        first day (``MS``).

    Notes
    -----
    No value is missing. Moody's seasoned corporate bond yields; arch calls this set ``default``.

    Examples
    --------
    >>> from tsrnn.datasets import load_corporate_yields
    >>> yields = load_corporate_yields()
    >>> premium = yields["BAA"] - yields["AAA"]
    >>> bool((premium > 0).all())
    True
    """
    from arch.data import default

    return tidy(_CORPORATE_YIELDS, default.load())


def load_frenchdata() -> pd.DataFrame:
    """Load the monthly Fama-French factors, July 1926 to November 2018.

    Returns
    -------
    DataFrame, shape (1109, 4)
        Columns ``Mkt-RF`` (market less risk-free), ``SMB`` (small minus big), ``HML`` (high minus
        low) and ``RF`` (risk-free), simple returns in percent a month; index ``ds``, months
        stamped on their first day (``MS``).

    Notes
    -----
    No value is missing. Kenneth R. French, Data Library.

    Examples
    --------
    >>> from tsrnn.datasets import load_frenchdata
    >>> str(load_frenchdata().index[0].date())
    '1926-07-01'
    """
    # arch's own loader reads the stamps, numbers such as 192607, as nanoseconds since 1970.
    with (files("arch.data.frenchdata") / "frenchdata.csv.gz").open("rb") as file:
        frame = pd.read_csv(file, index_col="Date", compression="gzip")
    return tidy(_FRENCHDATA, frame.set_axis(month_starts(frame.index // 100, frame.index % 100)))
