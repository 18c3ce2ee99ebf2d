"""Labels of prims, of both forms, in the compiled scene: which things there are, and which geoms are theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from internutopia.model.importers.usd import load_with_warnings
from internutopia.model.scene_cache import SceneCache
from internutopia.model.semantics import SceneLabels
from internutopia.model.spec import SceneSpec


def old(label: str, kind: str = 'class', instance: str = 'Semantics') -> str:
    return (
        f'string semantic:{instance}:params:semanticType = "{kind}"\n'
        f'string semantic:{instance}:params:semanticData = "{label}"\n'
    )


def new(*labels: str, taxonomy: str = 'class') -> str:
    return f'token[] semantics:labels:{taxonomy} = [{", ".join(map(repr, labels))}]\n'.replace("'", '"')


def xform(name: str, inside: str, apis: str = '') -> str:
    return f'def Xform "{name}" ({f"prepend apiSchemas = [{apis}]" if apis else ""}) {{\n{inside}\n}}\n'


def cube(name: str, inside: str = '') -> str:
    return f'def Cube "{name}" {{\ndouble size = 0.1\n{inside}\n}}\n'


@pytest.fixture
def labels(tmp_path: Path) -> Any:
    """The labels of a compiled scene with these prims, which is placed somewhere."""

    def compiled(*prims: str) -> SceneLabels:
        (tmp_path / 'scene.usda').write_text(
            f'#usda 1.0\n(defaultPrim = "World"\nmetersPerUnit = 1\nupAxis = "Z")\n{xform("World", "".join(prims))}'
        )
        spec = SceneSpec(asset=str(tmp_path / 'scene.usda'), position=(1.0, 2.0, 0.0))
        return SceneCache().get(spec, 0.005).labels

    return compiled


def found(labels: SceneLabels) -> dict[str, dict[str, str]]:
    return {thing.path.removeprefix('/scene/World/'): thing.semantics for thing in labels.things}


def test_both_forms_are_read(labels: Any) -> None:
    things = labels(
        cube('a', old('chair')),
        cube('b', old('table', instance='Semantics_x1y2') + old('oak', 'material', 'wood')),
        xform(
            'c',
            new('lamp', 'light') + new('Q1', taxonomy='qcode') + cube('bulb'),
            '"SemanticsLabelsAPI:class"',
        ),
        cube('plain'),
    )
    assert found(things) == {
        'a': {'class': 'chair'},
        'b': {'class': 'table', 'material': 'oak'},
        'c': {'class': 'lamp,light', 'qcode': 'Q1'},
    }
    assert things.geom_labels.tolist() == [0, 1, 2, -1]
    assert things.categories == {'chair', 'table', 'lamp', 'light'}
    assert things.semantic_ids.tolist() == [2, 3, 4]


def test_what_is_below_inherits(labels: Any) -> None:
    drawer = xform('drawer', old('drawer') + cube('front') + cube('knob', new('knob')))
    again = cube('side', old('cabinet')) + xform('inner', old('cabinet') + cube('back'))
    things = labels(xform('cabinet', old('cabinet') + cube('top') + again + drawer), cube('twin', old('cabinet')))
    assert found(things) == {
        'cabinet': {'class': 'cabinet'},
        'cabinet/drawer': {'class': 'cabinet,drawer'},
        'cabinet/drawer/knob': {'class': 'cabinet,drawer,knob'},
        'twin': {'class': 'cabinet'},
    }
    assert [thing.geoms.tolist() for thing in things.things] == [[0, 1, 2, 3, 4], [3, 4], [4], [5]]
    assert things.geom_labels.tolist() == [0, 0, 0, 1, 2, 3]  # each pixel shows the innermost thing
    assert things.semantic_ids.tolist() == [2, 3, 4, 2]  # two things, one kind


def test_a_model_of_grscenes_is_one_thing_of_its_category(labels: Any) -> None:
    def model(number: int, on_top: bool) -> str:
        label = old(f'chair/model_ab12_{number}')
        parts = xform('Group_00', label + cube('seat', label)) + xform('Group_01', label + cube('back', label))
        return xform(f'model_ab12_{number}', (label if on_top else '') + xform('Instance', parts))

    things = labels(xform('chair', model(0, True) + model(1, False)))
    assert found(things) == {'chair/model_ab12_0': {'class': 'chair'}, 'chair/model_ab12_1': {'class': 'chair'}}
    assert things.geom_labels.tolist() == [0, 0, 1, 1] and things.semantic_ids.tolist() == [2, 2]


def test_instances_have_labels_of_their_own(labels: Any) -> None:
    prototype = 'def "Chair" (instanceable = true\nreferences = </World/Prototype>) {\n' + old('red chair') + '}\n'
    things = labels(xform('Prototype', new('chair') + cube('seat')), prototype)
    assert found(things) == {'Prototype': {'class': 'chair'}, 'Chair': {'class': 'red chair,chair'}}


def test_labels_that_cannot_be_read_cost_themselves(labels: Any, tmp_path: Path) -> None:
    broken = cube('a', 'int semantics:labels:class = 3\n' + new('oak', taxonomy='material'))
    half = cube('b', 'string semantic:Semantics:params:semanticType = "class"\n')
    assert found(labels(broken, half)) == {'a': {'material': 'oak'}}
    spec, warnings = load_with_warnings(tmp_path / 'scene.usda')
    assert len(spec.texts) == 1 and warnings == [
        'semantics:labels:class is left out, labels must be strings: /World/a',
        'semantic:Semantics:params:semanticType is left out, labels must be strings: /World/b',
    ]
