"""Units inside a stage: files in other units than what refers to them are named, unless they were made to fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.model.importers import LoadOptions, usd

pytest.importorskip('pxr.Usd')

Write = Callable[..., Path]
CHAIR = 'def Xform "Chair" {\n def Cube "seat" {\n  double size = 50\n }\n}'
CENTIMETRES = 'metersPerUnit = 0.01\n upAxis = "Y"'
METRES = 'metersPerUnit = 1\n upAxis = "Z"'
SCALED = """
    double3 xformOp:scale:unitsResolve = (0.01, 0.01, 0.01)
    double xformOp:rotateX:unitsResolve = 90
"""
ORDER = 'uniform token[] xformOpOrder = [{}]\n'
BOTH = SCALED + ORDER.format('"xformOp:rotateX:unitsResolve", "xformOp:scale:unitsResolve"')
KIND = 'a file in other units than what refers to it'
SMALL, TURNED = '100 times too small (scale it by 100)', 'on its side (its up axis is Z: turn it by -90 about X)'
LARGE, LYING = '100 times too large (scale it by 0.01)', 'on its side (its up axis is Y: turn it by 90 about X)'
CHAIR_WITH = 'def "chair" (prepend references = @./chair.usda@) {{\n{}\n}}'
WHERE = '@chair.usda@ at </World/chair>'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a stage with that text, units and default prim; what else is in its header last."""

    def write(name: str, text: str, units: str = METRES, top: str = 'World', header: str = '') -> Path:
        file = tmp_path / name
        default = f' defaultPrim = "{top}"\n' if top else ''
        file.write_text(f'#usda 1.0\n(\n{default} {units}\n {header}\n)\n{text}\n')
        return file

    return write


def world(text: str) -> str:
    return f'def Xform "World" {{\n def Cube "own" {{\n  double size = 1\n }}\n{text}\n}}'


def said(file: Path) -> list[str]:
    """Warnings of units, when a file is loaded; `assets check` has to say the same."""
    warnings = [line for line in usd.load_with_warnings(file)[1] if line.startswith(KIND)]
    result = CliRunner().invoke(app, ['assets', 'check', str(file)])
    checked = [line.removeprefix('  units: ') for line in result.stdout.splitlines() if line.startswith('  units: ')]
    assert sorted(checked) == sorted(warnings)
    return [line.removeprefix(f'{KIND}, which USD does not convert, is ') for line in warnings]


@pytest.mark.parametrize('extra', ['', 'instanceable = true'])
@pytest.mark.parametrize('arc', ['references', 'payload'])
def test_a_file_in_other_units_is_named_with_the_factor(write: Write, arc: str, extra: str) -> None:
    write('chair.usda', CHAIR, CENTIMETRES, 'Chair')
    file = write('room.usda', world(f'def "chair" ({extra}\n prepend {arc} = @./chair.usda@) {{}}'))
    assert said(file) == [f'{LARGE} and {LYING}: {WHERE}']


@pytest.mark.parametrize(
    ('units', 'room', 'faults'),
    [
        ('metersPerUnit = 0.01\n upAxis = "Z"', METRES, [LARGE]),
        ('metersPerUnit = 1\n upAxis = "Y"', METRES, [LYING]),
        ('metersPerUnit = 0.01', METRES, [LARGE]),
        ('metersPerUnit = 0.001', METRES, ['1000 times too large (scale it by 0.001)']),
        (METRES, CENTIMETRES, [SMALL, TURNED]),
        (METRES, '', [SMALL, TURNED]),
        ('', METRES, []),
        ('', CENTIMETRES, []),
        (CENTIMETRES, CENTIMETRES, []),
        (CENTIMETRES, '', []),
        ('metersPerUnit = 0.009999999776482582\n upAxis = "Y"', CENTIMETRES, []),
        ('metersPerUnit = -1\n upAxis = "W"', METRES, []),
    ],
)
def test_what_a_file_states_is_compared(write: Write, units: str, room: str, faults: list[str]) -> None:
    write('chair.usda', CHAIR, units, 'Chair')
    file = write('room.usda', world('def "chair" (prepend references = @./chair.usda@) {}'), room)
    assert said(file) == ([f'{" and ".join(faults)}: {WHERE}'] if faults else [])


@pytest.mark.parametrize(
    ('text', 'faults'),
    [
        (CHAIR_WITH.format(BOTH), []),
        (f'def Xform "a" {{\n{BOTH} def Xform "b" {{\n {CHAIR_WITH.format("")}\n }}\n }}', []),
        (CHAIR_WITH.format(SCALED + ORDER.format('"xformOp:scale:unitsResolve"')), [LYING]),
        (CHAIR_WITH.format(SCALED + ORDER.format('"xformOp:rotateX:unitsResolve"')), [LARGE]),
        (
            CHAIR_WITH.format('double3 xformOp:scale = (0.5, 0.5, 2)\n' + ORDER.format('"xformOp:scale"')),
            [LARGE, LYING],
        ),
    ],
    ids=['there', 'above', 'scale only', 'turn only', 'another scale'],
)
def test_what_was_made_to_fit_is_none(write: Write, text: str, faults: list[str]) -> None:
    write('chair.usda', CHAIR, CENTIMETRES, 'Chair')
    assert said(write('room.usda', world(text))) == ([f'{" and ".join(faults)}: {WHERE}'] if faults else [])


def test_a_scale_of_the_file_itself_does_not_make_it_fit(write: Write) -> None:
    write('chair.usda', CHAIR.replace('{', '{' + BOTH, 1), CENTIMETRES, 'Chair')
    file = write('room.usda', world('def "chair" (prepend references = @./chair.usda@) {}'))
    assert said(file) == [f'{LARGE} and {LYING}: {WHERE}']


def test_nested_files_are_compared_with_what_refers_to_them(write: Write) -> None:
    """A metre stage, with a set of furniture in centimetres that fits, with a screw in millimetres that does not."""
    write('screw.usda', CHAIR, 'metersPerUnit = 0.001\n upAxis = "Y"', 'Chair')
    nested = CHAIR.replace('def Cube', 'def "screw" (prepend payload = @./screw.usda@) {}\n def Cube')
    write('chair.usda', nested, CENTIMETRES, 'Chair')
    file = write('room.usda', world(f'def "chair" (prepend references = @./chair.usda@) {{ {BOTH} }}'))
    assert said(file) == ['10 times too large (scale it by 0.1): @screw.usda@ at </World/chair/screw>']
    # at the same prim
    write('chair.usda', 'def "Chair" (prepend references = @./screw.usda@) {}', CENTIMETRES, 'Chair')
    assert said(file) == ['10 times too large (scale it by 0.1): @screw.usda@ at </World/chair>']


def test_a_variant_and_a_class_may_have_the_reference(write: Write) -> None:
    write('chair.usda', CHAIR, CENTIMETRES, 'Chair')
    variant = """def "chair" (variants = { string kind = "one" }
    prepend variantSets = "kind") { variantSet "kind" = {
        "one" (prepend references = @./chair.usda@) {
        }
    }
    }"""
    assert said(write('room.usda', world(variant))) == [f'{LARGE} and {LYING}: {WHERE}']
    base = 'class "Base" (prepend references = @./chair.usda@) {}\n'
    file = write('room.usda', base + world('def "chair" (prepend inherits = </Base>) {}'))
    assert said(file) == [f'{LARGE} and {LYING}: {WHERE}']


def test_sublayers_are_compared_with_the_layer_that_has_them(write: Write) -> None:
    write('chair.usda', world('').replace('"own"', '"chair"'), CENTIMETRES)
    write('looks.usda', 'over "World" {\n def Material "red" {}\n}', CENTIMETRES)
    sublayers = 'subLayers = [@./chair.usda@, @./looks.usda@]'
    file = write('room.usda', world(''), header=sublayers)
    assert said(file) == [f'{LARGE} and {LYING}: @chair.usda@ at </World>']
    write('set.usda', world(''), header=sublayers)
    file = write('house.usda', world('def "set" (prepend references = @./set.usda@) {}'))
    assert said(file) == [f'{LARGE} and {LYING}: @chair.usda@ at </World/set>']


def test_what_has_no_lengths_may_be_in_any_unit(write: Write) -> None:
    write('looks.usda', 'def Scope "Looks" {\n def Material "red" {}\n}', CENTIMETRES, 'Looks')
    assert said(write('room.usda', world('def "looks" (prepend references = @./looks.usda@) {}'))) == []


SLAB = """def Cube "slab" {
    double size = 1
    double3 xformOp:scale = (2, 3, 4)
    uniform token[] xformOpOrder = ["xformOp:scale"]
}"""


def sizes(model: mujoco.MjModel) -> list[float]:
    """Of the slab along the axes of the world [m]."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return (2 * np.abs(data.geom_xmat[0].reshape(3, 3)) @ model.geom_size[0]).tolist()


def test_a_stage_that_states_no_units_is_told_to_be_turned_and_small(write: Write) -> None:
    spec, warnings = usd.load_with_warnings(write('slab.usda', SLAB, '', ''))
    assert sizes(spec.compile()) == pytest.approx([0.02, 0.04, 0.03])
    assert warnings == [f'{usd.NO_UNITS}: /']
    assert 'centimetres' in usd.NO_UNITS and 'turned by 90 degrees about X' in usd.NO_UNITS


@pytest.mark.parametrize(
    ('units', 'options', 'expected'),
    [
        ('', {}, [2, 3, 4]),
        ('', {'scale': (0.5, 0.5, 0.5), 'raw_lengths': True}, [1, 1.5, 2]),
        ('upAxis = "Z"', {}, [0.02, 0.03, 0.04]),
        ('metersPerUnit = 1', {}, [2, 4, 3]),
        (CENTIMETRES, {}, [0.02, 0.04, 0.03]),
    ],
)
def test_defaults_can_be_ignored(write: Write, units: str, options: dict[str, object], expected: list[float]) -> None:
    file = write('slab.usda', SLAB, units, '')
    spec, warnings = usd.load_with_warnings(file, LoadOptions(ignore_usd_defaults=True, **options))  # pyright: ignore
    assert sizes(spec.compile()) == pytest.approx(expected) and not warnings


def test_raw_lengths_of_a_stage_without_units_are_those_of_its_scale(write: Write) -> None:
    write('chair.usda', CHAIR, 'metersPerUnit = 0.01\n upAxis = "Z"', 'Chair')
    file = write('room.usda', world('def "chair" (prepend references = @./chair.usda@) {}'), '')
    options = LoadOptions(scale=(0.01, 0.01, 0.01), raw_lengths=True, ignore_usd_defaults=True)
    assert usd.load_with_warnings(file, options)[1] == []
