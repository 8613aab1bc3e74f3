# SPDX-License-Identifier: GPL-2.0-or-later
"""Real browsers without a window, driven as their users would: a tab is opened, looked at, typed into.

Chromium by the DevTools protocol on a pipe, Firefox by WebDriver BiDi on a websocket.  Both have the same few
methods; a browser is started once and each tab has a context of its own (storage, permissions).
"""
import atexit
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading

import websocket

PATIENCE = 120


class Failed(Exception):
    """The browser said no, or the page threw."""


class _Calls:
    """Commands with a number and answers with the same number, in any order."""

    def __init__(self):
        self.lock, self.next, self.answers = threading.Lock(), 1, {}
        self.arrived, self.ended = threading.Condition(), False

    def call(self, message):
        with self.lock:
            number = self.next
            self.next += 1
            self.send(dict(message, id=number))
        with self.arrived:
            self.arrived.wait_for(lambda: number in self.answers or self.ended, PATIENCE)
            if number not in self.answers:
                raise Failed("%s: %s" % ("the browser has ended" if self.ended else "no answer", message))
            return self.answers.pop(number)

    def end(self):
        with self.arrived:
            self.ended = True
            self.arrived.notify_all()

    def take(self, message):
        if message.get("id") is not None:
            with self.arrived:
                self.answers[message["id"]] = message
                self.arrived.notify_all()
        else:
            self.event(message)

    def event(self, message):
        pass


class _Process:
    def __init__(self, argv, environ=(), **kw):
        self.home = tempfile.mkdtemp(prefix="podrun-browser-")
        env = dict(os.environ, HOME=self.home, XDG_RUNTIME_DIR=self.home, XDG_CONFIG_HOME=self.home,
                   XDG_CACHE_HOME=self.home)
        env.update(environ)
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"):
            env.pop(name, None)
        self.process = subprocess.Popen([a.replace("HOME", self.home) for a in argv], env=env, start_new_session=True,
                                        **kw)
        atexit.register(self.kill)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


# ---- chromium -----------------------------------------------------------------------------------

class Chromium(_Calls):
    def __init__(self):
        super().__init__()
        (there, self.out), (self.into, back) = os.pipe(), os.pipe()
        # Its ends become 3 and 4, so they must not be these.
        there, back = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (there, back))
        argv = ["chromium", "--headless=new", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
                "--user-data-dir=HOME/profile", "--ignore-certificate-errors", "--window-size=1000,800", "about:blank"]
        # Its own sandbox needs what containers don't give.
        if subprocess.run(["unshare", "--user", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            argv.insert(1, "--no-sandbox")
        self.browser = _Process(["bash", "-c", 'exec "$@" 3<&%d 4>&%d' % (there, back), "bash"] + argv,
                                pass_fds=[there, back], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(back)
        self.tabs = {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        data = b""
        while True:
            piece = os.read(self.into, 1 << 20)
            if not piece:
                self.end()
                return
            *whole, data = (data + piece).split(b"\0")
            for message in whole:
                self.take(json.loads(message))

    def send(self, message):
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]

    def event(self, message):
        tab = self.tabs.get(message.get("sessionId"))
        if tab:
            tab.event(message)

    def command(self, method, session=None, **params):
        message = {"method": method, "params": params}
        answer = self.call(dict(message, sessionId=session) if session else message)
        if "error" in answer:
            raise Failed("%s: %s" % (method, answer["error"]["message"]))
        return answer["result"]

    def open(self, url, before=""):
        """`before`: a script that runs in the page before its own."""
        return ChromiumTab(self, url, before)


# What the names of keys are to browsers: code, key, Windows' number, text.
NAMED = {"Enter": ("Enter", "Enter", 13, "\r"), "Shift": ("ShiftLeft", "Shift", 16, ""),
         "Control": ("ControlLeft", "Control", 17, ""), "ArrowLeft": ("ArrowLeft", "ArrowLeft", 37, ""),
         "F5": ("F5", "F5", 116, "")}
MODIFIERS = {"Control": 2, "Shift": 8}


class ChromiumTab:
    def __init__(self, browser, url, before):
        self.browser, self.complaints = browser, []
        context = browser.command("Target.createBrowserContext")["browserContextId"]
        target = browser.command("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.context, self.target, self.modifiers = context, target, 0
        self.session = browser.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.tabs[self.session] = self
        for domain in ("Page", "Runtime", "Log"):
            self.command(domain + ".enable")
        self.command("Emulation.setFocusEmulationEnabled", enabled=True)
        if before:
            self.command("Page.addScriptToEvaluateOnNewDocument", source=before)
        self.command("Page.navigate", url=url)

    def command(self, method, **params):
        return self.browser.command(method, self.session, **params)

    def event(self, message):
        """Whatever the page or the browser complains of: errors of scripts, of the policy."""
        method, p = message["method"], message["params"]
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(p["exceptionDetails"])[:600])
        elif method == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.complaints.append(p["entry"]["text"])

    def evaluate(self, expression):
        answer = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise Failed(json.dumps(answer["exceptionDetails"])[:600])
        return answer["result"].get("value")

    def allow(self, *permissions):
        self.browser.command("Browser.grantPermissions", browserContextId=self.context, permissions=list(permissions))

    def key(self, name, down):
        code, key, number, text = NAMED.get(name) or ("Key" + name.upper(), name, ord(name.upper()), name)
        if name in MODIFIERS:
            self.modifiers = self.modifiers | MODIFIERS[name] if down else self.modifiers & ~MODIFIERS[name]
        extra = {"commands": ["paste"]} if down and name == "v" and self.modifiers & 2 else {}
        if down and text and not self.modifiers & 2:
            extra["text"] = text
        self.command("Input.dispatchKeyEvent", type="keyDown" if down else "keyUp", code=code, key=key,
                     windowsVirtualKeyCode=number, modifiers=self.modifiers, **extra)

    def type(self, text):
        """Key by key, as a layout would have it on which each character has one; \r is Enter."""
        for c in text:
            name = {"\r": "Enter", " ": " "}.get(c, c)
            for kind in "keyDown", "keyUp":
                self.command("Input.dispatchKeyEvent", type=kind, key=name, code="Enter" if c == "\r" else "",
                             **({"text": c} if kind == "keyDown" else {}))

    def mouse(self, kind, x, y, button="none", buttons=0, **more):
        """kind: mousePressed, mouseMoved, mouseReleased, mouseWheel."""
        self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, **more)

    def touch(self, kind, *points):
        self.command("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])

    def reload(self):
        self.command("Page.reload")

    def close(self):
        self.browser.command("Target.closeTarget", targetId=self.target)


# ---- firefox ------------------------------------------------------------------------------------

FIREFOX_SETTINGS = {"app.update.enabled": "false", "browser.shell.checkDefaultBrowser": "false",
                    "datareporting.policy.dataSubmissionEnabled": "false", "network.captive-portal-service.enabled": "false",
                    "network.connectivity-service.enabled": "false", "remote.prefs.recommended": "true"}


class Firefox(_Calls):
    environ = {}  # what it is started with besides

    def __init__(self):
        super().__init__()
        self.browser = _Process(["sh", "-c", 'mkdir "$0/profile" && cp "$1" "$0/profile/user.js" && shift && exec "$@"', "HOME",
                                 self._settings(), "firefox-esr", "--headless", "--no-remote", "--profile",
                                 "HOME/profile", "--remote-debugging-port", "0"],
                                environ=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        port = self._port()
        self.socket = websocket.Websocket("127.0.0.1", port, "/session")
        self.socket.sock.settimeout(None)
        threading.Thread(target=self._read, daemon=True).start()
        self.command("session.new", capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})

    @staticmethod
    def _settings():
        with tempfile.NamedTemporaryFile("w", suffix=".js", delete=False) as f:
            f.writelines('user_pref("%s", %s);\n' % s for s in FIREFOX_SETTINGS.items())
        atexit.register(os.unlink, f.name)
        return f.name

    def _port(self):
        said = ""
        for line in self.browser.process.stderr:
            said += line
            if "WebDriver BiDi listening on ws://" in line:
                threading.Thread(target=self.browser.process.stderr.read, daemon=True).start()
                return int(line.rsplit(":", 1)[1])
        raise Failed("firefox has ended: " + said[-1000:])

    def _read(self):
        with contextlib.suppress(websocket.Closed, OSError):
            while True:
                self.take(json.loads(self.socket.receive()))
        self.end()

    def send(self, message):
        self.socket.send(json.dumps(message))

    def command(self, method, **params):
        answer = self.call({"method": method, "params": params})
        if answer.get("type") == "error":
            raise Failed("%s: %s" % (method, answer["message"]))
        return answer["result"]

    def open(self, url, before=""):
        """`before`: as for Chromium."""
        return FirefoxTab(self, url, before)


KEYS = {"Enter": "\ue006", "Shift": "\ue008", "Control": "\ue009", "ArrowLeft": "\ue012", "F5": "\ue035"}


class FirefoxTab:
    def __init__(self, browser, url, before):
        self.browser = browser
        self.context = self._create()
        if before:
            browser.command("script.addPreloadScript", contexts=[self.context], functionDeclaration="() => {%s}" % before)
        browser.command("browsingContext.navigate", context=self.context, url=url, wait="none")

    def _create(self):
        """Firefox loses one, now and then, while a tab is closed."""
        for i in range(5):
            try:
                return self.browser.command("browsingContext.create", type="tab")["context"]
            except Failed as e:
                if "does no longer exist" not in str(e) or i == 4:
                    raise

    def evaluate(self, expression):
        """What JSON can hold."""
        answer = self.browser.command(
            "script.evaluate", target={"context": self.context}, awaitPromise=True,
            expression="(async () => JSON.stringify(await (%s)) ?? 'null')()" % expression)
        if answer["type"] != "success":
            raise Failed(json.dumps(answer["exceptionDetails"])[:600])
        return json.loads(answer["result"]["value"])

    def _perform(self, **source):
        self.browser.command("input.performActions", context=self.context, actions=[source])

    def key(self, name, down):
        self._perform(type="key", id="keyboard",
                      actions=[{"type": "keyDown" if down else "keyUp", "value": KEYS.get(name, name)}])

    def mouse(self, kind, x, y, button="none", buttons=0, **more):
        move = {"type": "pointerMove", "x": x, "y": y}
        number = {"left": 0, "middle": 1, "right": 2, "none": 0}[button]
        if kind == "mouseWheel":
            self._perform(type="wheel", id="wheel", actions=[{
                "type": "scroll", "x": x, "y": y, "deltaX": more["deltaX"], "deltaY": more["deltaY"]}])
            return
        press = {"mousePressed": [{"type": "pointerDown", "button": number}],
                 "mouseReleased": [{"type": "pointerUp", "button": number}], "mouseMoved": []}[kind]
        self._perform(type="pointer", id="mouse", actions=[move] + press)

    def close(self):
        self.browser.command("browsingContext.close", context=self.context)


_started, _lock = {}, threading.Lock()


def get(kind):
    """The one browser of a kind, started when it is first asked for."""
    with _lock:
        if kind not in _started:
            _started[kind] = kind()
        return _started[kind]
