// The page: asks the server about once a second, shows what it says, and says so when it does not answer.

import { follow } from './picture.js';
import { loadStatus, ServerError, token } from './server.js';
import { byId, History, showDetail, showList, showTotals } from './view.js';

const PERIOD = 1000; // [ms] between two statuses
const LONGEST_WAIT = 10_000; // [ms] between two tries while the server is away

const history = new History();
let selected = location.hash.slice(1);
let status = null;
let failures = 0;
let timer = 0;

async function refresh() {
  clearTimeout(timer);
  if (document.hidden) return connection('paused', 'Paused'); // goes on with `visibilitychange`
  const asked = token.get();
  let answer;
  try {
    answer = await loadStatus();
  } catch (error) {
    return failed(error);
  }
  if (token.get() !== asked) return; // forgotten meanwhile
  status = answer;
  failures = 0;
  connection('live', 'Live');
  byId('sign-in').hidden = true;
  byId('content').hidden = false;
  byId('forget').hidden = token.get() === null;
  const rates = Object.fromEntries(status.sessions.map((each) => [each.session_id, each.steps_per_second]));
  history.add({ ...rates, all: Object.values(rates).reduce((total, rate) => total + rate, 0) });
  show();
  again(PERIOD);
}

function failed(error) {
  if (!(error instanceof ServerError)) throw error;
  if (error.status === 401) return askForToken(token.get() === null ? '' : 'Wrong token');
  const wait = Math.max(Math.min(PERIOD * 2 ** failures, LONGEST_WAIT), 1000 * error.retryAfter);
  failures += 1;
  connection('away', `${error.message}, next try in ${Math.round(wait / 1000)} s`);
  again(wait);
}

function again(wait) {
  clearTimeout(timer);
  timer = setTimeout(refresh, wait);
}

function connection(state, text) {
  document.body.dataset.state = state;
  byId('connection').dataset.state = state;
  if (byId('connection').textContent !== text) byId('connection').textContent = text;
  byId('retry').hidden = state !== 'away';
}

function askForToken(message) {
  token.forget();
  connection('locked', 'Locked');
  status = null;
  byId('server').hidden = byId('content').hidden = byId('forget').hidden = true;
  byId('sign-in').hidden = false;
  byId('sign-in-error').textContent = message;
  byId('token').setAttribute('aria-invalid', message !== '');
  byId('token').value = '';
  byId('token').focus();
}

function show() {
  const { sessions } = status;
  const session = sessions.find((each) => each.session_id === selected) ?? sessions[0];
  byId('nothing').hidden = sessions.length > 0;
  byId('sessions').hidden = sessions.length === 0;
  showTotals(status, history.of('all'));
  showList(sessions, history, session?.session_id, select);
  if (session) {
    showDetail(session, history.of(session.session_id));
    follow(session);
  }
}

function select(id) {
  selected = id;
  window.history.replaceState(null, '', `#${id}`); // the same session after a reload
  show();
}

byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  token.set(byId('token').value.trim());
  refresh();
});
byId('forget').addEventListener('click', () => {
  clearTimeout(timer);
  askForToken('');
});
byId('retry').addEventListener('click', () => {
  failures = 0;
  refresh();
});
document.addEventListener('visibilitychange', refresh);
byId('snippet').textContent = [
  'from internutopia.remote import create_vectorized_env',
  '',
  `env = create_vectorized_env(num_envs=4, step_size=10, base_url='${new URL('.', location).href.replace(/\/$/, '')}')`,
].join('\n');
refresh();
