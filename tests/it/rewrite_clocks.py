#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: programs of all sorts don't notice that they go on where the clocks say something else,
and no namespace holds their own.

Each of them says "ready", then looks at its clocks and waits by them, over and over, until there is a file /tmp/go:
they never go back and never jump, and nobody sleeps for a day or not at all.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import Failed, main, needs, test  # noqa: E402

# What each host's clocks say more than this one's, in seconds: down and up again.
HOSTS = ((1000000, 2000000), (87000, 3000000), (400000, 100000))
JUMP = 43200

PYTHON = """
import asyncio, os, sys, threading, time
JUMP = %d
last = [time.clock_gettime(c) for c in (1, 4, 6, 7)]
def look():
    for i, c in enumerate((1, 4, 6, 7)):
        now = time.clock_gettime(c)
        if not 0 <= now - last[i] < JUMP: print('FAIL', c, last[i], now); os._exit(1)
        last[i] = now
def waits():
    until = time.monotonic() + 0.02
    threading.Event().wait(0.02)
    if time.monotonic() < until: print('FAIL: too early'); os._exit(1)
    time.sleep(0.001)
async def loop():
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(0.01)
    if not 0.005 < asyncio.get_running_loop().time() - began < JUMP: print('FAIL: loop'); os._exit(1)
print('ready', flush=True)
while not os.path.exists('/tmp/go'): look(); waits(); asyncio.run(loop())
look()
if os.fork() == 0: look(); waits(); os._exit(0)
if os.wait()[1]: print('FAIL: child'); os._exit(1)
print('ok')
""" % JUMP

PERL = """
use Time::HiRes qw(clock_gettime clock_nanosleep CLOCK_MONOTONIC TIMER_ABSTIME);
$| = 1; $last = clock_gettime(CLOCK_MONOTONIC); print "ready\\n";
until (-e "/tmp/go") { $now = clock_gettime(CLOCK_MONOTONIC);
  die "FAIL $last $now" if $now < $last || $now - $last > %d; $last = $now;
  clock_nanosleep(CLOCK_MONOTONIC, ($now + 0.01) * 1e9, TIMER_ABSTIME);
  die "FAIL: too early" if clock_gettime(CLOCK_MONOTONIC) < $now + 0.0099; }
print "ok\\n";
""" % JUMP

NODE = """
const fs = require('fs'); let last = process.hrtime.bigint(), ticks = 0;
function look() { const now = process.hrtime.bigint();
  if (now < last || now - last > %d000000000n) { console.log('FAIL', last, now); process.exit(1); } last = now; }
const t = setInterval(() => { look(); ticks++; if (fs.existsSync('/tmp/go') && ticks > 5) { clearInterval(t);
  console.log('ok'); } }, 10);
setTimeout(() => console.log('ready'), 20);
""" % JUMP

GO = """
package main
import ("fmt"; "os"; "sync"; "time")
func main() {
	last := time.Now(); var m sync.Mutex; tick := time.NewTicker(5 * time.Millisecond)
	look := func() { m.Lock(); defer m.Unlock(); now := time.Now(); d := now.Sub(last)
		if d < 0 || d > %d * time.Second { fmt.Println("FAIL", d); os.Exit(1) }; last = now }
	for i := 0; i < 4; i++ { go func() { for { look(); began := time.Now(); time.Sleep(3 * time.Millisecond)
		if time.Since(began) < 3 * time.Millisecond { fmt.Println("FAIL: too early"); os.Exit(1) } } }() }
	fmt.Println("ready")
	for { <-tick.C; look(); if _, err := os.Stat("/tmp/go"); err == nil { break } }
	select { case <-tick.C: case <-time.After(time.Hour): fmt.Println("FAIL: no tick"); os.Exit(1) }
	fmt.Println("ok")
}
""" % JUMP

JAVA = """
import java.io.File; import java.util.concurrent.*; import java.util.concurrent.locks.*;
public class M {
  static long last = System.nanoTime();
  static synchronized void look() { long now = System.nanoTime();
    if (now - last < 0 || now - last > %d000000000L) { System.out.println("FAIL " + last + " " + now); System.exit(1); }
    last = now; }
  public static void main(String[] a) throws Exception {
    ScheduledExecutorService e = Executors.newScheduledThreadPool(3);
    e.scheduleAtFixedRate(M::look, 5, 5, TimeUnit.MILLISECONDS);
    System.out.println("ready");
    Object o = new Object(); ReentrantLock l = new ReentrantLock(); Condition c = l.newCondition();
    while (!new File("/tmp/go").exists()) { long began = System.nanoTime();
      LockSupport.parkNanos(2000000); synchronized (o) { o.wait(2); } Thread.sleep(2);
      l.lock(); c.awaitNanos(2000000); l.unlock(); look(); }
    e.schedule(() -> { System.out.println("ok"); System.exit(0); }, 10, TimeUnit.MILLISECONDS).get(); } }
""" % JUMP

# A process each time: a program that begins.
SHELL = """
last=$(%(python)s -c "$NOW"); echo ready
while [ ! -e /tmp/go ]; do
    now=$(%(python)s -c "$NOW")
    [ $now -ge $last ] && [ $((now - last)) -lt %(jump)d ] || { echo FAIL $last $now; exit 1; }
    last=$now
done
echo ok
""" % {"python": sys.executable, "jump": JUMP}
NOW = "import time; print(int(time.monotonic()))"


def travel(env, *command, options=(), ways=("rewrite", "rewrite")):
    """Runs on three hosts in turn; `ways`: who has the names on the second and third."""
    image = env.path("image")
    env.elsewhere(*HOSTS[0], contained=True)
    env.run_detached("s", *command, options=("--names", "rewrite", "--net", "host", *options))
    for way, host in zip(ways, HOSTS[1:]):
        env.podrun("suspend", "s", "-o", image)
        env.elsewhere(*host, contained=way == "rewrite")
        env.podrun("resume", "-d", "--names", way, image)
        image.unlink()
    env.let_end()
    log = env.wait("s")
    if "ok" not in log.split():
        raise Failed(log)


@test
def python(env):
    travel(env, sys.executable, "-c", PYTHON)


@test
def python_there_and_back(env):
    travel(env, sys.executable, "-c", PYTHON, ways=("kernel", "rewrite"))


@test
def a_shell_and_its_programs(env):
    travel(env, "sh", "-c", SHELL, options=("-e", "NOW=" + NOW))


@test
def perl(env):
    needs("perl")
    travel(env, "perl", "-e", PERL)


@test
def node(env):
    needs("node")
    travel(env, "node", "-e", NODE)


@test
def go(env):
    needs("go")
    work = env.path("work")
    work.mkdir()
    (work / "m.go").write_text(GO)
    env.environ.update(GOCACHE=str(env.path("gocache")), GO111MODULE="off")
    env.call("go", "build", "-o", work / "m", work / "m.go", timeout=300)
    travel(env, "/tmp/work/m", options=("-v", "%s:/tmp/work" % work))


@test
def java(env):
    needs("java", "javac")
    work = env.path("work")
    work.mkdir()
    (work / "M.java").write_text(JAVA)
    env.call("javac", "-d", work, work / "M.java", timeout=300)
    travel(env, "java", "-Xmx256m", "-cp", "/tmp/work", "M", options=("-v", "%s:/tmp/work" % work))


if __name__ == "__main__":
    main()
