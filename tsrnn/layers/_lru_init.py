"""How the parameters of a linear recurrent unit are drawn."""

from __future__ import annotations

import math
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor


class Ring(NamedTuple):
    """Where eigenvalues are drawn: a ring of the complex plane, or a sector of it."""

    r_min: float
    r_max: float
    max_phase: float

    def check(self) -> None:
        """Raise unless it lies in the unit disk."""
        for name, value in self._asdict().items():
            if not isinstance(value, Real):
                raise TypeError(f"{name} must be a real number; got {value!r}")
        if not (0 <= self.r_min <= self.r_max <= 1 and self.r_min < 1 and self.r_max > 0):
            raise ValueError(
                "r_min and r_max must satisfy 0 <= r_min <= r_max <= 1, not both 0 and not both 1; "
                f"got r_min={self.r_min}, r_max={self.r_max}"
            )
        if not 0 < self.max_phase <= 2 * math.pi:
            raise ValueError(f"max_phase must lie in (0, 2 pi]; got {self.max_phase}")


class RingDraw(NamedTuple):
    """Logarithms of nu, theta and gamma, in float64."""

    nu_log: Tensor
    theta_log: Tensor
    gamma_log: Tensor


def draw_ring(
    ring: Ring, count: int, device: torch.device, generator: torch.Generator | None
) -> RingDraw:
    """Eigenvalues exp(-nu + i theta) uniform on the ring, Lemma 6, and sqrt(1 - |lambda|^2)."""
    # In float32 a modulus near 1 is 1 often enough to meet log(0).
    eps = torch.finfo(torch.float64).eps
    made = torch.empty(2, count, dtype=torch.float64, device=device)
    area, turn = made.uniform_(eps, 1 - eps, generator=generator)
    nu = -0.5 * torch.log(area * (ring.r_max**2 - ring.r_min**2) + ring.r_min**2)
    gamma_log = 0.5 * torch.log(-torch.expm1(-2 * nu))
    return RingDraw(nu.log(), (ring.max_phase * turn).log(), gamma_log)


def draw_normal(weight: Tensor, variance: float, generator: torch.Generator | None) -> None:
    """Draw normal numbers of mean zero."""
    weight.normal_(0.0, math.sqrt(variance), generator=generator)
