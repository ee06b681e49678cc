# SPDX-License-Identifier: MIT
"""PackedKernelArchive: an archive that is built in memory, or read from a file."""
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import kpackfs

from .compression import Compressor, NoOpCompressor

PAYLOAD_TYPES = ("hsaco", "cubin", "ptx", "spirv")


@dataclass
class PreparedKernel:
    """What prepare_kernel returns and add_kernel takes."""

    relative_path: str
    gfx_arch: str
    data: bytes
    original_size: int
    metadata: Optional[Dict[str, str]] = None
    payload_type: str = "hsaco"


class PackedKernelArchive:
    """AMD's class, over kpackfs.Archive and kpackfs.Writer.

    What it raises for files that are no archives, kpackfs.FormatError, is a ValueError, as AMD's.
    """

    MAGIC = b"KPAK"
    FORMAT_VERSION = 1
    HEADER_SIZE = 16
    BLOB_ALIGNMENT = 64

    def __init__(self, group_name: str, gfx_arch_family: str, gfx_arches: List[str],
                 output_path: Optional[Path] = None, compressor: Optional[Compressor] = None) -> None:
        if output_path is not None:
            raise ValueError("Streaming write mode not yet supported: call write(path)")
        self.group_name = group_name
        self.gfx_arch_family = gfx_arch_family
        self.gfx_arches = gfx_arches
        self.toc: Dict[str, Dict[str, Dict[str, Any]]] = {}
        self._compressor = compressor or NoOpCompressor()
        self._kernels: Dict[kpackfs.Name, PreparedKernel] = {}
        self._finalized = False
        self._archive: Optional[kpackfs.Archive] = None

    def prepare_kernel(self, relative_path: str, gfx_arch: str, hsaco_data: bytes,
                       metadata: Optional[Dict[str, str]] = None, payload_type: str = "hsaco") -> PreparedKernel:
        """Describe an object to add; any number of threads may.  METADATA are texts."""
        if payload_type not in PAYLOAD_TYPES:
            raise ValueError(f"Unsupported payload type {payload_type!r}: none of {', '.join(PAYLOAD_TYPES)}")
        for name, text in (metadata or {}).items():
            if not isinstance(text, str):
                raise TypeError(f"metadata {name!r} of {relative_path}: {text!r} is no str, and kpackfs stores texts only")
        return PreparedKernel(relative_path.replace("\\", "/"), gfx_arch, hsaco_data, len(hsaco_data),
                              metadata, payload_type)

    def add_kernel(self, prepared: PreparedKernel) -> None:
        """Add an object; one thread at a time."""
        name = prepared.relative_path, prepared.gfx_arch
        if name in self._kernels:
            raise ValueError(f"Kernel already exists for {name[0]} @ {name[1]}")
        entry = {"type": prepared.payload_type, "ordinal": len(self._kernels), "original_size": prepared.original_size}
        if prepared.metadata:
            entry["metadata"] = prepared.metadata
        self.toc.setdefault(name[0], {})[name[1]] = entry
        self._kernels[name] = prepared

    def finalize_archive(self) -> None:
        """Declare that everything was added."""
        if self._finalized:
            raise RuntimeError("Archive already finalized")
        self._finalized = True

    def write(self, output_path: Path) -> None:
        """Compress the objects and write the file, which appears when it is whole."""
        if not self._finalized:
            raise RuntimeError("Archive not finalized. Call finalize_archive() first.")
        if self._archive is not None:
            raise RuntimeError("An archive that was read is not written: kpack merge does that")
        os.makedirs(os.path.dirname(os.path.abspath(output_path)), exist_ok=True)
        with kpackfs.Writer(output_path, group=self.group_name, family=self.gfx_arch_family,
                            scheme=self._compressor.SCHEME_NAME, level=self._compressor.compression_level) as writer:
            for kernel in self._kernels.values():
                texts = dict(kernel.metadata or {})
                writer.add(kernel.relative_path, kernel.gfx_arch, kernel.data, type=kernel.payload_type,
                           path=texts.pop("path", None), target=texts.pop("target", None), metadata=texts)

    @staticmethod
    def read(input_path: Union[str, "os.PathLike[str]"]) -> "PackedKernelArchive":
        """Open a file; objects are decoded when they are asked for."""
        source = kpackfs.open(input_path)
        archive = PackedKernelArchive(source.group, source.family, list(source.arches))
        archive._archive, archive._finalized = source, True
        for entry in source.entries():
            row: Dict[str, Any] = {"type": entry.type, "ordinal": entry.ordinal, "original_size": entry.size}
            # without what kpackfs's writer adds
            metadata = {name: v for name, v in entry.metadata.items() if name not in ("xxh3", "chunk")}
            if metadata:
                row["metadata"] = metadata
            archive.toc.setdefault(entry.key, {})[entry.arch] = row
        return archive

    def get_kernel(self, relative_path: str, gfx_arch: str) -> Optional[bytes]:
        """The object of exactly this name, or None."""
        name = relative_path.replace("\\", "/"), gfx_arch
        if name[1] not in self.toc.get(name[0], {}):
            return None
        if not self._finalized:
            raise RuntimeError("Cannot get_kernel() before archive is finalized. Call finalize_archive() first.")
        return self._kernels[name].data if self._archive is None else self._archive[name]

    @staticmethod
    def compute_pack_filename(group_name: str, gfx_arch_family: str) -> str:
        """The name of pack_tree's archives."""
        return f"{group_name}-{gfx_arch_family}.kpack"

    def __repr__(self) -> str:
        kernels = sum(map(len, self.toc.values()))
        return (f"PackedKernelArchive(group={self.group_name}, family={self.gfx_arch_family}, "
                f"binaries={len(self.toc)}, kernels={kernels})")
