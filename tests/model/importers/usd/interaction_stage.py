"""A stage of the form that GRScenes' interaction stages have, in centimetres, for tests.

A microwave (turned by 90 degrees about z, at (50, 100, 80)) with a hinged door, a chest with a drawer, a table with a
cup, a wall that the drawer's back sticks into. The joints hold moving groups to static ones; collision groups let the
moving groups of a model pass through each other, through its static group, and through `Base` but for the ground.
"""

from __future__ import annotations

from itertools import product

SCENE = '/Root/Meshes'
MICROWAVE = f'{SCENE}/Animation/microwave/model_7f_0/Instance'
CHEST = f'{SCENE}/Furniture/chest/model_c4_0/Instance'
CUP = f'{SCENE}/Furniture/cup/model_a1_0/Instance'

_FACES = (0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)
_TURNED = '(0.7071067811865476, 0, 0, 0.7071067811865476)'
# of the microwave: left, right, below, above, behind; its opening looks along -x
_CASE = (
    ((0, -15, 0), (20, 1, 12)),
    ((0, 15, 0), (20, 1, 12)),
    ((0, 0, -12), (20, 15, 1)),
    ((0, 0, 12), (20, 15, 1)),
    ((19, 0, 0), (1, 15, 12)),
)


def interaction_stage(
    door_drive: str = '', door_inside: str = '', groups: bool = True, table: bool = True, joints: str = ''
) -> str:
    """The text of the stage. `door_drive`: attributes of the door's drive; `door_inside`: more of the door's prim."""
    drive = 'prepend apiSchemas = ["PhysicsDriveAPI:angular"]' if door_drive else ''
    legs = _model('table', 'model_t0_0', _mesh('top', (0, 0, 35), (40, 40, 35)), at=(200, 0, 0)) if table else ''
    text = f"""#usda 1.0
(
    defaultPrim = "Root"
    metersPerUnit = 0.01
    upAxis = "Z"
)
def Xform "Root" {{
def PhysicsScene "physicsScene" {{}}
def Scope "Meshes" {{
    def Scope "Base" (prepend apiSchemas = ["CollectionAPI:solid"]) {{
        rel collection:solid:includes = [<{SCENE}/Base/wall>]
        def Scope "ground" {{ {_model('', 'model_g0_0', _mesh('mesh', (0, 0, -5), (400, 400, 5)))} }}
        def Scope "wall" {{ {_model('', 'model_w0_0', _mesh('mesh', (-155, 0, 100), (5, 100, 100)))} }}
        {_group('Collision_Group_base', f'{SCENE}/Base.collection:solid') if groups else ''}
    }}
    def Scope "Animation" {{ def Scope "microwave" {{
        def Xform "model_7f_0" {{ def Xform "Instance" {{
            quatd xformOp:orient = {_TURNED}
            double3 xformOp:translate = (50, 100, 80)
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]
            def Xform "Group_Static" {{ {''.join(_mesh(f'side{i}', *side) for i, side in enumerate(_CASE))} }}
            def Xform "Group_00" ({_RIGID}) {{
                {_POSE.format('(-20, -13, 0)')}
                point3f physics:centerOfMass = (0, 14, 0)
                float physics:mass = 1.5
                {door_inside}
                {_mesh('panel', (0, 13, 0), (1, 15, 12), 'convexDecomposition')}
            }}
            def PhysicsRevoluteJoint "joint_door" ({drive}) {{
                rel physics:body0 = <{MICROWAVE}/Group_Static>
                rel physics:body1 = <{MICROWAVE}/Group_00>
                point3f physics:localPos0 = (-20, 15, 0)
                point3f physics:localPos1 = (0, 28, 0)
                uniform token physics:axis = "Z"
                float physics:lowerLimit = -100
                float physics:upperLimit = 0
                {door_drive}
            }}
            {joints}
            {_groups(MICROWAVE) if groups else ''}
        }} }}
    }} }}
    def Scope "Furniture" {{
        def Scope "chest" {{ def Xform "model_c4_0" {{ def Xform "Instance" {{
            double3 xformOp:translate = (-125, 0, 40)
            uniform token[] xformOpOrder = ["xformOp:translate"]
            def Xform "Group_Static" {{ {_mesh('below', (0, 0, -20), (22, 22, 10))} }}
            def Xform "Group_00" ({_RIGID}) {{
                {_POSE.format('(0, 0, 0)')}
                {_mesh('box', (-5, 0, -8), (25, 20, 5), 'convexDecomposition')}
            }}
            def PhysicsPrismaticJoint "joint_drawer" {{
                rel physics:body0 = <{CHEST}/Group_Static>
                rel physics:body1 = <{CHEST}/Group_00>
                uniform token physics:axis = "X"
                float physics:lowerLimit = 0
                float physics:upperLimit = 30
            }}
            {_groups(CHEST) if groups else ''}
        }} }} }}
        {legs}
        def Scope "cup" {{ def Xform "model_a1_0" {{ def Xform "Instance" ({_RIGID}) {{
            {_POSE.format('(200, 0, 74)')}
            {_mesh('mesh', (0, 0, 0), (5, 5, 4), 'convexDecomposition')}
        }} }} }}
    }}
}}
}}
"""
    return text.replace(' }', '\n}')  # USD wants a line of its own for the end of a prim with children


_RIGID = 'prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]'
_POSE = """quatd xformOp:orient = (1, 0, 0, 0)
            double3 xformOp:scale = (1, 1, 1)
            double3 xformOp:translate = {}
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient", "xformOp:scale"]"""


def _mesh(name: str, centre: tuple[float, ...], half: tuple[float, ...], approximation: str = 'none') -> str:
    """A box as a mesh that collides."""
    points = [
        tuple(c + s * h for c, s, h in zip(centre, sign, half, strict=True)) for sign in product((-1, 1), repeat=3)
    ]
    return f"""
        def Mesh "{name}" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]) {{
            int[] faceVertexCounts = {[4] * 6}
            int[] faceVertexIndices = {[i for face in _FACES for i in face]}
            point3f[] points = {points}
            uniform token physics:approximation = "{approximation}"
            uniform token subdivisionScheme = "none"
        }}"""


def _model(category: str, name: str, inside: str, at: tuple[float, ...] = (0, 0, 0)) -> str:
    model = f"""def Xform "{name}" {{ def Xform "Instance" {{
            double3 xformOp:translate = {at}
            uniform token[] xformOpOrder = ["xformOp:translate"]
            {inside} }} }}"""
    return f'def Scope "{category}" {{ {model} }}' if category else model


def _groups(model: str) -> str:
    """Collision groups of the moving and the static group of a model."""
    static, base = f'{model}/Collision_Group_Static', f'{SCENE}/Base/Collision_Group_base'
    return _group('Collision_Group_Static', f'{model}/Group_Static') + _group(
        'Collision_Group_00', f'{model}/Group_00', static, base
    )


def _group(name: str, member: str, *filtered: str) -> str:
    return f"""
            def PhysicsCollisionGroup "{name}" (prepend apiSchemas = ["CollectionAPI:colliders"]) {{
                rel collection:colliders:includes = [<{member}>]
                rel physics:filteredGroups = [{', '.join(f'<{path}>' for path in filtered)}]
            }}"""
