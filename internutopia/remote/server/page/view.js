// View of a status on the page. All that comes from the server goes through `textContent`: it is text, never HTML.

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const SMALL_NUMBER = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const HISTORY = 120; // points of a sparkline, one per status
const SVG = 'http://www.w3.org/2000/svg';

export const byId = (id) => document.getElementById(id);

/** Put values into the elements that are marked with `data-field`; what has not changed is left alone. */
export function fill(element, values) {
  for (const [field, value] of Object.entries(values)) {
    const target = element.querySelector(`[data-field="${field}"]`);
    const text = String(value);
    if (target.textContent !== text) target.textContent = text;
  }
}

export function number(value) {
  if (!Number.isFinite(value)) return '–'; // JSON has null where there is no number
  return Math.abs(value) < 100 && !Number.isInteger(value) ? SMALL_NUMBER.format(value) : NUMBER.format(value);
}

export function duration(seconds) {
  const s = Math.floor(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;

/** Steps per second over the last statuses, by session; those that are gone are forgotten. */
export class History {
  #values = new Map();

  add(rates) {
    for (const key of this.#values.keys()) if (!(key in rates)) this.#values.delete(key);
    for (const [key, rate] of Object.entries(rates)) {
      this.#values.set(key, [...(this.#values.get(key) ?? []), rate].slice(-HISTORY));
    }
  }

  of(key) {
    return this.#values.get(key) ?? [];
  }
}

/** Draw values as a line with an area below, over the whole width, from 0 (or the least) to the largest. */
export function drawSparkline(svg, values) {
  if (!svg.firstChild) {
    svg.setAttribute('viewBox', `0 0 ${HISTORY - 1} 100`);
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.append(document.createElementNS(SVG, 'polygon'), document.createElementNS(SVG, 'polyline'));
  }
  const points = values.length === 1 ? [values[0], values[0]] : values;
  const low = Math.min(...points, 0);
  const range = Math.max(...points, low + 1e-9) - low;
  const x = (index) => ((index * (HISTORY - 1)) / (points.length - 1)).toFixed(2);
  const line = points.map((value, index) => `${x(index)},${(98 - 94 * ((value - low) / range)).toFixed(1)}`);
  svg.querySelector('polyline').setAttribute('points', line.join(' '));
  svg
    .querySelector('polygon')
    .setAttribute('points', line.length ? ['0,100', ...line, `${HISTORY - 1},100`].join(' ') : '');
}

export function showTotals(status, history) {
  const { sessions } = status;
  const sum = (value) => sessions.reduce((total, session) => total + value(session), 0);
  byId('server').hidden = false;
  fill(byId('server'), { version: status.server.version, uptime: duration(status.server.uptime) });
  fill(byId('totals'), {
    sessions: number(sessions.length),
    envs: number(sum((session) => session.num_envs)),
    rate: number(sum((session) => session.steps_per_second)),
    steps: number(sum((session) => session.steps)),
    ended: number(sum((session) => session.queue.ended)),
  });
  drawSparkline(byId('totals').querySelector('[data-sparkline]'), history);
}

/** One entry per session, in the order of the status; entries stay, so that the keyboard's focus does, too. */
export function showList(sessions, history, selected, select) {
  const list = byId('list');
  const entries = new Map([...list.children].map((entry) => [entry.dataset.id, entry]));
  const wanted = sessions.map((session) => {
    const entry = entries.get(session.session_id) ?? makeEntry(session.session_id, select);
    fill(entry, {
      user: userName(session),
      state: session.state,
      envs: count(session.num_envs, 'env'),
      rate: number(session.steps_per_second),
      short: session.session_id.slice(0, 8),
      queue: `${count(session.queue.ended, 'episode')} ended`,
    });
    entry.querySelector('.state').dataset.state = session.state;
    entry.firstElementChild.setAttribute('aria-pressed', session.session_id === selected);
    drawSparkline(entry.querySelector('[data-sparkline]'), history.of(session.session_id));
    return entry;
  });
  for (const entry of entries.values()) if (!wanted.includes(entry)) entry.remove();
  wanted.forEach((entry, index) => {
    if (list.children[index] !== entry) list.insertBefore(entry, list.children[index] ?? null);
  });
}

function makeEntry(id, select) {
  const entry = byId('session').content.firstElementChild.cloneNode(true);
  entry.dataset.id = id;
  entry.firstElementChild.addEventListener('click', () => select(id));
  return entry;
}

export function showDetail(session, values) {
  const detail = byId('detail');
  fill(detail, {
    user: userName(session),
    id: session.session_id,
    state: session.state,
    envs: number(session.num_envs),
    rate: number(session.steps_per_second),
    steps: number(session.steps),
    age: duration(session.age),
    idle: `${duration(session.idle)} ago`,
    queue: describeQueue(session.queue),
  });
  detail.querySelector('.state').dataset.state = session.state;
  drawSparkline(detail.querySelector('[data-sparkline]'), values);
  showReturns(session.returns.filter(Number.isFinite)); // null where physics failed
  const { left, started, ended } = session.queue;
  byId('queue').hidden = left === null;
  byId('queue').value = left === null ? 0 : ended / Math.max(started + left, 1);
  showResults(session.results);
}

/** Without a tokens file nobody has a name. */
const userName = (session) => session.user || 'session';

function describeQueue({ left, started, ended }) {
  const parts = [`${number(started - ended)} running`, `${number(ended)} ended`];
  return [...parts, left === null ? 'no end' : `${number(left)} left`].join(' · ');
}

function showReturns(returns) {
  byId('returns-title').hidden = returns.length === 0;
  byId('returns').toggleAttribute('hidden', returns.length === 0); // SVG has no property for it
  drawSparkline(byId('returns'), returns);
  const mean = returns.reduce((total, value) => total + value, 0) / returns.length;
  byId('returns-title').textContent = `Returns of the last ${count(returns.length, 'episode')}, ${number(mean)} on average`;
}

function showResults(results) {
  byId('no-results').hidden = results.length > 0;
  byId('results').hidden = results.length === 0;
  const rows = results.map((result) => {
    const row = byId('result').content.firstElementChild.cloneNode(true);
    fill(row, {
      episode: number(result.episode),
      return: number(result.return),
      length: number(result.length),
      end: result.error ? `failed: ${result.error}` : result.terminated ? 'terminated' : 'truncated',
    });
    row.classList.toggle('failed', Boolean(result.error));
    return row;
  });
  byId('results').querySelector('tbody').replaceChildren(...rows);
}
