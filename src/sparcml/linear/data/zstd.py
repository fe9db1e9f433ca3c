"""Files compressed by zstd, of any number of frames.

The library's own reader takes a file that was cut short for a shorter one.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

BLOCK = 1 << 17


class ZstdFile(io.RawIOBase):
    """What is in the file.

    Raises:
        EOFError: If it ends within a frame.
    """

    def __init__(self, path: Path) -> None:
        import zstandard

        self._frames = zstandard.ZstdDecompressor()
        self._frame: Any = None
        self._file = path.open("rb")
        self._coded = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """As many bytes as there are at hand; 0 at the end."""
        while not self._ready:
            self._coded = self._coded or self._file.read(BLOCK)
            if not self._coded:
                if self._frame is not None:
                    raise EOFError("it ends within a frame")
                return 0
            self._frame = self._frame or self._frames.decompressobj()
            self._ready = memoryview(self._frame.decompress(self._coded))
            self._coded = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        out = memoryview(buffer).cast("B")
        count = min(len(out), len(self._ready))
        out[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        """The file with it."""
        self._file.close()
        super().close()
