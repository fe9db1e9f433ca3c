"""How values are coded on the way, where that differs from how a vector is coded alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..quantize import OneBit, Sign

if TYPE_CHECKING:
    from ..quantize import Quantizer

BUCKET = 1024  # of quantizers that have none: a message is no vector of the caller's


def on_the_wire(quantize: Quantizer | None) -> Quantizer | None:
    """With buckets in any case."""
    if isinstance(quantize, OneBit | Sign) and quantize.bucket is None:
        return replace(quantize, bucket=BUCKET)
    return quantize
