"""Policy files: a network together with everything that is needed to run it on a robot.

A policy maps observations `(n, dim)` to actions `(n, k)`: arrays of numpy, or torch tensors on a device if it is loaded
for one. What is needed to run it is a `PolicyMetadata`. The network's file carries it as JSON: in an ONNX model it is
the metadata entry `internutopia`, in a TorchScript archive the extra file `internutopia.json`. Or a YAML file holds it
and names the network's file as `network`, relative to itself: that is how a policy that was trained elsewhere is run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, ValidationError, model_validator

from internutopia.config.base import BaseCfg, Count, NonNegativeFloat, PositiveFloat
from internutopia.config.learning import ObservationTermCfg
from internutopia.config.robot import MimicCfg
from internutopia.config.yaml_file import portable, read_mapping
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia.rl.recurrent import OnnxRecurrent, ScriptNetwork, State, in_blocks
from internutopia.util.imports import install_hint
from internutopia.util.replacing import replacing

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float32]
Infer = Callable[[Any], Any]
METADATA_KEY = 'internutopia'
TORCHSCRIPT = '.pt'
"""Suffix of files that are programs."""
_OF_JOINTS = ('joint_positions', 'joint_velocities')  # observation terms
_LONGEST_STEP = 1.0  # s: what takes longer was given in milliseconds
_Number = Annotated[FiniteFloat, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
_Positive = Annotated[PositiveFloat, Field(le=LARGEST_NUMBER)]
_NotNegative = Annotated[NonNegativeFloat, Field(le=LARGEST_NUMBER)]


class PolicyMetadata(BaseCfg):
    """Metadata to run a policy. Joint values are in the order of `joint_names`."""

    robot: str
    """Type of the robot that it was trained on."""
    step_dt: Annotated[PositiveFloat, Field(le=_LONGEST_STEP)]
    """Time between two of its actions, s."""
    joint_names: list[str]
    """Joints that it drives."""
    offset: list[_Number]
    """Position targets for an action of zero, rad; joint positions in its observation are relative to them, too."""
    scale: _Positive | list[_Positive]
    """Change of a position target for an action of one, rad; one number, or one per joint."""
    observations: list[ObservationTermCfg]
    """Its observation, part by part."""
    command: str
    """Name of the command among the parameters of the observation terms."""
    command_low: list[_Number]
    """Lowest command that it was trained on."""
    command_high: list[_Number]
    """Highest command that it was trained on."""
    action_clip: _Positive | None = None
    """Largest absolute action, before scaling; also of the observed last action. None means no limit."""
    stiffness: _NotNegative | list[_NotNegative] | None = None
    """Stiffness of the joints' drives, N·m/rad; one number, or one per joint. None means that of the robot."""
    damping: _NotNegative | list[_NotNegative] | None = None
    """Damping of the joints' drives, N·m·s/rad, likewise."""
    mimic: dict[str, MimicCfg] = {}
    """Further joints, whose targets follow from those of `joint_names`, such as arms that swing with the legs."""
    training: dict[str, Any] = {}
    """Origin of the policy: command line, seed, env steps, wall time."""

    @model_validator(mode='after')
    def _values_agree(self) -> PolicyMetadata:
        twice = sorted({name for name in self.joint_names if self.joint_names.count(name) > 1})
        if twice:
            raise ValueError(f'joint_names has {", ".join(twice)} more than once')
        if len(self.offset) != len(self.joint_names):
            raise ValueError(f'offset must have {len(self.joint_names)} numbers, one per joint, has {len(self.offset)}')
        for name, cfg in self.mimic.items():
            for joint in (name, *cfg.multipliers):
                if (joint in self.joint_names) == (joint is name):
                    what = (
                        'is among joint_names' if joint is name else f'follows {joint!r}, which is not in joint_names'
                    )
                    raise ValueError(f'mimic: joint {name!r} {what}')
        for name in ('scale', 'stiffness', 'damping'):
            value = getattr(self, name)
            if isinstance(value, list) and len(value) != len(self.joint_names):
                raise ValueError(f'{name} must have {len(self.joint_names)} numbers, one per joint, has {len(value)}')
        if len(self.command_low) != len(self.command_high):
            raise ValueError(f'command_low has {len(self.command_low)} numbers, command_high {len(self.command_high)}')
        for low, high in zip(self.command_low, self.command_high, strict=True):
            if low > high:
                raise ValueError(f'command_low={self.command_low} is above command_high={self.command_high}')
        return self


class TaskPolicyMetadata(BaseCfg):
    """Metadata to run the policy of any task by a `LearnedController`."""

    robot: str
    """Type of the robot that it was trained on."""
    step_dt: Annotated[PositiveFloat, Field(le=_LONGEST_STEP)]
    """Time between two of its actions, s."""
    controller: str
    """Type of the controller that gets its actions."""
    offset: list[_Number]
    """Action of the controller for an action of zero."""
    scale: list[_Positive]
    """Change of the controller's action for an action of one."""
    low: list[float] | None = None
    """Least actions, before scaling; None means no limits."""
    high: list[float] | None = None
    """Greatest actions, likewise."""
    observations: list[ObservationTermCfg]
    """Its observation, part by part."""
    commands: dict[str, Count] = {}
    """Number of elements of each command of the task, by its name."""
    training: dict[str, Any] = {}
    """Origin of the policy: command line, seed, env steps, wall time."""

    @model_validator(mode='after')
    def _values_agree(self) -> TaskPolicyMetadata:
        for name in ('scale', 'low', 'high'):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.offset):
                raise ValueError(f'{name} must have {len(self.offset)} numbers, as offset has, has {len(value)}')
        return self


class Policy:
    """A policy from a file; see `load_policy`. `policy(observations)` gives the actions."""

    def __init__(self, path: Path, metadata: Any, infer: Infer):
        self.path = path
        self.metadata = metadata
        self._infer = infer

    def __call__(self, observations: Any) -> Any:
        """Compute actions `(n, k)` for observations `(n, dim)`, float32.

        In numpy a row's result does not depend on the other rows; on a device it may, by rounding.
        """
        return self._infer(observations)

    def initial_state(self, observations: Any) -> State:
        """Return the state of one env at the start of an episode, given its observation `(1, dim)`.

        It is empty for a network whose actions follow from an observation alone. ValueError for a state that cannot be
        kept for several envs.
        """
        return self._infer.initial(observations) if isinstance(self._infer, ScriptNetwork | OnnxRecurrent) else ()

    def step(self, observations: Any, state: State) -> tuple[Any, State]:
        """Compute actions `(n, k)` and the next states, for observations `(n, dim)` and states `(n, ...)` of envs."""
        if not state:
            return self(observations), ()
        assert isinstance(self._infer, ScriptNetwork | OnnxRecurrent)
        return self._infer.step(observations, state)


def load_policy(
    path: str | os.PathLike[str],
    device: str | torch.device | None = None,
    kind: type[PolicyMetadata | TaskPolicyMetadata] | None = PolicyMetadata,
) -> Policy:
    """Load the policy in an ONNX (`.onnx`) or TorchScript (`.pt`) file, or one that a YAML file (`.yaml`) describes.

    The network is read once, until its file changes. In a YAML file the observation terms `joint_positions` and
    `joint_velocities` are of the policy's joints, in its order, unless they name others.

    Args:
        path: the file.
        device: torch device, such as `'cuda:0'`, that the policy computes on, from tensors there to tensors there;
            None means on the host, in numpy.
        kind: what says how to run it, None for either; YAML files hold a `PolicyMetadata`.

    Raises:
        FileNotFoundError: there is no such file.
        ImportError: the library that runs such files is not installed.
        ValueError: the file cannot be read, has no metadata or other, gives actions for another number of
            joints than it names, or has an operator that is not known on a device.
    """
    file, where = _existing(Path(path).expanduser()), None if device is None else str(device)
    return _described(file, where) if file.suffix == '.yaml' else _carrying(file, _digest(file), where, kind)


def network_file(path: Path) -> Path:
    """Return the file with the network of a policy: the policy file, or the one in a YAML file. Errors as above."""
    file = _existing(path)
    return _network_in(file, read_mapping(file)) if file.suffix == '.yaml' else file


def _network_in(file: Path, values: Mapping[str, Any]) -> Path:
    """Return the file with the network that a YAML file with these values names."""
    network = values.get('network')
    if not isinstance(network, str):
        raise ValueError(f'policy {file}: `network` must name the ONNX or TorchScript file, got {network!r}')
    path = file.parent / Path(network).expanduser()
    if path.suffix not in LOADERS:
        raise ValueError(
            f'policy {file}: `network` must name a file that ends in {" or ".join(LOADERS)}, got {network!r}'
        )
    return _existing(path)


def _existing(path: Path) -> Path:
    try:
        file = path.resolve()
        exists = file.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, a loop of links, a NUL
        raise FileNotFoundError(f'policy {os.fspath(path)!r} not found: {error}') from None
    if not exists:
        raise FileNotFoundError(f'policy {os.fspath(path)!r} not found')
    return file


def _digest(file: Path) -> bytes:
    """Return a hash that distinguishes versions of a file; file system clocks are too slow for two writes in a row."""
    with file.open('rb') as content:
        return hashlib.file_digest(content, 'sha256').digest()


@lru_cache(64)
def _carrying(
    file: Path, digest: bytes, device: str | None, kind: type[PolicyMetadata | TaskPolicyMetadata] | None
) -> Policy:
    """Return a policy from a file with metadata in it."""
    text, infer = _network(file, digest, device)
    if text is None:
        raise ValueError(
            f'policy {file}: it has no metadata. Policies of `internutopia train` have it; describe others in a '
            'YAML file, or write a `PolicyMetadata` into them (`internutopia.rl.policy.write_metadata`)'
        )
    return Policy(file, parse_metadata(file, text, kind), infer)


def parse_metadata(
    file: Path, text: str, kind: type[PolicyMetadata | TaskPolicyMetadata] | None = None
) -> PolicyMetadata | TaskPolicyMetadata:
    """Return the metadata in a policy file, of either kind if `kind` is None. ValueError if it is wrong, or another."""
    if kind is None:
        kind = TaskPolicyMetadata if '"controller":' in text else PolicyMetadata
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        other = {PolicyMetadata: TaskPolicyMetadata, TaskPolicyMetadata: PolicyMetadata}[kind]
        try:
            other.model_validate_json(text)
        except ValidationError:
            raise ValueError(f'policy {file}: wrong metadata: {error}') from error
        runners = {PolicyMetadata: 'a MoveBySpeedController', TaskPolicyMetadata: 'a LearnedController'}
        raise ValueError(f'policy {file}: it is one for {runners[other]}, not for {runners[kind]}') from error


def _described(file: Path, device: str | None) -> Policy:
    values = read_mapping(file)
    network = _network_in(file, values)
    try:
        metadata = PolicyMetadata.model_validate({name: values[name] for name in values if name != 'network'})
    except ValidationError as error:
        raise ValueError(f'policy {file}: {error}') from error
    observations = [
        cfg.update(params={'joints': metadata.joint_names} | cfg.params) if cfg.term in _OF_JOINTS else cfg
        for cfg in metadata.observations
    ]
    _, infer = _network(network, _digest(network), device)
    return Policy(file, metadata.update(observations=observations), infer)


@lru_cache(64)
def _network(file: Path, digest: bytes, device: str | None) -> tuple[str | None, Infer]:
    if file.suffix not in LOADERS:
        raise ValueError(f'policy {file}: suffix {file.suffix!r} is not one of {", ".join((*LOADERS, ".yaml"))}')
    return LOADERS[file.suffix](file, device)


def write_metadata(path: str | os.PathLike[str], metadata: PolicyMetadata | TaskPolicyMetadata) -> None:
    """Write metadata into an ONNX or TorchScript file, in place.

    Raises:
        ImportError: the library that writes such files is not installed.
        ValueError: the file has another suffix.
    """
    file = Path(path)
    if file.suffix not in LOADERS:
        raise ValueError(f'policy {file}: suffix {file.suffix!r} is not one of {", ".join(LOADERS)}')
    with replacing(file) as part:
        if file.suffix == '.onnx':
            write_onnx_metadata(file, metadata, part)
        else:
            import torch

            extra = {f'{METADATA_KEY}.json': metadata.model_dump_json()}
            torch.jit.save(torch.jit.load(file, map_location='cpu'), part, _extra_files=extra)


def write_onnx_metadata(file: Path, metadata: PolicyMetadata | TaskPolicyMetadata, target: Path) -> None:
    """Write a copy of an ONNX file with metadata, which may take its place."""
    import onnx

    model = onnx.load(file)
    others = {prop.key: prop.value for prop in model.metadata_props}
    onnx.helper.set_model_props(model, others | {METADATA_KEY: metadata.model_dump_json()})
    onnx.save(model, target)


def _load_onnx(file: Path, device: str | None) -> tuple[str | None, Infer]:
    if device is not None:
        return _load_onnx_network(file, device)
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(f'policy {file} needs onnxruntime ({error}): {install_hint("policies")}') from error
    options = onnxruntime.SessionOptions()
    # networks are small, and threads of its own would only fight with those of the physics engine
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(os.fspath(file), options, providers=['CPUExecutionProvider'])
    except Exception as error:  # its exceptions have no common base
        raise ValueError(f'policy {file} cannot be read: {error}') from error
    inputs = session.get_inputs()
    metadata = session.get_modelmeta().custom_metadata_map.get(METADATA_KEY)
    if len(inputs) != 1:
        return metadata, OnnxRecurrent(file, session)
    name, rows = inputs[0].name, (inputs[0].shape or [None])[0]

    def run(observations: Array) -> Array:
        actions = session.run(None, {name: observations})[0]
        assert isinstance(actions, np.ndarray)
        return actions

    def infer(observations: Array) -> Array:
        n = len(observations)
        if isinstance(rows, int):  # exported without dynamic axes
            return in_blocks(lambda block, _: (run(block), ()), observations, (), rows)[0]
        if n == 1:  # one row alone may go another way, with other rounding
            observations = np.repeat(observations, 2, axis=0)
        return run(observations)[:n]

    return metadata, infer


def _load_onnx_network(file: Path, device: str) -> tuple[str | None, Infer]:
    try:
        import onnx
        import torch

        from internutopia.rl.onnx_network import OnnxNetwork
    except ImportError as error:
        raise ImportError(f'policy {file} needs onnx and torch on a device ({error}): {install_hint("gpu")}') from error
    try:
        model = onnx.load(file)
    except Exception as error:  # of a broken file nearly anything
        raise ValueError(f'policy {file} cannot be read: {error}') from error
    try:
        network = OnnxNetwork(model, torch.device(device))
    except ValueError as error:
        raise ValueError(f'policy {file}: {error}') from error

    def infer(observations: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return network(observations)

    return {prop.key: prop.value for prop in model.metadata_props}.get(METADATA_KEY), infer


def _load_torchscript(file: Path, device: str | None) -> tuple[str | None, Infer]:
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'policy {file} needs torch ({error}): {install_hint("rl")}') from error
    extra = {f'{METADATA_KEY}.json': ''}
    try:
        module = torch.jit.load(os.fspath(file), map_location=device or 'cpu', _extra_files=extra)
    except Exception as error:  # likewise
        raise ValueError(f'policy {file} is not a TorchScript file (a checkpoint cannot be run): {error}') from error

    module.eval()  # it may have been saved while it was trained
    network = ScriptNetwork(file, module)
    stateless = False

    def infer_on_device(observations: torch.Tensor) -> torch.Tensor:
        nonlocal stateless
        with torch.no_grad():
            before = [] if stateless else [buffer.clone() for buffer in module.buffers()]
            actions = module(observations)
            if not all(map(torch.equal, before, module.buffers())):
                raise ValueError(f'policy {file} has a hidden state: on a device, recurrent networks cannot be run')
            stateless = True
        return actions

    text: Any = extra[f'{METADATA_KEY}.json']  # bytes, whatever torch's types say
    if isinstance(text, bytes):
        text = text.decode(errors='replace')
    return text or None, network if device is None else infer_on_device


LOADERS: dict[str, Callable[[Path, str | None], tuple[str | None, Infer]]] = {
    '.onnx': _load_onnx,
    TORCHSCRIPT: _load_torchscript,
}


def check_names_no_program(values: Any, source: Path) -> None:
    """Raise ValueError if plain data of a file names a TorchScript file, itself or by the YAML file of a policy.

    Those in the asset folder and in installed extension packages were put there by the user, and are fine.
    """
    for text in _texts(values):
        if not text.lower().endswith(POLICY_SUFFIXES):
            continue
        try:
            file = network_file(resolve(text, POLICY_SUFFIXES))
        except (OSError, ValueError):  # it is not loaded either
            continue
        if file.suffix == TORCHSCRIPT and portable(str(file)) == str(file):
            raise ValueError(
                f'{source} names {file}, a TorchScript file: that is a program, which may read and write files. If you '
                'trust the authors of both, use --trust (trust=True)'
            )


def _texts(values: Any) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, dict):
        for value in values.values():
            yield from _texts(value)
    elif isinstance(values, list):
        for value in values:
            yield from _texts(value)
