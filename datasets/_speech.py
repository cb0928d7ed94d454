"""Features of speech: energies in mel bands, and cepstral coefficients."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import fft

__all__ = ["FEATURES", "HOP", "RATE", "check_features", "mel_triangles", "speech_features"]

RATE = 16_000  # samples per second
FEATURES = {"mel": 80, "mfcc": 40}  # features per frame
FRAME, HOP, LOW = 1024, 128, 40.0  # samples, samples, hertz


def speech_features(samples: np.ndarray, features: str = "mel") -> np.ndarray:
    r"""Compute frames of speech: energies in mel bands in decibels, or cepstral coefficients.

    Frames have 1024 samples and start every 128. :math:`|S_f|` are the amplitudes of the Fourier
    transform of the samples times a Hann window. With triangles :math:`w_{bf}` of area 1 on the
    mel scale from 40 Hz to 8 kHz, the energy of a band is

    .. math:: E_b = 10 \log_{10} \sum_f w_{bf} |S_f|, \qquad b = 1, \dots, B,

    cut at 80 below the largest of all bands and frames.

    Parameters
    ----------
    samples : array_like of shape (n,)
        Samples at 16 kHz, between -1 and 1.
    features : {"mel", "mfcc"}, default "mel"
        "mel": B = 80 bands. "mfcc": the 40 coefficients of the orthonormal discrete cosine
        transform of B = 40 bands.

    Returns
    -------
    ndarray of shape (1 + n // 128, 80) or (1 + n // 128, 40)
        Features, standardised by their common mean and standard deviation; zeros if all are equal.
        Frame t is centred at sample 128 t; samples beyond both ends are zero.

    Raises
    ------
    ValueError
        If there are no samples, a sample is not finite, or `features` is unknown.

    Notes
    -----
    "mel" follows the code of Rusch et al. (2022) for Google12, which uses librosa: mel scale and
    area of triangles after Slaney, and decibels of amplitudes instead of powers. There are two
    differences. That code fills short clips with the largest energy before it standardises, while
    here zeros are appended to the samples. Its version of librosa mirrors samples at both ends.
    "mfcc" is another usual choice for keywords.

    References
    ----------
    Davis and Mermelstein (1980), Comparison of parametric representations for monosyllabic word
    recognition. Slaney (1998), Auditory Toolbox.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import speech_features
    >>> tone = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    >>> speech_features(tone).shape, speech_features(tone, "mfcc").shape
    ((126, 80), (126, 40))
    """
    check_features(features)
    try:
        signal = np.asarray(samples).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError) as error:  # text, objects, lists in lists
        raise ValueError(
            f"samples must be finite numbers of shape (n,), n >= 1; got {str(samples)[:60]!r}"
        ) from error
    if signal.ndim != 1 or not len(signal) or not np.isfinite(signal).all():
        raise ValueError(
            f"samples must be finite numbers of shape (n,), n >= 1; got shape {signal.shape}"
            f"{'' if np.isfinite(signal).all() else ' with values that are not finite'}"
        )
    frames = sliding_window_view(np.pad(signal, FRAME // 2), FRAME)[::HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)
    amplitudes = np.abs(fft.rfft(frames * window))
    energies = amplitudes @ mel_triangles(FEATURES[features]).T
    decibels = 10 * np.log10(np.maximum(energies, 1e-10))  # avoids log(0) of silence
    decibels = np.maximum(decibels, decibels.max() - 80)
    values = decibels if features == "mel" else fft.dct(decibels, norm="ortho")
    spread = values.std()
    # Equal energies have a spread of rounding errors, which must not be scaled up.
    return (values - values.mean()) / spread if spread > 1e-8 else np.zeros_like(values)


def check_features(features: str) -> None:
    """Raise unless `features` is one of `FEATURES`."""
    if not isinstance(features, str) or features not in FEATURES:
        raise ValueError(f"features must be one of {list(FEATURES)}; got {features!r}")


@functools.cache
def mel_triangles(bands: int) -> np.ndarray:
    """Return triangular weights (bands, FRAME / 2 + 1) of area 1 of frequencies in bands."""
    edges = _hertz(np.linspace(_mel(LOW), _mel(RATE / 2), bands + 2))
    hertz = fft.rfftfreq(FRAME, 1 / RATE)
    rising = (hertz - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - hertz) / np.diff(edges)[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling))
    return triangles * (2 / (edges[2:] - edges[:-2]))[:, None]


# Slaney's mel scale: linear up to 15 mel at 1 kHz, then 27 mel per factor of 6.4.
def _mel(hertz: float) -> float:
    return hertz * 3 / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)


def _hertz(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))
