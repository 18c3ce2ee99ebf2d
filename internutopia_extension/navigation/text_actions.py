"""Text actions: what language models answer ("move forward 75 cm") as discrete actions or as a pixel.

Moves are separated by commas, full stops, `and` or `then`. Left out are "The next action is" with what comes before it,
what lies outside `<answer>`, quotes, asterisks and the marks of lists. A number without a unit is in centimetres or
degrees, a move without a number is one step or turn. Distances and angles are rounded to whole steps and turns, at
least one. Sources of these forms:
NaVILA (`evaluation/vlnce_baselines/navila_trainer.py`: "move forward 75 cm", "turn left 30 degree"), NaVid (numbers in
centimetres and degrees, without their units), StreamVLN and InternVLA-N1 (arrows; the latter's system 2 answers with x
and y of a pixel instead where it sees the way).
"""

from __future__ import annotations

import re

from internutopia.evaluation.policy import PolicyError
from internutopia_extension.controllers.discrete_controllers import FORWARD, LEFT, RIGHT, STOP

_ANSWER = re.compile(r'<answer>(.*?)</answer>', re.DOTALL)
_PREFIX = re.compile(r'\A.*\baction(?:s)?\s*(?:is|are|:)(?:\s+to\b)?', re.DOTALL)
_DECORATION = re.compile(r'[*"`\u201c\u201d]|^\s*(?:-|\d{1,3}[.)])\s+(?=[a-z])', re.MULTILINE)
_SIDE_LAST = re.compile(r'turn (\d{1,9}(?:\.\d{1,9})?) ?([a-z°]*) (?:to the )?(left|right)')
_BREAK = re.compile(r'[,;\n]|\.(?!\d)|\band\b|\bthen\b')
_MOVE = re.compile(
    r'(?:(?P<stop>stop)|(?:(?:move|go|walk) )?(?P<forward>forward)|(?:turn )?(?:to the )?(?P<side>left|right))'
    r'(?: by)?(?: ?(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>[a-z°]+)?)?'
)
_PIXEL = re.compile(r'(?:point|pixel|[\s:(\[])*(\d{1,9})[\s,]+(\d{1,9})[\s)\].]*')
_ARROWS = {'↑': FORWARD, '←': LEFT, '→': RIGHT}
_CENTIMETRES = {'': 1.0, 'cm': 1.0, 'centimeter': 1.0, 'centimetre': 1.0, 'm': 100.0, 'meter': 100.0, 'metre': 100.0}
_DEGREES = {'': 1.0, 'degree': 1.0, 'deg': 1.0, '°': 1.0}
_MOST, _LONGEST = 1000, 20_000  # actions and characters of a text
_FORMS = "such as 'move forward 75 cm', 'turn left 30 degrees', 'stop' or '↑↑←'"


def pixel_of(text: str) -> tuple[int, int] | None:
    """Return row and column of the pixel that a text names as x and y; None if it names none.

    PolicyError if the text is too long.
    """
    found = _PIXEL.fullmatch(_cleaned(text))
    return None if found is None else (int(found[2]), int(found[1]))


def actions_of(text: str, step: float, turn: float) -> list[int]:
    """Return the discrete actions of a text.

    Args:
        text: one or several moves.
        step: length of a step [m].
        turn: angle of a turn [degrees].

    Raises:
        PolicyError: a part of the text is no move, or it is too long.
    """
    actions: list[int] = []
    for part in filter(None, map(str.strip, _BREAK.split(_cleaned(text)))):
        arrows = part.replace(' ', '')
        if set(arrows) <= _ARROWS.keys():
            actions += [_ARROWS[arrow] for arrow in arrows]
        else:
            action, count = _move(part, text, 100.0 * step, turn)
            actions += [action] * min(count, _MOST + 1)
        if len(actions) > _MOST:
            raise PolicyError(f'expected {_MOST} actions at most, got more: {text!r:.200}')
    if not actions:
        raise PolicyError(f'expected moves, {_FORMS}, got {text!r:.200}')
    return actions


def _cleaned(text: str) -> str:
    """Return the answer in a text, in small letters. PolicyError if the text is too long."""
    if len(text) > _LONGEST:
        raise PolicyError(f'expected a text of {_LONGEST} characters at most, got {len(text)}')
    found = _ANSWER.search(text)
    answer = (found[1] if found else text).casefold().replace('_', ' ')
    answer = _DECORATION.sub('', answer.replace('!', '.'))
    return _SIDE_LAST.sub(r'turn \3 \1 \2', _PREFIX.sub('', answer, count=1)).strip()


def _move(part: str, text: str, step: float, turn: float) -> tuple[int, int]:
    """Return the action of a part of a text, and how often. PolicyError if it is no move."""
    found = _MOVE.fullmatch(part)
    number = None if found is None or found['number'] is None else float(found['number'])
    unit = '' if found is None or found['unit'] is None else found['unit']
    unit = unit.removesuffix('s')
    units = _CENTIMETRES if found and found['forward'] else _DEGREES
    if found is None or unit not in units or number == 0.0 or (found['stop'] and number is not None):
        raise PolicyError(f'{part!r:.200} is no move: expected moves, {_FORMS}, got {text!r:.200}')
    if found['stop']:
        return STOP, 1
    action = FORWARD if found['forward'] else LEFT if found['side'] == 'left' else RIGHT
    if number is None:
        return action, 1
    return action, max(1, round(number * units[unit] / (step if action == FORWARD else turn)))
