"""Program `internutopia`: its commands, a module for each noun.

Modules that take long to import are imported when a command runs.

Exit codes: 0 success, 1 crash (of `evaluate gait` and `fit`, a policy that fails, too), 2 invalid options, config or
files, 130 interrupted, 143 terminated (128 + the number of the signal).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from typing_extensions import override

import internutopia
from internutopia.cli.asset_files import assets_app
from internutopia.cli.command import command
from internutopia.cli.compare import compare
from internutopia.cli.demo import DemoCommand, demo, init
from internutopia.cli.evaluate_nav import draw_map, evaluate_nav, sample_episodes
from internutopia.cli.evaluate_suite import evaluate_suite
from internutopia.cli.models import inspect, list_names, show
from internutopia.cli.policies import evaluate_fit, evaluate_gait, evaluate_policy, export, play
from internutopia.cli.replay import convert, replay
from internutopia.cli.run import RunCommand, run
from internutopia.cli.serve import serve, token_app
from internutopia.cli.teleop import teleop
from internutopia.cli.train import train

app = typer.Typer(
    help='Vectorized robot simulation.',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={'help_option_names': ['-h', '--help']},
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f'internutopia {internutopia.__version__}')
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option('--version', callback=_print_version, is_eager=True, help='Print the version.')
    ] = False,
) -> None: ...


@command('bench')
def bench(
    out: Annotated[Path | None, typer.Option(help='Folder for the figures.')] = None,
    quick: Annotated[bool, typer.Option('--quick', help='Measure briefly, with less precision.')] = False,
    rows: Annotated[
        str | None, typer.Option(help='Rows to measure, separated by commas; default: all.', metavar='NAME[,NAME]')
    ] = None,
) -> int:
    """Measure the simulation speed of this machine."""
    from internutopia import bench

    return bench.run(out, quick, None if rows is None else [name.strip() for name in rows.split(',') if name.strip()])


_EPISODES = '.yaml', '.json', '.gz'  # endings of files of episodes


class _EvaluateGroup(typer.core.TyperGroup):
    """Group of commands whose default is `policy`; with `--policy` or the name of a suite that is `suite` or `nav`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ['policy', *args]
        return super().parse_args(ctx, args)

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name == 'policy':  # errors give this name, which was typed, whichever command it is
            from internutopia.evaluation.suites import suites

            named = any(each.partition('=')[0] == '--policy' for each in rest)
            if named and any(Path(each).suffix in _EPISODES for each in rest[:1]):
                command = self.commands['nav']
            elif named or rest[:1] and rest[0] in suites():
                command = self.commands['suite']
        return name, command, rest


class _EvaluateCommand(typer.core.TyperCommand):
    """Command that hints at a folder of the same name."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if Path(ctx.info_name).is_dir():
                hint = f'{ctx.info_name} is a command; to evaluate the run in the folder of that name, use'
                error.message = f'{error.message} ({hint} ./{ctx.info_name})'.strip()
            raise


evaluate_app = typer.Typer(
    cls=_EvaluateGroup,
    help='Evaluate a policy: on its learning task (policy FILE, or FILE alone), on a suite of tasks (suite SUITE, or '
    'policy SUITE), its navigation (nav), its gait (gait), or whether it fits a robot (fit).',
    no_args_is_help=True,
)
evaluate_app.command('policy', cls=_EvaluateCommand)(evaluate_policy)
evaluate_app.command('suite', cls=_EvaluateCommand)(evaluate_suite)
evaluate_app.command('gait', cls=_EvaluateCommand)(evaluate_gait)
evaluate_app.command('fit', cls=_EvaluateCommand)(evaluate_fit)
evaluate_app.command('nav', cls=_EvaluateCommand)(evaluate_nav)

_SIMULATE = 'Simulate'
app.command('run', cls=RunCommand, rich_help_panel=_SIMULATE)(run)
app.command(
    'demo',
    cls=DemoCommand,
    context_settings={'ignore_unknown_options': True, 'allow_interspersed_args': False},
    rich_help_panel=_SIMULATE,
)(demo)
app.command('init', rich_help_panel=_SIMULATE)(init)
app.command('show', rich_help_panel=_SIMULATE)(show)
app.command('list', rich_help_panel=_SIMULATE)(list_names)
app.command('inspect', rich_help_panel=_SIMULATE)(inspect)

_LEARN = 'Learn'
app.command('train', rich_help_panel=_LEARN)(train)
app.command('play', rich_help_panel=_LEARN)(play)
app.command('export', rich_help_panel=_LEARN)(export)

_EVALUATE = 'Evaluate and navigate'
app.add_typer(evaluate_app, name='evaluate', rich_help_panel=_EVALUATE)
app.command('compare', rich_help_panel=_EVALUATE)(compare)
app.command('episodes', rich_help_panel=_EVALUATE)(sample_episodes)
app.command('map', rich_help_panel=_EVALUATE)(draw_map)

_RECORD = 'Record and replay'
app.command('teleop', rich_help_panel=_RECORD)(teleop)
app.command('replay', rich_help_panel=_RECORD)(replay)
app.command('convert', rich_help_panel=_RECORD)(convert)

_SERVE = 'Serve'
app.command('serve', rich_help_panel=_SERVE)(serve)
app.add_typer(token_app, name='token', rich_help_panel=_SERVE)

_MACHINE = 'This machine'
app.add_typer(assets_app, name='assets', rich_help_panel=_MACHINE)
app.command('bench', rich_help_panel=_MACHINE)(bench)
