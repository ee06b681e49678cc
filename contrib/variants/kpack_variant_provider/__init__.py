# SPDX-License-Identifier: MIT
"""The AMD GPUs of this machine, for installers of wheel variants."""
from .kfd import gpus
from .plugin import KfdVariantPlugin, VariantFeatureConfig
from .targets import escape, get_arch_family

__all__ = ["KfdVariantPlugin", "VariantFeatureConfig", "escape", "get_arch_family", "gpus"]
