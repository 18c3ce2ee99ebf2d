"""The page at the server's root, in a real browser (Debian's package `chromium`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium
from playwright.sync_api import Browser, Page, expect

from internutopia.cli.demo import demo_file
from internutopia.cli.run_file import read_run_file
from internutopia.config import Config
from internutopia.remote import create_vectorized_env
from internutopia.remote.server.users import add_token
from internutopia.rendering.gl import NoOpenGLError, open_context

pytestmark = pytest.mark.slow

SERVED = demo_file('served')
_PATIENCE = 300_000  # ms, within which the page shows what it is to show

expect.set_options(timeout=_PATIENCE)


@pytest.fixture(scope='module')
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that must stay without errors and fetch nothing from elsewhere."""
    with closing(browser.new_context()) as context:
        page = context.new_page()
        faults: list[str] = []
        origins: set[str] = set()
        page.on('pageerror', lambda error: faults.append(str(error)))
        page.on('console', lambda message: faults.append(message.text) if message.type == 'error' else None)
        page.on('request', lambda request: origins.add('/'.join(request.url.split('/')[:3])))
        yield page
        # a server that is away, or refuses a token, is logged by the browser itself
        assert [fault for fault in faults if not fault.startswith('Failed to load resource')] == []
        assert len({origin for origin in origins if not origin.startswith('blob:')}) == 1


@pytest.fixture(scope='module')
def config() -> Config:
    return read_run_file(SERVED).config


@pytest.fixture
def envs() -> Iterator[Callable[..., Any]]:
    """`envs(url, num_envs, ...)` opens a session, which ends with the test."""
    opened: list[Any] = []

    def open_session(url: str, num_envs: int = 2, **options: Any) -> Any:
        opened.append(create_vectorized_env(num_envs=num_envs, step_size=10, base_url=url, **options))
        opened[-1].reset()
        return opened[-1]

    yield open_session
    for env in opened:
        env.close()


def can_render() -> bool:
    try:
        open_context().free()
    except NoOpenGLError:
        return False
    return True


def total(page: Page, field: str) -> int:
    text = page.locator(f'#totals [data-field="{field}"]').text_content() or ''
    return int(text.replace(',', ''))


def test_a_session_appears_moves_and_goes(page: Page, serve: Any, config: Config, envs: Any):
    url = serve(config, user_sessions=7).url
    page.goto(url)
    expect(page.locator('#connection')).to_have_text('Live')
    expect(page.locator('#nothing')).to_be_visible()
    expect(page.locator('#snippet')).to_contain_text(url)

    env = envs(url, 2)
    detail = page.locator('#detail')
    expect(detail.locator('[data-field="id"]')).to_have_text(env.session_id)
    expect(detail.locator('[data-field="envs"]')).to_have_text('2')
    expect(page.locator('#no-results')).to_be_visible()
    for _ in range(30):  # episodes end after 300 steps at the latest
        env.step([1, 1])
    expect(page.locator('#results tbody tr')).to_have_count(2)
    steps = page.locator('#totals [data-field="steps"]')
    expect(steps).not_to_have_text('0')
    assert 0 < total(page, 'steps') <= 600 and total(page, 'ended') == 2
    numbers = page.locator('#results tbody tr').all_text_contents()
    assert all('terminated' in row or 'truncated' in row for row in numbers)
    expect(detail.locator('[data-field="queue"]')).to_have_text('0 running · 2 ended · no end')

    second = envs(url, 3)
    expect(page.locator('#list li')).to_have_count(2)
    page.locator('#list button', has_text='3 envs').click()
    expect(detail.locator('[data-field="id"]')).to_have_text(second.session_id)
    page.reload()  # the same one is shown again
    expect(detail.locator('[data-field="id"]')).to_have_text(second.session_id)
    second.close()
    expect(page.locator('#list li')).to_have_count(1)
    env.close()
    expect(page.locator('#nothing')).to_be_visible()


def test_the_picture_follows_the_envs(page: Page, serve: Any, config: Config, envs: Any):
    if not can_render():
        pytest.skip('nothing can be drawn here')
    url = serve(config, user_sessions=7).url
    env = envs(url, 1)
    page.goto(url)
    picture = page.locator('#picture')
    expect(picture).to_be_visible()
    page.wait_for_function(
        "document.querySelector('#picture').naturalWidth > 300"
    )  # the page takes a new one now and then
    first = picture.get_attribute('src')
    assert first is not None
    for _ in range(3):
        env.step([1])
    expect(picture).not_to_have_attribute('src', first)


def test_a_click_shows_an_env_and_its_cameras_are_there(page: Page, serve: Any, config: Config, envs: Any):
    if not can_render():
        pytest.skip('nothing can be drawn here')
    url = serve(config, user_sessions=7, picture_interval=0.1).url
    envs(url, 4)
    page.goto(url)
    picture, env, camera = (page.locator(f'#{name}') for name in ('picture', 'env', 'camera'))
    expect(picture).to_be_visible()
    expect(camera).to_be_disabled()
    box = picture.bounding_box()
    assert box is not None
    all_envs = picture.get_attribute('src')
    # env 0 stands in the corner that is nearest to the camera, env 3 opposite
    picture.click(position={'x': 0.5 * box['width'], 'y': 0.85 * box['height']})
    expect(env).to_have_value('0')
    expect(picture).to_have_attribute('alt', 'Env 0')
    expect(camera).to_be_enabled()
    followed = picture.get_attribute('src')
    assert followed != all_envs
    names = camera.locator('option').all_text_contents()
    assert names[:2] == ['Follow the robot', 'From above'] and any(name.startswith('robots/jetbot/') for name in names)
    camera.select_option(names[-1])
    expect(picture).not_to_have_attribute('src', followed or '')
    picture.click()
    expect(env).to_have_value('')
    picture.click(position={'x': 0.5 * box['width'], 'y': 0.2 * box['height']})
    expect(env).to_have_value('3')


def test_charts_fill_their_width_from_the_start(page: Page, serve: Any, config: Config, envs: Any):
    short = config.task_configs[0].model_copy(update={'max_episode_steps': 10})
    url = serve(config.model_copy(update={'task_configs': [short]}), user_sessions=7).url
    env = envs(url, 2)
    page.goto(url)
    expect(page.locator('#returns')).to_be_hidden()
    env.step([1, 1])
    expect(page.locator('#returns-title')).to_contain_text('Returns of the last 2 episodes, ')
    expect(page.locator('#returns')).to_be_visible()
    for chart in ('#returns', '#detail [aria-label]'):
        points = page.locator(f'{chart} polyline').get_attribute('points') or ''
        across = [float(point.split(',')[0]) for point in points.split()]
        assert across[0] == 0 and across[-1] == 119, chart


def test_newest_results_come_first(page: Page, serve: Any, config: Config, envs: Any):
    short = config.task_configs[0].model_copy(update={'max_episode_steps': 10})
    url = serve(config.model_copy(update={'task_configs': [short]}), user_sessions=7).url
    env = envs(url, 1)
    for _ in range(13):
        env.step([1])
        env.reset_specific_envs([0])
    page.goto(url)
    rows = page.locator('#results tbody tr')
    expect(rows).to_have_count(10)
    episodes = [int(text) for text in rows.locator('[data-field="episode"]').all_text_contents()]
    assert episodes == sorted(episodes, reverse=True) and episodes[0] == 12


def test_a_queue_that_ends_has_a_bar(page: Page, serve: Any, config: Config, envs: Any):
    short = config.task_configs[0].model_copy(update={'max_episode_steps': 10})
    url = serve(config.model_copy(update={'task_configs': [short] * 4, 'episode_order': 'once'}), user_sessions=7).url
    env = envs(url, 2)
    page.goto(url)
    queue = page.locator('#detail [data-field="queue"]')
    expect(queue).to_have_text('2 running · 0 ended · 2 left')
    env.step([1, 1])
    env.reset_specific_envs([0])
    expect(queue).to_have_text('1 running · 2 ended · 1 left')
    assert page.locator('#queue').evaluate('bar => bar.value') == pytest.approx(0.5)


def test_who_has_no_token_sees_nothing(page: Page, serve: Any, config: Config, envs: Any, tmp_path: Path):
    tokens = tmp_path / 'tokens.json'
    ada, eve = (add_token(tokens, name) for name in ('ada', 'eve'))
    url = serve(config, tokens=tokens).url
    env = envs(url, 1, user_token=ada)
    page.goto(url)
    expect(page.locator('#sign-in')).to_be_visible()
    expect(page.locator('#content')).to_be_hidden()
    page.get_by_label('Token').fill('not a token of anybody'.replace(' ', '-'))
    page.get_by_role('button', name='Show sessions').click()
    expect(page.locator('#sign-in-error')).to_have_text('Wrong token')

    page.get_by_label('Token').fill(eve)
    page.keyboard.press('Enter')
    expect(page.locator('#nothing')).to_be_visible()  # not those of ada
    assert env.session_id not in page.content()
    page.get_by_role('button', name='Forget token').click()
    expect(page.locator('#sign-in')).to_be_visible()

    page.get_by_label('Token').fill(f'  {ada} ')
    page.keyboard.press('Enter')
    expect(page.locator('#detail [data-field="user"]')).to_have_text('ada')
    page.reload()  # the tab remembers
    expect(page.locator('#detail [data-field="user"]')).to_have_text('ada')
    assert ada not in page.url and ada not in page.content()


@pytest.mark.nightly
def test_text_from_the_server_is_never_html(page: Page, serve: Any, config: Config):
    url = serve(config, user_sessions=7).url
    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    session = {
        **{'session_id': evil, 'user': evil, 'state': evil, 'num_envs': 1, 'steps': 1, 'steps_per_second': 1.0},
        **{'age': 1.0, 'idle': 1.0, 'queue': {'left': None, 'started': 1, 'ended': 1}},
        **{'returns': [1.0, None], 'cameras': [evil]},
        'results': [{'episode': 0, 'return': 1.0, 'length': 1, 'terminated': 0, 'truncated': 1, 'error': evil}],
    }
    status = {'server': {'version': evil, 'uptime': 1.0, 'limits': {}}, 'sessions': [session], 'totals': {}}
    page.route('**/api/v1/status', lambda route: route.fulfill(json=status))
    page.goto(url)
    expect(page.locator('#detail [data-field="user"]')).to_have_text(evil)
    expect(page.locator('#results tbody')).to_contain_text(evil)
    assert page.title() == 'InternUtopia'
    assert page.locator('img[src="x"], body script').count() == 0


@pytest.mark.nightly
def test_a_server_that_goes_away_and_comes_back(page: Page, serve_process: Any, config: Config):
    server = serve_process(config)
    port = server.url.rpartition(':')[2]
    page.goto(server.url)
    expect(page.locator('#connection')).to_have_text('Live')
    server.stop()
    expect(page.locator('#connection')).to_have_text(re.compile('does not answer, next try in'))
    expect(page.get_by_role('button', name='Try now')).to_be_visible()
    serve_process(config, '--port', port)
    expect(page.locator('#connection')).to_have_text('Live')


@pytest.mark.nightly
def test_a_narrow_dark_screen(browser: Browser, serve: Any, config: Config, envs: Any):
    url = serve(config, user_sessions=7).url
    envs(url, 1)
    with closing(browser.new_context(viewport={'width': 360, 'height': 740}, color_scheme='dark')) as context:
        page = context.new_page()
        page.goto(url)
        expect(page.locator('#detail')).to_be_visible()
        assert page.evaluate('document.documentElement.scrollWidth') <= 360
        colour = page.evaluate('getComputedStyle(document.body).backgroundColor')
        assert max(int(part) for part in re.findall(r'\d+', colour)[:3]) < 64
