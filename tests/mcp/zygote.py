"""A process that has loaded the MCP SDK and becomes a workshop server whenever `start.py` asks: `zygote.py SOCKET`.

Each server is a process of its own. It ends when its own work ends, or when whoever asked for it is gone. The zygote
ends when its standard input is closed.
"""

import json
import os
import runpy
import select
import signal
import socket
import sys

import mcp.server.mcpserver
import mcp.server.stdio  # noqa: F401
import uvicorn  # noqa: F401


def serve(words, env, cwd, streams):
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = words
    code = 0
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        code = 1
    finally:
        sys.stdout.flush()
        os._exit(code)


def watch(caller):
    """Start one server for a caller and wait for the end of either."""
    head, streams, _, _ = socket.recv_fds(caller, 1 << 16, 3)
    size = int.from_bytes(head[:4], "big") + 4
    while len(head) < size:
        head += caller.recv(1 << 16)
    request = json.loads(head[4:])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    server = os.fork()
    if server == 0:
        caller.close()
        serve(request["words"], request["env"], request["cwd"], streams)
    for stream in streams:
        os.close(stream)
    while True:
        done, status = os.waitpid(server, os.WNOHANG)
        if done:
            caller.sendall(max(os.waitstatus_to_exitcode(status), 0).to_bytes(4, "big"))
            os._exit(0)
        readable, _, _ = select.select([caller], [], [], 0.01)
        if readable:  # the caller says nothing, so this is its end
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)
            os._exit(0)


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in readable:
            return
        caller, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            watch(caller)
        caller.close()


main()
