"""Command `internutopia list`: the names that configs can use, of all installed packages."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal

import typer

from internutopia.cli.command import command
from internutopia.cli.demo import demo_files

Kind = Literal[
    'robots', 'scenes', 'controllers', 'sensors', 'objects', 'task-types', 'metrics', 'rewards', 'tasks', 'terms',
    'demos', 'suites',
]  # fmt: skip


@command('list')
def list_names(
    kind: Annotated[Kind, typer.Argument(help='Kind of names to list.', metavar='KIND')],
    name: Annotated[
        str | None, typer.Argument(help='Of terms: show the parameters of this one.', metavar='NAME')
    ] = None,
) -> int:
    """List the names that configs can use: robots, scenes, controllers, learning tasks, their terms, demos, ..."""
    if name is not None:
        if kind != 'terms':
            raise ValueError(f'only terms have parameters to show, not {kind}: `internutopia list terms {name}`')
        return _show_terms(name)
    names = _names(kind)
    width = max(map(len, names), default=0)
    for name in sorted(names):
        print(f'{name:{width}}  {names[name]}'.rstrip())
    return 0


def _show_terms(name: str) -> int:
    """Print docstrings, which have units, and parameters of the terms with this name."""
    from internutopia.rl.terms.registry import KINDS, registered_terms
    from internutopia.util import did_you_mean

    found = [(kind, terms[name]) for kind in KINDS if name in (terms := registered_terms(kind))]
    if not found:
        known = {each for kind in KINDS for each in registered_terms(kind)}
        raise ValueError(f'there is no term {name!r}; {did_you_mean(name, known)}')
    for kind, function in found:
        print(f'{kind} {name}: {inspect.cleandoc(function.__doc__ or "")}')
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name not in ('state', 'env_ids'):
                print(f'  {parameter}'.replace("'", ''))  # annotations are text
    return 0


def _names(kind: Kind) -> dict[str, str]:
    """Return the names of a kind with their descriptions, '' for names without one."""
    import gymnasium

    from internutopia.asset_tools.listing import list_assets
    from internutopia.core.registries import REGISTRIES
    from internutopia.rl import list_tasks
    from internutopia.rl.terms.registry import KINDS, registered_terms

    match kind:
        case 'demos':  # the first line of the file is a comment
            return {name: file.read_text().partition('\n')[0].removeprefix('# ') for name, file in demo_files().items()}
        case 'scenes':
            assets = list_assets()
            return {**dict.fromkeys(assets.builtin_scenes, 'built in'), **dict.fromkeys(assets.scenes, assets.folder)}
        case 'tasks':  # with their modules
            return {env_id: gymnasium.registry[env_id].kwargs['task'] for env_id in list_tasks()}
        case 'suites':  # with their tasks
            from internutopia.evaluation.suites import suites

            return {name: ', '.join(make().tasks) for name, make in suites().items()}
        case 'terms':
            return {f'{kind} {name}': _summary(term) for kind in KINDS for name, term in registered_terms(kind).items()}
        case _:
            return {
                name: _summary(cls) for name, cls in REGISTRIES['task' if kind == 'task-types' else kind[:-1]].items()
            }


def _summary(thing: Any) -> str:
    """Return the first line of its own docstring, not of an inherited one."""
    return inspect.cleandoc(thing.__doc__ or '').partition('\n')[0]
