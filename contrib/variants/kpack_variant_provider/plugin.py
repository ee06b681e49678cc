# SPDX-License-Identifier: MIT
"""The provider of properties "amd :: gfx_arch :: ...".

It has the members that installers use, and imports nothing of theirs.
"""
import os
from dataclasses import dataclass, field

from . import kfd, targets

FEATURE = "gfx_arch"


@dataclass(frozen=True)
class VariantFeatureConfig:
    name: str
    values: list = field(default_factory=list)  # the most preferred one first
    multi_value: bool = False


def _chosen():
    """Targets that the environment sets in place of this machine's; None: it sets none."""
    if os.environ.get("ROCM_BOOTSTRAP_DISABLE_DETECTION") == "1":
        return []
    for name in ("KPACK_VARIANT_GFX_ARCH", "ROCM_BOOTSTRAP_FORCE_GFX_ARCH"):
        if name in os.environ:
            return [t.strip() for t in os.environ[name].split(",") if t.strip()]
    return None


def _with_xnack(processor):
    """PROCESSOR, preceded by PROCESSOR with the XNACK mode that HSA_XNACK sets, if any."""
    sign = {"1": "+", "0": "-"}.get(os.environ.get("HSA_XNACK", ""))
    if sign and "xnack" in targets.PROCESSORS.get(processor, ()):
        return [f"{processor}:xnack{sign}", processor]
    return [processor]


def _supported():
    """Target IDs, the most preferred one first."""
    exact, generics = [], []
    chosen = _chosen()
    for target in kfd.gpus() if chosen is None else chosen:
        processor = target.split(":")[0]
        exact += [target, processor] if ":" in target else _with_xnack(target)
        # wheels for a stepping are the processor's, whichever of the two is named here
        model = processor.removesuffix("-strict")
        exact += [model, targets.STRICT.get(model)]
        generics.append(targets.generic(model))
    return [t for t in dict.fromkeys(exact + generics) if t]


def _escaped(ids):
    values = []
    for target in ids:
        try:
            values.append(targets.escape(target))
        except ValueError:
            pass  # the environment may have any text
    return values


class KfdVariantPlugin:
    """AMD's GPUs, found without a GPU runtime."""

    namespace = "amd"
    is_aot_plugin = False  # the answer depends on this machine, and is needed at installation
    dynamic = False  # for the API before get_all_configs: the answer depends on no package

    @classmethod
    def get_supported_configs(cls, known_properties=None):
        """The values that this machine's GPUs can run; an empty list without a GPU."""
        values = _escaped(_supported())
        return [VariantFeatureConfig(FEATURE, values, True)] if values else []

    @classmethod
    def get_all_configs(cls, known_properties=None):
        """All values that exist, on any machine."""
        ids = [t for name, features in targets.PROCESSORS.items()
               for t in targets.stated(name, features)]
        ids += [t for name, (_, features) in targets.GENERICS.items()
                for t in targets.stated(name, features)]
        return [VariantFeatureConfig(FEATURE, _escaped(ids), True)]

    @classmethod
    def validate_property(cls, variant_property):
        """Whether the property is one of all values; for the API before get_all_configs."""
        return (variant_property.namespace == cls.namespace
                and variant_property.feature == FEATURE
                and variant_property.value in cls.get_all_configs()[0].values)
