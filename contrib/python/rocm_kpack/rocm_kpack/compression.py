# SPDX-License-Identifier: MIT
"""How the objects of an archive are stored.  Compressing itself is the library's, when it writes."""


class Compressor:
    """A scheme and its level."""

    SCHEME_NAME = ""
    compression_level = 0


class NoOpCompressor(Compressor):
    """Stored as they are."""

    SCHEME_NAME = "none"


class ZstdCompressor(Compressor):
    """A zstd frame for each."""

    SCHEME_NAME = "zstd-per-kernel"

    def __init__(self, compression_level: int = 3) -> None:
        self.compression_level = compression_level
