"""Print what each extra adds to an installation, in MB: the table of docs/install.md.

Counted are the files of the packages installed here that an extra needs and InternUtopia alone does not. An extra of
which something is missing has a + behind its size.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement


def main() -> None:
    """Print a line for InternUtopia alone, and one for each extra."""
    alone, _ = closure('internutopia', '')
    print(f'{"alone":14}{size(alone):8.0f} MB')
    for extra in sorted(metadata.metadata('internutopia3').get_all('Provides-Extra') or ()):
        needed, missing = closure('internutopia', extra)
        print(f'{extra:14}{size(needed - alone):8.0f} MB{"+ " + ", ".join(sorted(missing)) if missing else ""}')


def closure(name: str, extra: str) -> tuple[set[str], set[str]]:
    """Return the packages that one needs with an extra, itself included: those installed, and those missing."""
    found: set[str] = set()
    missing: set[str] = set()
    open_ends = [(name, extra)]
    seen = set(open_ends)
    while open_ends:
        package, extra = open_ends.pop()
        try:
            requirements = metadata.requires(package) or []
        except metadata.PackageNotFoundError:
            missing.add(package)
            continue
        found.add(package.lower().replace('_', '-'))
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({'extra': extra}):
                ends = {(requirement.name, each) for each in ('', *requirement.extras)} - seen
                open_ends += ends
                seen |= ends
    return found, missing


def size(packages: set[str]) -> float:
    """Return the size of the files of packages, in MB."""
    files = {Path(str(file.locate())) for package in packages for file in metadata.files(package) or ()}
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


if __name__ == '__main__':
    main()
