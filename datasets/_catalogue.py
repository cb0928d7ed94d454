"""Catalogue of data sets: a record of each, and the common shape of their frames."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

IRREGULAR = "irregular"


def list_datasets() -> pd.DataFrame:
    """Return a table of all data sets that are frames, without reading them.

    Returns
    -------
    DataFrame
        One row per data set, indexed by ``name``: ``loader`` (name of the function), ``title``,
        ``frequency`` (pandas alias, or ``"irregular"``), ``rows``, ``columns``, ``shipped_by``
        (``"statsmodels"``, ``"arch"``, ``"download"``, or ``"data_home"`` for files of the user)
        and ``license``.

    Examples
    --------
    >>> from tsrnn.datasets import list_datasets
    >>> list_datasets().loc["co2", "loader"]
    'load_co2'
    >>> monthly = list_datasets().query("frequency == 'MS'")
    """
    rows = [
        {
            "name": record.name,
            "loader": record.loader or f"load_{record.name}",
            "title": record.title,
            "frequency": record.frequency,
            "rows": record.rows,
            "columns": record.columns,
            "shipped_by": record.shipped_by,
            "license": record.license,
        }
        for record in RECORDS.values()
    ]
    return pd.DataFrame(rows).set_index("name")


@dataclass(frozen=True)
class Record:
    """Facts about a data set, for its loader and its documentation."""

    name: str
    title: str  # quantity, place and time in one line
    units: Mapping[str, str] | str  # by column, in order; one string for all
    frequency: str  # pandas alias, or "irregular"
    source: str  # publisher, and the work to cite
    shipped_by: str  # package with the file, "download", or "data_home" for a folder of the user
    rows: int
    columns: int = 1
    license: str = "not stated"  # by the distributor
    notes: str = ""  # facts to know before modelling
    loader: str = ""  # name of the function, by default load_<name>
    subject: str = ""  # object of "Load the ..." in the documentation, with the exact span
    remarks: str = ""  # further notes of the documentation
    example: str = ""  # code of the documentation, with its output


def tidy(record: Record, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the record as float64 on an index ``ds``, with attrs."""
    names = frame.columns if isinstance(record.units, str) else list(record.units)
    # The default resolution depends on the version of pandas: nanoseconds throughout.
    index = pd.DatetimeIndex(frame.index, name="ds").as_unit("ns")
    if record.frequency != IRREGULAR:
        index = pd.DatetimeIndex(index, freq=record.frequency)
    tidied = frame[names].astype("float64").set_axis(index, axis="index")
    tidied.columns.name = None
    units = dict.fromkeys(names, record.units) if isinstance(record.units, str) else record.units
    tidied.attrs = {
        "name": record.name,
        "title": record.title,
        "units": dict(units),
        "frequency": record.frequency,
        "source": record.source,
        "license": record.license,
        "notes": record.notes,
    }
    return tidied


_CHAINED = "billions of chained 2005 US dollars, annual rate"

_LOADS = {
    "HUFL": "high useful load, unit not published",
    "HULL": "high useless load, unit not published",
    "MUFL": "middle useful load, unit not published",
    "MULL": "middle useless load, unit not published",
    "LUFL": "low useful load, unit not published",
    "LULL": "low useless load, unit not published",
    "OT": "oil temperature, degrees Celsius by its range (unit not published)",
}


def _ett(name: str, station: int, frequency: str, rows: int, every: str) -> Record:
    """Return the record of electricity transformer data of a station."""
    return Record(
        name=name,
        title=f"Electricity transformer temperature, station {station}, {every}, 2016-2018",
        units=_LOADS,
        frequency=frequency,
        source=(
            "H. Zhou et al. (2021), Informer, AAAI 35(12), 11106-11115; "
            "https://github.com/zhouhaoyi/ETDataset"
        ),
        license="CC BY-ND 4.0",
        shipped_by="download",
        rows=rows,
        columns=7,
        notes="The usual target is OT.",
        loader="load_ett",
    )


def _stock_index(name: str, index: str, example: str, remarks: str = "") -> Record:
    """Return the record of a stock index that ships with arch."""
    prices = dict.fromkeys(("Open", "High", "Low", "Close", "Adj Close"), "index points")
    return Record(
        name=name,
        title=f"{index} index, daily, 1999-2018",
        units=prices | {"Volume": "shares"},
        frequency=IRREGULAR,
        source="quotes of the exchange as shipped with arch, which names no publisher",
        shipped_by="arch",
        rows=5031,
        columns=6,
        notes=(
            "Daily on trading days: weekends and exchange holidays have no row, so the index has "
            "no frequency. Model returns by trading day (an integer index)."
        ),
        subject=f"daily {index} index, 4 January 1999 to 31 December 2018",
        remarks=remarks,
        example=example,
    )


_RECORDS = (
    Record(
        name="co2",
        title="Atmospheric CO2 at Mauna Loa, 1958-2001",
        units={"co2": "parts per million by volume"},
        frequency="W-SAT",
        source="C. D. Keeling and T. P. Whorf (2004), Carbon Dioxide Information Analysis Center",
        license="public domain",
        shipped_by="statsmodels",
        rows=2284,
        notes="59 weeks are missing (NaN), most of them before 1965.",
        subject="weekly concentration of CO2 at Mauna Loa, 29 March 1958 to 29 December 2001",
        example="""
            >>> co2 = load_co2()
            >>> int(co2["co2"].isna().sum())
            59
            >>> monthly = co2["co2"].resample("MS").mean().interpolate()
        """,
    ),
    Record(
        name="sunspots",
        title="Mean number of sunspots a year, 1700-2008",
        units={"sunspots": "sunspot number"},
        frequency="YS",
        source="National Geophysical Data Center, NOAA",
        license="public domain",
        shipped_by="statsmodels",
        rows=309,
        notes="Years are stamped on 1 January.",
        subject="yearly mean number of sunspots, 1700 to 2008",
        example="""
            >>> load_sunspots()["sunspots"].idxmax().year
            1957
        """,
    ),
    Record(
        name="nile",
        title="Annual flow of the Nile at Aswan, 1871-1970",
        units={"volume": "10^8 cubic metres"},
        frequency="YS",
        source="G. W. Cobb (1978), Biometrika 65, 243-251",
        license="public domain",
        shipped_by="statsmodels",
        rows=100,
        notes="Years are stamped on 1 January. The mean falls about 1898.",
        subject="annual flow of the Nile at Aswan, 1871 to 1970",
        example="""
            >>> float(load_nile()["volume"].iloc[0])
            1120.0
        """,
    ),
    Record(
        name="macrodata",
        title="United States macroeconomic data, 1959Q1-2009Q3",
        units={
            "realgdp": _CHAINED,
            "realcons": _CHAINED,
            "realinv": _CHAINED,
            "realgovt": _CHAINED,
            "realdpi": _CHAINED,
            "cpi": "index, 1982-84 = 100",
            "m1": "billions of US dollars",
            "tbilrate": "percent a year",
            "unemp": "percent of the labour force",
            "pop": "millions",
            "infl": "percent a year",
            "realint": "percent a year",
        },
        frequency="QS",
        source="FRED, Federal Reserve Bank of St. Louis; unemployment: Bureau of Labor Statistics",
        license="public domain",
        shipped_by="statsmodels",
        rows=203,
        columns=12,
        notes=(
            "Quarters are stamped on their first day; cpi and m1 are values at the end of the "
            "quarter. infl is 400 times the log difference of cpi, its first value is set to 0."
        ),
        subject="quarterly macroeconomic data of the United States, 1959Q1 to 2009Q3",
        remarks=(
            "The first value of realint is 0 as well: both need the quarter before. Dollar "
            "aggregates are seasonally adjusted. Read in December 2009."
        ),
        example="""
            >>> import numpy as np
            >>> growth = 100 * np.log(load_macrodata()["realgdp"]).diff().dropna()
            >>> len(growth)
            202
        """,
    ),
    Record(
        name="interest_inflation",
        title="German long-term interest rate and inflation, 1972Q2-1998Q4",
        units={
            "Dp": "log change of the GDP deflator in a quarter",
            "R": "nominal rate a year, as a fraction",
        },
        frequency="QS",
        source="H. Luetkepohl and M. Kraetzig (eds), Applied Time Series Econometrics: JMulTi, E6",
        shipped_by="statsmodels",
        rows=107,
        columns=2,
        notes=(
            "Quarters are stamped on their first day. Not seasonally adjusted; until 1990 the West."
        ),
        subject="German interest and inflation rates, 1972Q2 to 1998Q4",
        remarks="The rate is a long-term one.",
        example="""
            >>> list(load_interest_inflation().columns)
            ['Dp', 'R']
        """,
    ),
    Record(
        name="danish_data",
        title="Danish money demand, 1974Q1-1987Q3",
        units={
            "lrm": "log of real money (M2)",
            "lry": "log of real income",
            "lpy": "log of prices",
            "ibo": "bond rate a year, as a fraction",
            "ide": "deposit rate a year, as a fraction",
        },
        frequency="QS",
        source=(
            "S. Johansen and K. Juselius (1990), Oxford Bulletin of Economics and Statistics 52, "
            "169-210"
        ),
        license="public domain",
        shipped_by="statsmodels",
        rows=55,
        columns=5,
        notes="Quarters are stamped on their first day.",
        subject="Danish data on money demand, 1974Q1 to 1987Q3",
        example="""
            >>> load_danish_data().shape
            (55, 5)
        """,
    ),
    Record(
        name="elec_equip",
        title="Turnover of electrical equipment manufacturing, euro area, 1995-2016",
        units={"turnover": "index, 2010 = 100"},
        frequency="MS",
        source="Eurostat, series STS.M.I7.W.TOVT.NS0016.4.000",
        license="public domain",
        shipped_by="statsmodels",
        rows=257,
        notes=(
            "Months are stamped on their first day. Adjusted for working days, not for the season."
        ),
        subject="monthly turnover of electrical equipment makers, January 1995 to May 2016",
        remarks="Euro area of 18 countries.",
        example="""
            >>> load_elec_equip().index.freqstr
            'MS'
        """,
    ),
    Record(
        name="elnino",
        title="Sea surface temperature in the eastern Pacific (Nino 1+2), 1950-2010",
        units={"temperature": "degrees Celsius"},
        frequency="MS",
        source="National Weather Service, NOAA: ERSST.V3B",
        license="public domain",
        shipped_by="statsmodels",
        rows=732,
        notes="Months are stamped on their first day.",
        subject="monthly sea surface temperature of the region Nino 1+2, 1950 to 2010",
        example="""
            >>> load_elnino()["temperature"].idxmax().year
            1998
        """,
    ),
    Record(
        name="fertility",
        title="Total fertility rate of 219 countries and regions, 1960-2013",
        units="births per woman",
        frequency="YS",
        source="World Bank, World Development Indicators, SP.DYN.TFRT.IN",
        license="World Bank terms of use",
        shipped_by="statsmodels",
        rows=54,
        columns=219,
        notes=(
            "Years are stamped on 1 January; a column a country. 2012 and 2013 are missing (NaN) "
            "for all, 9 countries have no value at all and 18 more have gaps before 2012."
        ),
        subject="total fertility rate of 219 countries and regions, 1960 to 2013",
        remarks="Countries have their English names.",
        example="""
            >>> complete = load_fertility().loc[:"2011"].dropna(axis="columns")
            >>> complete.shape
            (52, 192)
        """,
    ),
    _stock_index(
        "sp500",
        "S&P 500",
        example="""
            >>> import numpy as np
            >>> sp500 = load_sp500()
            >>> sp500.index.freq is None
            True
            >>> returns = 100 * np.log(sp500["Adj Close"]).diff().dropna()
            >>> by_trading_day = returns.reset_index(drop=True)
        """,
    ),
    _stock_index(
        "nasdaq",
        "NASDAQ Composite",
        remarks="The trading days are those of `load_sp500`.",
        example="""
            >>> load_nasdaq().shape
            (5031, 6)
        """,
    ),
    Record(
        name="vix",
        title="Cboe volatility index VIX, daily, 2014-2019",
        units={"vix": "percent a year"},
        frequency="B",
        source="Cboe, as shipped with arch",
        shipped_by="arch",
        rows=1305,
        notes="Every weekday has a row; the 46 holidays of the exchange are NaN.",
        subject="daily volatility index VIX, 3 January 2014 to 3 January 2019",
        example="""
            >>> int(load_vix()["vix"].isna().sum())
            46
        """,
    ),
    Record(
        name="wti",
        title="Spot price of West Texas Intermediate crude oil, daily, 1986-2019",
        units={"wti": "US dollars a barrel"},
        frequency="B",
        source="FRED, Federal Reserve Bank of St. Louis, series DCOILWTICO",
        shipped_by="arch",
        rows=8611,
        notes="Every weekday has a row; 290 days without a price are NaN.",
        subject="daily spot price of WTI crude oil, 2 January 1986 to 3 January 2019",
        example="""
            >>> int(load_wti()["wti"].isna().sum())
            290
        """,
    ),
    Record(
        name="core_cpi",
        title="United States consumer prices less food and energy, monthly, 1957-2018",
        units={"core_cpi": "index, 1982-84 = 100"},
        frequency="MS",
        source="FRED, Federal Reserve Bank of St. Louis, series CPILFESL",
        shipped_by="arch",
        rows=743,
        notes="Months are stamped on their first day. Seasonally adjusted.",
        subject="monthly US consumer prices less food and energy, January 1957 to November 2018",
        example="""
            >>> import numpy as np
            >>> inflation = 1200 * np.log(load_core_cpi()["core_cpi"]).diff().dropna()
            >>> len(inflation)
            742
        """,
    ),
    Record(
        name="crude",
        title="Spot prices of Brent and West Texas Intermediate crude oil, monthly, 1987-2020",
        units={"Brent": "US dollars a barrel", "WTI": "US dollars a barrel"},
        frequency="MS",
        source="as shipped with arch",
        shipped_by="arch",
        rows=393,
        columns=2,
        notes="Months are stamped on their first day; the shipped file stamps them on the 15th.",
        subject="monthly spot prices of two crude oils, May 1987 to January 2020",
        example="""
            >>> load_crude().index.freqstr
            'MS'
        """,
    ),
    Record(
        name="corporate_yields",
        title="Yields of AAA and BAA rated corporate bonds, monthly, 1919-2018",
        units={"AAA": "percent a year", "BAA": "percent a year"},
        frequency="MS",
        source="Moody's seasoned corporate bond yields, as shipped with arch",
        shipped_by="arch",
        rows=1200,
        columns=2,
        notes="Months are stamped on their first day. BAA - AAA is the default premium.",
        subject="monthly yields of AAA and BAA rated bonds, January 1919 to December 2018",
        remarks="The library arch calls this set ``default``.",
        example="""
            >>> yields = load_corporate_yields()
            >>> premium = yields["BAA"] - yields["AAA"]
            >>> bool((premium > 0).all())
            True
        """,
    ),
    Record(
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
        shipped_by="arch",
        rows=1109,
        columns=4,
        notes="Months are stamped on their first day. Returns are simple, not logarithmic.",
        subject="monthly Fama-French factors, July 1926 to November 2018",
        remarks=(
            "``Mkt-RF`` is the market less the risk-free rate ``RF``, ``SMB`` small minus big, "
            "``HML`` high minus low."
        ),
        example="""
            >>> str(load_frenchdata().index[0].date())
            '1926-07-01'
        """,
    ),
    _ett("ETTh1", 1, "h", 17420, "hourly"),
    _ett("ETTh2", 2, "h", 17420, "hourly"),
    _ett("ETTm1", 1, "15min", 69680, "every 15 minutes"),
    Record(
        name="WTH",
        title="Weather of a station in the United States, hourly, 2010-2013",
        units={
            "Visibility": "miles",
            "DryBulbFarenheit": "degrees Fahrenheit",
            "DryBulbCelsius": "degrees Celsius",
            "WetBulbFarenheit": "degrees Fahrenheit",
            "DewPointFarenheit": "degrees Fahrenheit",
            "DewPointCelsius": "degrees Celsius",
            "RelativeHumidity": "percent",
            "WindSpeed": "miles an hour",
            "WindDirection": "degrees",
            "StationPressure": "inches of mercury",
            "Altimeter": "inches of mercury",
            "WetBulbCelsius": "degrees Celsius",
        },
        frequency="h",
        source=(
            "H. Zhou et al. (2021), Informer, AAAI 35(12), 11106-11115; local climatological data "
            "of the National Centers for Environmental Information"
        ),
        shipped_by="data_home",
        rows=35064,
        columns=12,
        notes="The usual target is WetBulbCelsius. Units are those of local climatological data.",
        loader="load_wth",
    ),
)
RECORDS = {record.name: record for record in _RECORDS}
