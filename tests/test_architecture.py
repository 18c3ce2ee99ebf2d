"""Architecture: modules import each other in one direction only; `.importlinter` says in which."""

from graphlib import TopologicalSorter

import grimp


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph('internutopia', 'internutopia_extension')  # in functions and for type checking, too
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 400
    TopologicalSorter(imports).prepare()  # CycleError with the circle
