# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of `podrun view` in a real browser, as a row of its own beside the viewers that watch.c plays.

What watch.c does from the other side of a line is done here through the browser: a page is drawn in the session, and the step
ends when the tab has rested.  The tab tells, of each update that it acknowledges, when the last bytes before that came and when all
of it was on the canvas; the clock of both is the load's.  CPU time is that of all the browser's processes.
"""
import base64
import mmap
import os
import pathlib
import statistics
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import browsers  # noqa: E402
from looking import View  # noqa: E402

KINDS = {"chromium": browsers.Chromium, "firefox": browsers.Firefox}
QUIET_MS = 300
TARGET = 24 + 8 * 4096  # struct stage: what stands before the picture
DRAWN = 8

# Runs before the page's own scripts: pairs of (arrived, drawn), in milliseconds of the wall clock.
INSIDE = """window.bench = {arrived: 0, drawn: []};
const wall = () => performance.timeOrigin + performance.now();
window.WebSocket = class extends WebSocket {
  constructor(...a) {
    super(...a);
    this.addEventListener('message', () => { bench.arrived = wall(); bench.last = performance.now(); });
  }
  send(what) {
    if (what instanceof Uint8Array && what[0] === 70) {
      bench.drawn.push([bench.arrived, wall()]);
      bench.last = performance.now();
    }
    super.send(what);
  }
};"""
REST = """new Promise((done) => {
  const look = () => bench.drawn.length && performance.now() - bench.last > %d ? done(bench.drawn) : setTimeout(look, 50);
  look();
})"""
# What differs from the picture that it is to be, which comes as base64.
WRONG = """(() => {
  const want = atob('%s');
  const c = document.getElementById('screen'), have = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  let wrong = 0;
  for (let i = 0; i < have.length; i += 4)
    wrong += have[i] !== want.charCodeAt(i + 2) || have[i + 1] !== want.charCodeAt(i + 1) || have[i + 2] !== want.charCodeAt(i);
  return wrong;
})()"""


def tree(pid):
    """A process and all it has made."""
    try:
        tasks = [t.name for t in pathlib.Path("/proc/%d/task" % pid).iterdir()]
        children = " ".join(pathlib.Path("/proc/%d/task/%s/children" % (pid, t)).read_text() for t in tasks)
    except OSError:
        return []
    return [pid] + [p for child in children.split() for p in tree(int(child))]


def cpu_ms(pids):
    """Of these and of those of their children that have ended."""
    total = 0
    for pid in pids:
        try:
            total += sum(map(int, pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[11:15]))
        except OSError:
            continue
    return total * 1000 / os.sysconf("SC_CLK_TCK")


class Tab:
    def __init__(self, system, kind, quality):
        self.system, self.browser = system, browsers.get(KINDS[kind])
        self.view = View(system.env, *(["--quality", str(quality)] if quality else ["--lossless"]), target=system.name)
        self.tab = self.browser.open(self.view.url, INSIDE)
        self.wall = (time.time_ns() - time.monotonic_ns()) / 1e6
        with open(system.dir / "stage", "rb") as f:
            self.stage = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self.rest()

    def rest(self):
        return self.tab.evaluate(REST % QUIET_MS)

    def cpu_ms(self):
        return cpu_ms(tree(self.browser.browser.process.pid))

    def step(self, page):
        ask, said = self.system.fifos
        os.write(ask, struct.pack("<c3xi", b"p", page))
        assert os.read(said, 1) == b"r"
        self.tab.evaluate("void (bench.drawn = [])")
        os.write(ask, struct.pack("<c3xi", b"g", 0))
        drawn = self.rest()
        (begun,) = struct.unpack_from("<Q", self.stage, DRAWN)
        return [d - a for a, d in drawn], drawn[-1][1] - self.wall - begun / 1e6

    def wrong(self):
        w, h = struct.unpack_from("<ii", self.stage)
        return self.tab.evaluate(WRONG % base64.b64encode(self.stage[TARGET:TARGET + w * h * 4]).decode())

    def close(self):
        self.tab.close()
        self.view.close()


def share(values, part):
    return round(sorted(values)[min(len(values) - 1, int(len(values) * part))], 3)


def row(system, kind, pages, quality):
    """Pages 0 to @pages - 1; the one behind them is shown first and not counted."""
    tab = Tab(system, kind, quality)
    frames, last, wrong, cpu = [], [], 0, []
    try:
        tab.step(pages)
        for page in range(pages):
            before = tab.cpu_ms()
            took, seen = tab.step(page)
            cpu.append(tab.cpu_ms() - before)
            frames += took
            last.append(seen)
            wrong += tab.wrong()
    finally:
        tab.close()
    return {"system": system.name + "-" + kind, "workload": "pages", "rtt_ms": 0, "frame_ms_p50": share(frames, .5),
            "frame_ms_p95": share(frames, .95), "frame_ms_max": share(frames, 1), "last_ms_p50": share(last, .5),
            "last_ms_p95": share(last, .95), "viewer_cpu_ms": round(statistics.mean(cpu), 2), "steps": pages, "wrong": wrong}
