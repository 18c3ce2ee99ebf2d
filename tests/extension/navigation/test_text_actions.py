"""Moves in words as discrete actions of 0.25 m and 15 degrees."""

import pytest

from internutopia.evaluation.policy import PolicyError
from internutopia_extension.navigation.text_actions import actions_of, pixel_of


@pytest.mark.parametrize(
    ('text', 'actions'),
    [
        ('The next action is move forward 75 cm.', [1, 1, 1]),
        ('The next action is turn left 45 degree.', [2, 2, 2]),
        ('The next action is stop.', [0]),
        ('turn right 30 degrees, move forward 50 cm and stop', [3, 3, 1, 1, 0]),
        ('I should not stop. Next action: go forward 1.25 m', [1] * 5),
        ('forward 60, left 20, right', [1, 1, 2, 3]),  # 2.4 steps, 1.3 turns
        ('move forward 5 cm', [1]),
        ('MOVE_FORWARD\nTURN_LEFT', [1, 2]),
        ('↑↑← →', [1, 1, 2, 3]),
        ('STOP', [0]),
        ('**Stop!**', [0]),
        ('"turn 30 degrees to the left"', [2, 2]),
        ('1. Forward\n2. Turn 15° right\n- stop', [1, 3, 0]),
        (
            '<think>stop?</think><answer>turn to the left by 90°, then walk forward 0.5 metres</answer>',
            [2] * 6 + [1, 1],
        ),
    ],
)
def test_moves_are_counted_in_steps_and_turns(text: str, actions: list[int]):
    assert actions_of(text, 0.25, 15.0) == actions


@pytest.mark.parametrize(
    ('text', 'part'),
    [
        ('go to the kitchen', 'go to the kitchen'),
        ('move forward 75 cm, dance', 'dance'),
        ('turn left -30 degrees', 'turn left -30 degrees'),
        ('move forward 30 degrees', 'move forward 30 degrees'),
        ('turn left 2 m', 'turn left 2 m'),
        ('move forward 0 cm', 'move forward 0 cm'),
        ('do not move forward', 'do not move forward'),
        ('↓', '↓'),
        ('move forward 1000000 cm', 'expected 1000 actions at most, got more'),
        ('move forward 100 m, ' * 3, 'expected 1000 actions at most, got more'),
        (f'move forward {"9" * 400} m', 'is no move'),
        ('↑' * 19_000, 'expected 1000 actions at most, got more'),
        ('↑' * 30_000, 'expected a text of 20000 characters at most, got 30000'),
        ('', 'expected moves, such as'),
        ('...', 'expected moves, such as'),
    ],
)
def test_what_is_no_move_says_which_part(text: str, part: str):
    with pytest.raises(PolicyError, match=part.replace('.', r'\.')):
        actions_of(text, 0.25, 15.0)


def test_a_pixel_is_named_by_x_and_y():
    assert pixel_of('320 240') == pixel_of('Point [320, 240]') == pixel_of('(320,240).') == (240, 320)
    assert [pixel_of(text) for text in ('move forward 75 cm', '320', '1 2 3', 'stop', '-3 5', f'1 {"4" * 5000}')] == [
        None
    ] * 6
