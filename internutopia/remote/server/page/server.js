// Talking with the server: an answer is a value, or a ServerError that says what happened.

const TIMEOUT = 10_000; // [ms] until a server that does not answer counts as away
const KEY = 'internutopia-token';

/** What the server refused, or that it did not answer (`status` 0). `retryAfter` is in seconds, 0 where it is not said. */
export class ServerError extends Error {
  constructor(status, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** The user's token, which lasts as long as the tab. */
export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** What the page shows; only of the sessions that the token's user may see. */
export async function loadStatus() {
  const response = await get('api/v1/status');
  return response.json();
}

/** Picture of the grid of one session, or ('0', '1', ...) of one of its envs through a camera, as a Blob. */
export async function loadPicture(session, width, height, env, camera) {
  const query = new URLSearchParams({ width, height, ...(env === '' ? {} : { env, camera }) });
  const response = await get(`api/v1/session/${encodeURIComponent(session)}/picture?${query}`);
  return response.blob();
}

/** Number of the env at a point of the picture of the grid, from (0, 0), left and top, to (1, 1). */
export async function loadEnvAt(session, width, height, x, y) {
  const query = new URLSearchParams({ width, height, x, y });
  const response = await get(`api/v1/session/${encodeURIComponent(session)}/env_at?${query}`);
  return (await response.json()).env;
}

async function get(path) {
  const headers = token.get() === null ? {} : { Authorization: `Bearer ${token.get()}` };
  let response;
  try {
    // the address is relative: the page also works under a path of a reverse proxy
    response = await fetch(path, { headers, cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT) });
  } catch {
    throw new ServerError(0, 'The server does not answer');
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null); // a proxy in between answers with something else
  const message = body?.error?.message ?? `The server answers with ${response.status}`;
  throw new ServerError(response.status, message, Number(response.headers.get('Retry-After')) || 0);
}
