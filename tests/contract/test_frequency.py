"""Defaults by frequency: the documented ones, and what multiples of a frequency give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrnn.contract import FrequencyDefaults, frequency_defaults

# As in the docstring of ParaRNNForecaster: horizon, season, input sizes.
DOCUMENTED = {
    (48, 24, (168, 336), (168,)): ["h"],
    (14, 7, (28, 56, 112)): ["D"],
    (14, 5, (20, 40, 80)): ["B"],
    (13, 52, (52, 104, 208)): ["W", "W-SUN", "W-MON"],
    (18, 12, (24, 36, 72, 120)): ["M", "MS", "ME", "BMS", "BME"],
    (8, 4, (8, 16, 32)): ["Q", "QS-JAN", "QS-OCT", "QE-DEC", "BQS-OCT", "BQE-NOV"],
    (6, 1, (5, 10, 20)): ["Y", "YS", "YS-JAN", "YE-DEC", "BYS-JAN", "BYE-DEC"],
    (10, 1, (16, 32, 64)): [1, 7, "ms", "us", "5ns", "?"],
}


@pytest.mark.parametrize(
    ("freq", "expected"), [(freq, row) for row, names in DOCUMENTED.items() for freq in names]
)
def test_documented_defaults(freq, expected):
    assert frequency_defaults(freq) == FrequencyDefaults(*expected)


@pytest.mark.parametrize(
    ("freq", "season", "input_size"),
    [
        ("2h", 12, 168),
        ("5h", 1, 67),
        ("24h", 1, 14),
        ("2D", 1, 28),
        ("7D", 1, 8),
        ("4W-SUN", 13, 26),
        ("5W-SUN", 1, 20),
        ("2MS", 6, 18),
        ("5MS", 1, 8),
        ("2QS-JAN", 2, 8),
        ("2YE-DEC", 1, 8),
        ("15min", 96, 192),
        ("5min", 288, 576),
        ("720min", 2, 8),
        ("600s", 144, 288),
        ("1440min", 1, 32),
        ("min", 1, 96),
        ("s", 1, 96),
        ("7min", 1, 96),
        ("50min", 1, 57),
        ("1000min", 1, 32),
        ("1450min", 1, 32),
        ("100000s", 1, 32),
    ],
)
def test_multiples(freq, season, input_size):
    defaults = frequency_defaults(freq)
    assert (defaults.season, defaults.input_size) == (season, input_size)


PERIODS = {"s": 86400, "min": 1440, "h": 24, "D": 7, "B": 5, "W-SUN": 52, "MS": 12, "QE-DEC": 4}


@given(st.integers(1, 100_000), st.sampled_from(sorted(PERIODS)))
def test_a_season_is_a_whole_number_of_steps_and_every_window_is_usable(multiple, base):
    defaults = frequency_defaults(f"{multiple}{base}")
    assert defaults.season == 1 or defaults.season * multiple == PERIODS[base]
    assert defaults.input_size >= defaults.season
    assert min(defaults.input_sizes) >= 8
    assert list(defaults.input_sizes) == sorted(defaults.input_sizes)
