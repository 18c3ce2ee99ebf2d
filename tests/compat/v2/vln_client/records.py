"""Records that an evaluation leaves on disk: a file for each episode, so that a run goes on where one was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MEANS = ('TL', 'NE', 'SR', 'OS', 'SPL', 'NDTW')


class Records:
    """Results in a folder: `episodes/<path_key>.json`, `progress.json`, and at the end `result.json`."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / 'episodes').mkdir(parents=True, exist_ok=True)

    def done(self) -> set[str]:
        """Path keys of the episodes that have a result."""
        return {path.stem for path in (self.folder / 'episodes').glob('*.json')}

    def add(self, path_key: str, figures: dict[str, Any]) -> None:
        """Write the result of an episode."""
        (self.folder / 'episodes' / f'{path_key}.json').write_text(json.dumps(figures))
        (self.folder / 'progress.json').write_text(json.dumps({'finished': sorted(self.done())}))

    def merge(self) -> dict[str, Any]:
        """Means over all episodes, and how many failed for each reason."""
        paths = sorted((self.folder / 'episodes').glob('*.json'))
        figures = [json.loads(path.read_text()) for path in paths]
        reasons = [each['fail_reason'] for each in figures]
        result = {
            'count': len(figures),
            **{name: sum(each[name] for each in figures) / len(figures) for name in MEANS},
            'fail_reasons': {reason: reasons.count(reason) for reason in sorted(set(reasons) - {''})},
        }
        (self.folder / 'result.json').write_text(json.dumps(result))
        return result
