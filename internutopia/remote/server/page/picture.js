// The picture of the selected session: all envs in their places, or one of them through a camera.

import { loadEnvAt, loadPicture, ServerError } from './server.js';
import { byId } from './view.js';

const PERIOD = 1000; // [ms] after which a picture that was refused is asked for again
const SETTLED = 3000; // [ms] after the last change nothing moves any more: the picture is the last one
const UNAVAILABLE = 15_000; // [ms] until a picture that could not be drawn is asked for again
const LARGEST = 1024; // [pixels] of a picture
const SHAPE = 10 / 16; // height of a picture by its width
const CAMERAS = [['follow', 'Follow the robot'], ['top', 'From above']]; // those that every env has

let session = null;
let progress = '';
let changed = 0;
let notBefore = 0;
let loading = false;
let clicks = 0;

/** Show what has changed in a session: one request at a time, and none while nothing moves. */
export function follow({ session_id, num_envs, cameras, steps, queue }) {
  const now = performance.now();
  if (session_id !== session) {
    session = session_id;
    progress = '';
    notBefore = 0;
    say('Waiting for a picture');
    byId('picture').hidden = true;
    fillOptions(byId('env'), [['', 'All envs'], ...Array.from({ length: num_envs }, (_, i) => [i, `Env ${i}`])]);
    byId('camera').replaceChildren();
  }
  if (byId('camera').length !== CAMERAS.length + cameras.length) {
    fillOptions(byId('camera'), [...CAMERAS, ...cameras.map((name) => [name, name])]);
  }
  byId('camera').disabled = byId('env').value === '';
  const reached = `${steps} ${queue.started}`;
  if (reached !== progress) changed = now;
  progress = reached;
  if (!loading && now >= notBefore && now - changed < SETTLED) load();
}

function size() {
  const width = Math.min(LARGEST, Math.round(byId('picture').parentElement.clientWidth * devicePixelRatio));
  return [width, Math.round(width * SHAPE)];
}

const shown = () => [session, byId('env').value, byId('camera').value].join(' ');

async function load() {
  const wanted = shown();
  const image = byId('picture');
  loading = true;
  try {
    const blob = await loadPicture(session, ...size(), byId('env').value, byId('camera').value);
    if (wanted !== shown()) return;
    const former = image.src;
    image.src = URL.createObjectURL(blob);
    if (former) URL.revokeObjectURL(former);
    image.hidden = false;
    image.alt = byId('env').value === '' ? 'The envs of this session on their grid' : `Env ${byId('env').value}`;
    say('');
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    if (wanted !== shown()) return;
    // a server that is away, or a session that has just been closed, is the business of the status
    const unavailable = error.status === 503;
    notBefore = changed = performance.now() + (unavailable ? UNAVAILABLE : PERIOD); // even if nothing moves
    if (unavailable || error.status === 422) say(`No picture: ${error.message}`);
  } finally {
    loading = false;
    if (wanted !== shown() && session !== null) load(); // chosen meanwhile
  }
}

/** Another env or camera was chosen. */
function choose() {
  byId('camera').disabled = byId('env').value === '';
  changed = performance.now();
  if (!loading) load();
}

/** Zoom to the env that was clicked, and back. */
async function click(event) {
  if (byId('env').value !== '') {
    byId('env').value = '';
    return choose();
  }
  const number = (clicks += 1);
  const box = byId('picture').getBoundingClientRect();
  const inside = (value, length) => Math.min(Math.max(value / length, 0), 1);
  const x = inside(event.clientX - box.left, box.width);
  const y = inside(event.clientY - box.top, box.height);
  const asked = session;
  try {
    const env = await loadEnvAt(session, ...size(), x, y);
    if (number !== clicks || asked !== session) return;
    byId('env').value = env;
    choose();
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
  }
}

function fillOptions(select, options) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

function say(text) {
  byId('picture-note').textContent = text;
}

byId('env').addEventListener('change', choose);
byId('camera').addEventListener('change', choose);
byId('picture').addEventListener('click', click);
