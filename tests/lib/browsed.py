# SPDX-License-Identifier: GPL-2.0-or-later
"""A browser with a page that works for a while: what tests/apps/chromium and firefox share.

The page has a worker compute, draws on a canvas, looks at what it has drawn, and tells a server of each
step; the server knows what must come.  Renderers must be in a sandbox, as they are without podrun.
"""
import contextlib
import http.server
import os
import subprocess
import sys
import threading
import time

STEPS = 40 * int(os.environ["SCALE"])
ROUNDS = 20000

PAGE = """<!doctype html><title>0</title><canvas id=c width=200 height=100></canvas><script>
const pen = document.getElementById('c').getContext('2d', {willReadFrequently: true});
const worker = new Worker('/worker.js');
const ask = (i) => new Promise((done) => { worker.onmessage = (e) => done(e.data); worker.postMessage(i); });
function draw(i) {
  pen.fillStyle = `rgb(${i % 256}, ${(i * 7) % 256}, ${(i * 31) % 256})`;
  pen.fillRect(i % 190, 0, 10, 100);
  return Array.from(pen.getImageData(i % 190 + 5, 50, 1, 1).data).slice(0, 3).join(',');
}
(async () => {
  for (let i = 0; i < STEPS; i++) {
    const sum = await ask(i), drawn = draw(i);
    document.title = i;
    await fetch('/step', {method: 'POST', body: [i, sum, drawn].join(' ')});
    await new Promise((on) => setTimeout(on, 40));
  }
  await fetch('/done', {method: 'POST', body: ''});
})();
</script>""".replace("STEPS", str(STEPS))

WORKER = """onmessage = (e) => {
  let h = e.data;
  for (let k = 0; k < ROUNDS; k++) h = Math.imul(h ^ k, 16777619) >>> 0;
  postMessage(h);
};""".replace("ROUNDS", str(ROUNDS))


def expected(i):
    h = i
    for k in range(ROUNDS):
        h = (h ^ k) * 16777619 & 0xffffffff
    return "%d %d %d,%d,%d" % (i, h, i % 256, i * 7 % 256, i * 31 % 256)


class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", int(os.environ["PORT"])), Handler)
        self.steps, self.wrong, self.done = 0, [], threading.Event()
        self.url = "http://127.0.0.1:%d/" % self.server_address[1]

    def take(self, body):
        if body != expected(self.steps):
            self.wrong.append(body)
        self.steps += 1

    def handle_error(self, request, client_address):
        # A browser that ends resets connections it has made in advance and never used.
        if not (self.done.is_set() and isinstance(sys.exc_info()[1], ConnectionResetError)):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, kind="text/html"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        self.answer(WORKER, "text/javascript") if self.path == "/worker.js" else self.answer(PAGE)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/step":
            self.server.take(body)
        self.answer("")
        if self.path == "/done":
            self.server.done.set()

    def log_message(self, *args):
        pass


def confinement(pid):
    """Its user namespace, and how many seccomp filters it has."""
    with open("/proc/%s/status" % pid) as f:
        filters = [int(line.split()[1]) for line in f if line.startswith("Seccomp_filters:")]
    return os.readlink("/proc/%s/ns/user" % pid), filters[0]


def descendants(pid):
    """How all that descends from a process is confined."""
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError): # has ended
            with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                for child in map(int, f.read().split()):
                    found += [confinement(child)] + descendants(child)
    return found


def in_a_sandbox(browser):
    """Where there are namespaces the browser's have one of their own; where there are none, filters alone."""
    user, filters = confinement(os.getpid())
    return any(u != user or f > filters for u, f in descendants(browser))


def display():
    r, w = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(w), "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-noreset", "-ac"],
                              pass_fds=[w], stderr=subprocess.DEVNULL)
    os.close(w)
    with os.fdopen(r) as f:
        os.environ["DISPLAY"] = ":" + f.readline().strip()
    return server


def browse(command):
    """command(URL): how the browser is called."""
    os.environ["HOME"] = os.environ["WORK"]
    server, screen = Server(), display()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open("browser.log", "wb") as log:
        browser = subprocess.Popen(command(server.url), stdout=log, stderr=log)
    sandboxed = False
    while not server.done.wait(0.2) and browser.poll() is None:
        if server.steps and not sandboxed:
            sandboxed = in_a_sandbox(browser.pid)
    print("steps", server.steps, "wrong", server.wrong[:3], "in a sandbox", sandboxed)
    browser.terminate()
    browser.wait()
    screen.terminate()
    screen.wait()
    time.sleep(0.1)
