"""Start the workshop quickly: `start.py workshop.py stdio`, for as many servers as the tests want.

Loading the SDK takes a second of computing. `zygote.py` has loaded it already: this hands it the three standard
streams, and ends as the server ends. Without a zygote the server is started the usual way. It needs only the standard
library.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path


def main():
    words = [str(Path(__file__).with_name(sys.argv[1])), *sys.argv[2:]]
    zygote = socket.socket(socket.AF_UNIX)
    try:
        zygote.connect(f"/tmp/agentkit-zygote-{os.getppid()}")
    except OSError:
        os.execv(sys.executable, [sys.executable, *words])
    request = json.dumps({"words": words, "env": dict(os.environ), "cwd": str(Path.cwd())}).encode()
    socket.send_fds(zygote, [len(request).to_bytes(4, "big") + request], [0, 1, 2])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(1))  # the connection breaks, and with it the server
    for stream in (0, 1, 2):
        os.close(stream)
    status = zygote.recv(4)
    os._exit(int.from_bytes(status, "big") if status else 1)


main()
