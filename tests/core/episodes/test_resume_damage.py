"""Results files that are damaged: no line counts that is not, to the last digit, what a run has written."""

import json
import random

import pytest

from internutopia.core.episodes.results import ResultsWriter


@pytest.fixture
def whole(make_run, run, tmp_path):
    """The lines of a run that is done."""
    run(make_run())
    return (tmp_path / 'r').read_bytes().splitlines(keepends=True)


def refusal(config, path, lines) -> str:
    """What is said of a file with these lines, which stays as it is."""
    path.write_bytes(b''.join(lines))
    with pytest.raises(ValueError) as raised:
        ResultsWriter(config)
    assert path.read_bytes() == b''.join(lines)
    return str(raised.value)


def changed(line: bytes, **fields) -> bytes:
    """A line with some fields replaced, or left out (`...`)."""
    values = {**json.loads(line), **fields}
    return json.dumps({name: value for name, value in values.items() if value is not ...}).encode() + b'\n'


@pytest.mark.parametrize(
    ('fields', 'expected'),
    [
        ({'episode_id': ...}, ["'episode_id'", 'required']),
        ({'episode_id': '1'}, ["'episode_id'", 'valid integer', '1']),
        ({'episode_id': True}, ["'episode_id'", 'valid integer', 'True']),
        ({'episode_id': -1}, ["'episode_id'", 'greater than or equal to 0', '-1']),
        ({'task_index': 1.0}, ["'task_index'", 'valid integer', '1.0']),
        ({'steps': ...}, ["'steps'", 'required']),
        ({'steps': -3}, ["'steps'", '-3']),
        ({'terminated': 1}, ["'terminated'", 'valid boolean']),
        ({'terminated': False}, ['has not ended', "'terminated'", "'truncated'"]),
        ({'metrics': [1]}, ["'metrics'", 'valid dictionary']),
        ({'error': 5}, ["'error'", 'valid string']),
        ({'stepz': 5}, ["'stepz'", 'Unexpected']),
        ({'config': ...}, ["'config'", 'required']),
        ({'crc': ...}, ["'crc'", 'required']),
        ({'steps': 7}, ["'crc' is", 'that of what the line says is']),
        ({'metrics': {'ToyMetric': 9}}, ["'crc' is"]),
        ({'config': '0' * 16}, ["'crc' is"]),
    ],
)
def test_a_line_that_says_something_else_is_refused(whole, make_run, tmp_path, fields, expected):
    lines = [*whole[:2], changed(whole[2], **fields), *whole[3:]]
    message = refusal(make_run(), tmp_path / 'r', lines)
    for part in (f'{tmp_path / "r"}, line 3: ', 'damaged', 'delete it', 'run again', *expected):
        assert part in message


@pytest.mark.parametrize(
    'line', [b'hello\n', b'\n', b'[1]\n', b'{}\n', b'\x00\xff\n', b'\0' * 200 + b'\n', b'[' * 10**5 + b'\n', b'NaN\n']
)
@pytest.mark.parametrize('place', [0, 3, 6])
def test_what_is_no_line_of_results_is_refused(whole, make_run, tmp_path, line, place):
    message = refusal(make_run(), tmp_path / 'r', [*whole[:place], line, *whole[place:]])
    assert f'line {place + 1}: ' in message and 'delete it' in message


def test_notes_behind_the_results_are_not_cut_off(whole, make_run, tmp_path):
    assert "line 7: expected a result, as a JSON object, got b'my notes'" in refusal(
        make_run(), tmp_path / 'r', [*whole, b'my notes']
    )


def test_no_digit_or_byte_can_change_unnoticed(whole, make_run, tmp_path):
    rng, path, config = random.Random(0), tmp_path / 'r', make_run()
    for _ in range(200):
        line = bytearray(whole[2])
        place = rng.randrange(len(line) - 1)
        line[place] ^= 1 << rng.randrange(8)
        path.write_bytes(b''.join([*whole[:2], bytes(line), *whole[3:]]))
        # which env an episode ran in is not covered: the same result has the same checksum everywhere
        if line[:place].endswith(b'"env_id": '):
            continue
        with pytest.raises(ValueError, match=r'/r, line \d: '):
            ResultsWriter(config)


def test_a_second_result_is_refused(whole, make_run, tmp_path):
    message = refusal(make_run(), tmp_path / 'r', [*whole, whole[1]])
    episode = json.loads(whole[1])['episode_id']
    assert f'line 7: a second result of episode {episode}, after line 2' in message


@pytest.mark.parametrize('begun', [0, 1, 14, 60])
def test_zeros_that_a_power_failure_left_are_cut_off(whole, make_run, run, tmp_path, begun, caplog):
    path = tmp_path / 'r'
    path.write_bytes(b''.join(whole[:-1]) + whole[-1][:begun] + b'\0' * 500)
    assert list(run(make_run())) == [json.loads(whole[-1])['episode_id']]
    assert path.read_bytes() == b''.join(whole) and 'incomplete' in caplog.text


def test_whole_lines_may_be_taken_out_and_reordered(whole, make_run, run, tmp_path):
    (tmp_path / 'r').write_bytes(whole[4] + whole[0])
    assert len(run(make_run())) == 4


def test_metrics_alone_are_no_results_to_resume_from(make_run, make_task, run, tmp_path):
    run(make_run(compat='2.x', resume=False))
    assert not (tmp_path / 'r.config.json').exists()
    before = (tmp_path / 'r').read_bytes()
    assert "line 1: 'episode_id': Field required" in refusal(make_run(compat='2.x'), tmp_path / 'r', [before])
