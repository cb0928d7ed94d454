"""Series and peers of more than one file."""

import numpy as np
import pandas as pd
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

# Monthly passengers of international airlines 1949-1960, thousands (Box and Jenkins, series G).
_PASSENGERS = """
112 118 132 129 121 135 148 148 136 119 104 118 115 126 141 135 125 149 170 170 158 133 114 140
145 150 178 163 172 178 199 199 184 162 146 166 171 180 193 181 183 218 230 242 209 191 172 194
196 196 236 235 229 243 264 272 237 211 180 201 204 188 235 227 234 264 302 293 259 229 203 229
242 233 267 269 270 315 364 347 312 274 237 278 284 277 317 313 318 374 413 405 355 306 271 306
315 301 356 348 355 422 465 467 404 347 305 336 340 318 362 348 363 435 491 505 404 359 310 337
360 342 406 396 420 472 548 559 463 407 362 405 417 391 419 461 472 535 622 606 508 461 390 432
"""
AIRLINE = np.array(_PASSENGERS.split(), float)


def seasonal(n, seed=0, level=60, slope=0.3, wave=6, m=4):
    """Trend, season of m rows and a random walk, positive."""
    rng, t = np.random.default_rng(seed), np.arange(n)
    values = level + slope * t + wave * np.cos(2 * np.pi * t / m) + rng.normal(size=n).cumsum()
    index = pd.date_range("2000-01", periods=n, freq={4: "QS", 12: "MS"}[m])
    return pd.Series(values, index, name="y")


def ets_peer(series, error, trend, damped, seasonal):
    """Exponential smoothing of statsmodels with a season of four rows."""
    trend, seasonal = (None if part == "none" else part for part in (trend, seasonal))
    return ETSModel(series, error, trend, damped, seasonal, 4 if seasonal else None)


def ets_values(params):
    """Parameters by name in the order of statsmodels, whose last season comes first."""
    names = ("alpha", "beta", "gamma", "phi", "level", "trend")
    values = [params[name] for name in names if name in params]
    season = [params[f"season[{i}]"] for i in (1, 2, 3) if f"season[{i}]" in params]
    return values + ([-sum(season), *season[::-1]] if season else [])
