"""Detector of what makes the host wait for a device, on tensors of the host itself or of the device `meta`."""

from typing import Any

import pytest

torch = pytest.importorskip('torch')
modes = pytest.importorskip('torch.utils._python_dispatch')

WAITS = {
    '_local_scalar_dense',
    'nonzero',
    'masked_select',
    'equal',
    'is_nonzero',
}  # operations that give the host a value


class OnDevice(modes.TorchDispatchMode):
    """While it is entered, refuses uploads, tensors that are elsewhere, and what needs to know a value.

    `device` is `'cpu'`, or `'meta'`, whose tensors have no values at all.
    """

    def __init__(self, device: str):
        super().__init__()
        self._device = device

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function._opname
        # a single number goes along with an operation, but not into places that a device knows
        assert name != 'lift_fresh' or not args[0].ndim, 'an upload'
        assert name not in WAITS, f'{name} tells the host a value'
        for value in torch.utils._pytree.tree_leaves((args, kwargs)):
            if isinstance(value, torch.Tensor):
                assert value.device.type == self._device, f'{name} of a tensor of the host'
        if name in ('index', 'index_put_'):
            masks = any(index is not None and index.dtype == torch.bool for index in args[1])
            one_for_all = name == 'index_put_' and not args[2].ndim
            assert one_for_all or not masks, f'{name} with a mask counts it'
            assert masks or not one_for_all, 'an upload of a number'
        return function(*args, **(kwargs or {}))


def outside() -> Any:
    """A context that no mode looks at: for what stands for the engine."""
    return modes._disable_current_modes()
