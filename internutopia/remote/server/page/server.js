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

/** Picture of the grid of one session, as a Blob. */
export async function loadPicture(session, width, height) {
  const id = encodeURIComponent(session);
  const response = await get(`api/v1/session/${id}/picture?width=${width}&height=${height}`);
  return response.blob();
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
