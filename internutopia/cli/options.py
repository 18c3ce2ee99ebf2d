"""Options that several commands have, and what their values stand for."""

from __future__ import annotations

import math
import os
import shlex
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from internutopia.util import replacing
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_PROCESSES, MAX_SECONDS, MAX_SEED, MAX_THREADS

if TYPE_CHECKING:
    from internutopia.config import Config
    from internutopia.evaluation.arm_mapper import ArmForm
    from internutopia.evaluation.chunk_policy import Client
    from internutopia.recording import Recorder
    from internutopia.rl.training.engine import Engine
    from internutopia.rl.training.loading import Trained
    from internutopia.viewer.viewer import Viewer as OpenViewer

ENV_NUM = '--env-num', '--envs', '--num-envs'
"""Names of the option for the number of envs."""
LOOPBACK = '127.0.0.1:0'
_MAX_PORT = 65535
_BEYOND_ANY_MACHINE = {MAX_COUNT, MAX_ENVS, MAX_PROCESSES, MAX_SECONDS, MAX_SEED, MAX_THREADS}


def number_option(*names: str, min: float, help: str, max: float | None = None) -> Any:
    """Make a typer option for a number: an integer if `min` is one, both ends included.

    Help names a bound only if someone might choose a number beyond it.
    """
    hidden = max is None or max in _BEYOND_ANY_MACHINE
    label = 'positive number' if hidden and 0 < min <= 1 else f'number from {min:g}'
    label += '' if hidden else f' to {max:g}'

    def parse(given: str) -> float:
        try:
            value = type(min)(given)
        except ValueError:
            raise typer.BadParameter(
                f'{given!r} is not {"an integer" if isinstance(min, int) else "a number"}'
            ) from None
        if not min <= value <= (math.inf if max is None else max):
            bound = f' up to {max}' if hidden and value > min else ''
            raise typer.BadParameter(f'expected a {label}{bound}, got {given}')
        return value

    return typer.Option(*names, parser=parse, metavar=f'<{label}>', help=help)


Json = Annotated[bool, typer.Option('--json', help='Print JSON.')]
JsonFile = Annotated[Path | None, typer.Option('--json', help='Write the figures to this file.', metavar='FILE')]
Quiet = Annotated[bool, typer.Option('--quiet', help='Print errors only.')]
Seed = Annotated[int, number_option(min=0, max=MAX_SEED, help='Seed of the random number generators.')]
RunSeed = Annotated[int | None, number_option(min=0, max=MAX_SEED, help='Seed; overrides the seed in the file.')]
Threads = Annotated[
    int | None,
    number_option(min=1, max=MAX_THREADS, help='Threads of the physics engine; default: one per core.'),
]
Processes = Annotated[
    int | None,
    number_option(min=1, max=MAX_PROCESSES, help='Run in this many Ray worker processes, each with --env-num envs.'),
]
MaxSteps = Annotated[int | None, number_option('--steps', min=1, max=MAX_COUNT, help='Maximum number of env steps.')]
Envs = Annotated[int, number_option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs per process.')]
Resume = Annotated[bool, typer.Option('--resume', help='Resume the run in the folder.')]
Overwrite = Annotated[bool, typer.Option('--overwrite', help='Replace existing results.')]

Device = Annotated[
    str | None, typer.Option(help='Device of physics and policy: cpu (default) or a GPU, cuda:0.', metavar='DEVICE')
]
Backend = Annotated[
    str | None,
    typer.Option(help='Physics engine: mujoco (default on the CPU), mujoco_warp (GPUs) or physx.', metavar='BACKEND'),
]
Source = Annotated[
    Path,
    typer.Argument(help='Training run folder, policy file, or Stable-Baselines3 model (.zip).', metavar='DIR|POLICY'),
]
TaskId = Annotated[
    str | None, typer.Option('--id', help='Learning task; default: the one it was trained on.', metavar='ID')
]
TaskOptions = Annotated[
    list[str] | None, typer.Option('--option', help='Option of the task; repeatable.', metavar='NAME=VALUE')
]
Trust = Annotated[
    bool,
    typer.Option('--trust', help='Allow code that the file names to run: task modules, pickled classes, TorchScript.'),
]
Velocity = Annotated[
    str | None,
    typer.Option('--command', help='Velocity command in m/s, m/s and rad/s; default: random.', metavar='VX,VY,WZ'),
]

Viewer = Annotated[
    bool, typer.Option('--viewer', help='Open a live viewer for browsers on this machine and print its URL.')
]
ViewerAddress = Annotated[
    str | None,
    typer.Option(help='Open the viewer at this address, also for other machines.', metavar='HOST:PORT'),
]


@dataclass(frozen=True)
class PolicyOptions:
    """Options of a trained policy, for `command`."""

    source: Source
    env_id: TaskId = None
    option: TaskOptions = None
    trust: Trust = False
    device: Device = None
    backend: Backend = None

    def load(self) -> tuple[Trained, Engine | None]:
        """Load the policy; returns it, and the engine that it runs on. Errors are those of `load_trained`."""
        from internutopia.rl.training.engine import choose_engine
        from internutopia.rl.training.loading import load_trained

        engine = choose_engine(self.backend, self.device)
        options = parse_key_values(self.option or [], '--option')
        return load_trained(self.source, self.env_id, engine, options, self.trust), engine


@dataclass(frozen=True)
class RecordOptions:
    """Options of the dataset to record, for `command`; `record` is None if none is recorded."""

    record: Annotated[
        Path | None, typer.Option(help='Record the episodes as a dataset in this folder.', metavar='FOLDER')
    ] = None
    format: Annotated[
        Literal['lerobot', 'hdf5'], typer.Option(help='Dataset format: LeRobot v3.0 or robomimic HDF5.')
    ] = 'lerobot'
    only: Annotated[Literal['all', 'success'], typer.Option(help='Episodes to record.')] = 'all'
    record_fps: Annotated[
        int | None,
        number_option(min=1, max=MAX_COUNT, help='Frames per second of the dataset; default: every step.'),
    ] = None

    def check(self) -> None:
        """Check the options. ValueError if one is given without `--record`."""
        if self.record is None and self != RecordOptions():
            raise ValueError('--format, --only and --record-fps are options of a dataset: they need --record FOLDER')

    def recorder(self, config: Config | None, form: ArmForm | None = None) -> Recorder | None:
        """Return the recorder of a run, if it is recorded; it resumes the dataset if the run is resumed.

        Errors are those of `Recorder`.
        """
        from internutopia.recording import Recorder

        if self.record is None:
            return None
        resume = config is not None and bool(config.resume)
        return Recorder(self.record, config, self.format, self.only, self.record_fps, resume, form=form)

    @contextmanager
    def attached(self, envs: Any, recorder: Recorder | None = None) -> Iterator[None]:
        """Record the envs during the context, if `--record` is given. ValueError for envs that are not supported."""
        recorder = recorder or self.recorder(None)
        if recorder is None:
            yield
            return
        try:
            with recorder:
                try:
                    recorder.attach(envs)
                except NotImplementedError as error:
                    raise ValueError(f'--record: {error}') from error
                yield
        finally:
            _print_dataset(recorder.folder)


NOT_RECORDED = RecordOptions()


@dataclass(frozen=True)
class ClientOptions:
    """Options of a policy that is asked over a wire, for `command`."""

    mapping: Annotated[
        Path | None,
        typer.Option(help='YAML file with the names and forms of observations and actions.', metavar='FILE'),
    ] = None
    horizon: Annotated[
        int | None,
        number_option(min=1, max=MAX_COUNT, help='Steps of a chunk of actions that are executed; default: all.'),
    ] = None
    policy_timeout: Annotated[
        float, number_option(min=0.001, max=MAX_SECONDS, help='Time limit for each reply of the policy, in seconds.')
    ] = 60.0
    policy_name: Annotated[
        str | None,
        typer.Option(
            help='Name of the policy in results, such as its checkpoint; default: as --policy. With it, a run can be '
            'resumed with the policy at another address.',
            metavar='NAME',
        ),
    ] = None

    @property
    def place(self) -> str:
        """Name of the mapping in messages."""
        return 'the default mapping' if self.mapping is None else str(self.mapping)

    def client(self, policy: str, batched: bool | None, **settings: Any) -> Client | None:
        """Return the client that reaches a policy; None for a function of this process. Errors as of `connect`."""
        from internutopia.evaluation.protocols import connect

        if '://' not in policy and not policy.startswith('lerobot:'):
            return None
        return connect(policy, self.policy_timeout, batched, **settings)


ASKED = ClientOptions()
PolicyErrorRule = Literal['fail', 'retry', 'skip', 'stop']
ON_POLICY_ERROR = typer.Option(
    help='If the policy raises an error: fail the episode, retry it twice, skip it, or stop the run.'
)


def _print_dataset(folder: Path) -> None:
    """Print where a dataset is, and how many episodes it has."""
    from internutopia.recording import Dataset

    if Dataset.exists(folder):
        print(f'{folder}: dataset of {len(Dataset(folder))} episodes, described in its README.md', flush=True)


def open_viewer(env: Any, address: str, paused: bool = True) -> OpenViewer:
    """Show envs in real time at an address `HOST:PORT`, and print the URL; `paused`, the first step waits for a page.

    ValueError for an invalid address or envs that cannot be shown; other errors are those of `viewer.attach`.
    """
    from internutopia.viewer import attach

    host, colon, port = address.rpartition(':')
    if not (colon and host and port.isdecimal() and int(port) <= _MAX_PORT):
        raise ValueError(f'--viewer-address {address}: expected HOST:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080')
    try:
        viewer = attach(env, host=host.strip('[]'), port=int(port), speed=1.0, paused=paused)
    except NotImplementedError as error:
        raise ValueError(f'--viewer: {error}') from error
    url = viewer.url
    if '//0.0.0.0:' in url:
        url = url.replace('0.0.0.0', _own_address())
    print(f'viewer: open {url}' + (' and press Run there' if paused else ''), flush=True)
    return viewer


def _own_address() -> str:
    """Return the address of this machine for others; 0.0.0.0 if it has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(('192.0.2.1', 9))  # nothing is sent; the address is reserved for documentation (RFC 5737)
        except OSError:
            return '0.0.0.0'
        return probe.getsockname()[0]


def parse_key_values(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Parse the values of a repeatable option `name=value`, each value as YAML. ValueError names what is malformed."""
    import yaml

    from internutopia.config.yaml_file import load_yaml

    values = {}
    for text in texts:
        name, equals, value = text.partition('=')
        if not (equals and name):
            raise ValueError(f'{option} {text}: expected name=value')
        try:
            values[name] = load_yaml(value)
        except yaml.YAMLError as error:
            raise ValueError(f'{option} {text}: the value is not valid YAML: {error}') from None
    return values


def check_output(option: str, file: Path | None, suffix: str = '') -> None:
    """Raise ValueError if a file cannot be written, or has another suffix: before the work that it is for."""
    if file is None:
        return
    if not file.name.endswith(suffix):
        raise ValueError(f'{option} {file}: expected a name that ends in {suffix}')
    folder = next(folder for folder in file.absolute().parents if folder.exists())
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        what = f'{file} is a folder' if file.is_dir() else f'{folder} is not a folder that you may write to'
        raise ValueError(f'{option} {file} cannot be written: {what}')


def write_json(file: Path, figures: Any) -> Path:
    """Write figures as JSON; returns the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replacing.write_json(file, figures)
    return file


def check_results(file: Path, resume: bool | Literal['force'], overwrite: bool) -> None:
    """Raise ValueError if a results file holds results that are neither resumed nor overwritten, or both is given."""
    if resume and overwrite:
        raise ValueError('resume (--resume) or replace the results (--overwrite), not both')
    if not (resume or overwrite) and file.is_file() and file.stat().st_size:
        raise ValueError(
            f'{file} holds the results of an earlier run: resume it with --resume, replace them with --overwrite, '
            'or use another --out'
        )


def resuming_command(context: typer.Context, *left_out: str, resume: str = '--resume') -> str:
    """Return the command line that resumes a command: its arguments and the given options, and `resume`.

    Parameters whose names begin with one of `left_out` are not repeated.
    """
    program = context.find_root().command_path  # `internutopia`, or `python -m internutopia`
    words = ['internutopia', *context.command_path.removeprefix(program).split()]
    for parameter in context.command.params:
        name = parameter.name or ''
        source, value = context.get_parameter_source(name), context.params.get(name)
        if parameter.param_type_name == 'argument':
            words.append(str(value))
        elif source is None or source.name != 'COMMANDLINE' or name.startswith(('resume', 'overwrite', *left_out)):
            continue
        elif isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            words += [parameter.opts[0], str(value)]
    return shlex.join([*words, resume])


@contextmanager
def interruption_hint(message: str | None) -> Iterator[None]:
    """Print a message if the context is left by an interruption; None prints nothing."""
    from internutopia.util.interrupts import InterruptedByUser

    try:
        yield
    except InterruptedByUser:
        if message is not None:
            print(message, flush=True)
        raise
