"""Sequences from images: pixel by pixel, or by rows followed by noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from tsrnn.datasets._checks import check_at_least, not_negative
from tsrnn.datasets._images import check_images

__all__ = ["noise_padded", "pixel_sequences"]


def pixel_sequences(
    images: np.ndarray,
    permutation: int | np.ndarray | None = None,
    *,
    mean: Any = 0.0,
    std: Any = 1.0,
) -> np.ndarray:
    r"""Convert images to sequences of pixels, with all colours of a pixel per step.

    .. math:: x_{t,c} = (p_{\pi(t), c} / 255 - \mu_c) / \sigma_c

    where p are the pixels of an image by rows, and :math:`\pi` is a common order.

    Parameters
    ----------
    images : ndarray of shape (N, H, W, C), uint8
    permutation : int or array of shape (H W,), optional
        Order :math:`\pi`; an integer is the random state of a random order. By default rows from
        the top.
    mean, std : float or array of shape (C,)
        Mean :math:`\mu` and scale :math:`\sigma`; the defaults 0 and 1 give values from 0 to 1. To
        standardise, use the training part: ``images.mean((0, 1, 2)) / 255``.

    Returns
    -------
    ndarray of shape (N, H W, C), float32

    Raises
    ------
    ValueError
        If `images` has another shape or dtype, `permutation` is not one of the pixels, a mean or
        scale is not finite, a scale is not positive, or values overflow float32.

    Notes
    -----
    It gives sequential MNIST (T = 784 with one input), its permuted form, and CIFAR-10 pixel by
    pixel (T = 1024 with three inputs). The papers do not state the scale of pixels; the published
    code of LEM uses 0 to 1.

    References
    ----------
    Le, Jaitly and Hinton (2015), A Simple Way to Initialize Recurrent Networks of Rectified
    Linear Units, for the permuted task. Cai et al. (2026), section 6.3. Rusch et al. (2022),
    section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import pixel_sequences
    >>> images = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
    >>> x = pixel_sequences(images)
    >>> x.shape, (255 * x[0, 1]).round().tolist()
    ((1, 4, 3), [3.0, 4.0, 5.0])
    >>> (255 * pixel_sequences(images, [3, 2, 1, 0])[0, :, 0]).round().tolist()
    [9.0, 6.0, 3.0, 0.0]
    """
    check_images(images)
    count, height, width, colours = images.shape
    pixels = images.reshape(count, height * width, colours)
    if permutation is not None:
        pixels = pixels[:, _permutation(permutation, height * width)]
    scale, shift = _scale_and_shift(mean, std, colours)
    # Stay in float32, since float64 would take eight times the memory of the images.
    return pixels * scale + shift


def noise_padded(
    images: np.ndarray,
    length: int = 1000,
    *,
    random_state: int | np.random.Generator | None = None,
    padding_std: float = 1.0,
    shared: bool = False,
) -> np.ndarray:
    r"""Convert images to sequences of rows, followed by noise up to a length.

    .. math:: x_t = p_{t} / 255 \text{ for } t \le H, \qquad x_t = \tau \varepsilon_t
        \text{ for } H < t \le T, \quad \varepsilon_t \sim N(0, I),

    where :math:`p_t` are the pixels of row t, first all red, then all green, then all blue. A model
    must remember the first H steps over the others.

    Parameters
    ----------
    images : ndarray of shape (N, H, W, C), uint8
    length : int, default 1000
        Length T, at least H.
    random_state : int or numpy.random.Generator, optional
    padding_std : float, default 1
        Standard deviation :math:`\tau` of the noise.
    shared : bool, default False
        Use the same noise for all images, as in the published code of LEM. This is easier, as a
        network may learn it; the papers only speak of random noise.

    Returns
    -------
    ndarray of shape (N, T, C W), float32
        Sequences; an image of CIFAR-10 takes 384 kB, so convert in batches.

    Raises
    ------
    ValueError
        If `images` has another shape or dtype, `length` is no integer of at least H, or
        `padding_std` is negative or so large that noise overflows float32.

    See Also
    --------
    NoisePadded : The same for a regression process, with a known mean.

    References
    ----------
    Chang, Chen, Haber and Chi (2019), AntisymmetricRNN: A Dynamical System View on Recurrent
    Neural Networks, ICLR. Rusch et al. (2022), section 5. Cai et al. (2026), section 6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import noise_padded
    >>> x = noise_padded(np.full((2, 32, 32, 3), 255, np.uint8), random_state=0)
    >>> x.shape, bool((x[:, :32] == 1).all()), round(float(x[:, 32:].std()), 2)
    ((2, 1000, 96), True, 1.0)
    """
    check_images(images)
    count, height, width, colours = images.shape
    check_at_least(height, length=length)
    deviation = not_negative("padding_std", padding_std)
    # Normal variates in float32 do not exceed 9 standard deviations.
    if 10 * deviation > float(np.finfo(np.float32).max):
        raise ValueError(
            "padding_std must leave noise finite in float32, which ends at 3.4e38; got "
            f"{padding_std!r}"
        )
    generator = np.random.default_rng(random_state)
    x = np.empty((count, length, colours * width), np.float32)
    x[:, :height] = images.transpose(0, 1, 3, 2).reshape(count, height, -1) / np.float32(255)
    noise = generator.standard_normal(
        (1 if shared else count, length - height, colours * width), np.float32
    )
    x[:, height:] = np.float32(deviation) * noise
    return x


def _scale_and_shift(mean: Any, std: Any, colours: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a and b of x = a p + b in float32, common or by colour."""
    error = ValueError(
        f"mean and std must be finite numbers, std positive, for all or for each of {colours} "
        f"colours, such that values are finite in float32; got {mean!r} and {std!r}"
    )
    try:
        mu, sigma = (
            np.asarray(value).astype(np.float64, casting="same_kind") for value in (mean, std)
        )
    except (TypeError, ValueError) as cause:  # text, objects, nested lists
        raise error from cause
    fits = all(value.shape in ((), (colours,)) for value in (mu, sigma))
    if not fits or not (np.isfinite(mu).all() and (np.isfinite(sigma) & (sigma > 0)).all()):
        raise error
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        scale = np.asarray(1 / (255 * sigma)).astype(np.float32)
        shift = np.asarray(-mu / sigma).astype(np.float32)
        ends = shift, 255 * scale + shift
    if not all(np.isfinite(end).all() for end in ends):
        raise error
    return scale, shift


def _permutation(permutation: Any, pixels: int) -> np.ndarray:
    """Return the order of the pixels, drawn if `permutation` is a random state."""
    if isinstance(permutation, int | np.integer) and not isinstance(permutation, bool):
        check_at_least(0, permutation=permutation)
        return np.random.default_rng(permutation).permutation(pixels)
    order = np.asarray(permutation)
    if order.shape != (pixels,) or order.dtype.kind not in "iu":
        raise ValueError(
            f"permutation must be an integer or an array of the numbers 0 to {pixels - 1}; got "
            f"{order.dtype} of shape {order.shape}"
        )
    if not (np.sort(order) == np.arange(pixels)).all():
        raise ValueError(
            f"permutation must have each of the numbers 0 to {pixels - 1} once; got "
            f"{len(np.unique(order))} different ones from {order.min()} to {order.max()}"
        )
    return order
