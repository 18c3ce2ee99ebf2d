"""Policy server that takes its time and holds still: `python -m benchmarks.stub_policy SECONDS STEPS SIZE`.

It speaks the HTTP protocol of `internutopia evaluate policy`, and prints its port. A call takes that many seconds,
whatever the number of envs in it, as on a GPU that is not full; the answer is zeros, `SIZE` for each of `STEPS` steps.
"""

from __future__ import annotations

import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np

from internutopia.util.encoding import MSGPACK, decode, encode


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    seconds, steps, size = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about a request."""

    def do_POST(self) -> None:
        """Answer a request."""
        request = decode(self.rfile.read(int(self.headers['Content-Length'])), MSGPACK)
        time.sleep(self.seconds)
        actions = np.zeros((len(request['env_ids']), self.steps, self.size), np.float32)
        reply = encode({'actions': actions}, MSGPACK)
        self.send_response(200)
        self.send_header('Content-Length', str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)


if __name__ == '__main__':
    server = HTTPServer(('127.0.0.1', 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
