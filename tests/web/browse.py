#!/usr/bin/env python3
"""Open a page in headless Chromium, do things with it, and say what a person would meet there.

usage: browse.py URL [--size WxH] [--dark] ACTION...
  --until JS    wait until the expression is true (at most 60 s)
  --eval JS     note its value; a promise's value is waited for
  --shot FILE   write what is seen as PNG
  --full FILE   write the whole page as PNG
  --type TEXT   type into what has the focus; "\\n" presses Enter
  --sh COMMAND  run a shell command meanwhile; its status is noted as a value
  --wait SECONDS

Actions are done in the order given. Prints one JSON object: {"errors": [...], "dialogs": N,
"requests": [...], "until": bool, "values": [...]}. Speaks the DevTools protocol over a pipe: no port,
no package is needed.
"""
import argparse
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self, profile):
        to_r, self.to = os.pipe()
        self.back, back_w = os.pipe()
        os.set_inheritable(to_r, True)
        os.set_inheritable(back_w, True)

        def place():
            a, b = os.dup(to_r), os.dup(back_w)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.child = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--remote-debugging-pipe", "--user-data-dir=" + profile, "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_r)
        os.close(back_w)
        self.n, self.rest, self.events = 0, b"", []

    def read(self, seconds):
        """One message, or None."""
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                return None
            got = os.read(self.back, 1 << 20)
            if not got:
                raise SystemExit("browse.py: chromium has ended")
            self.rest += got
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, params=None, session=None):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            m = self.read(5)
            if m is None:
                continue
            if m.get("id") == self.n:
                if "error" in m:
                    raise SystemExit("browse.py: %s: %s" % (method, m["error"]["message"]))
                return m["result"]
            self.events.append(m)
        raise SystemExit("browse.py: no answer to " + method)

    def stay(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            m = self.read(end - time.monotonic())
            if m:
                self.events.append(m)


class Page:
    def __init__(self, b, o):
        target = b.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.b = b
        self.s = b.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self.values, self.until = [], True
        self.w, self.h = map(int, o.size.split("x"))
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.resize(self.w, self.h)
        if o.dark:
            self.call("Emulation.setEmulatedMedia",
                      {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.call("Page.navigate", {"url": o.url})

    def call(self, method, params=None):
        return self.b.call(method, params, self.s)

    def value(self, js):
        r = self.call("Runtime.evaluate",
                      {"expression": js, "returnByValue": True, "awaitPromise": True})
        return r["result"].get("value")

    def wait_until(self, js):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            self.b.stay(0.1)
            if self.value(js):
                return
        self.until = False
        print("browse.py: never true: " + js, file=sys.stderr)

    def resize(self, w, h):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": w, "height": h, "deviceScaleFactor": 1, "mobile": False})

    def shoot(self, file, full):
        if full:  # a window as high as the page: what lies outside one is not always painted
            self.resize(self.w, int(self.call("Page.getLayoutMetrics")["cssContentSize"]["height"]))
            self.b.stay(0.5)
        with open(file, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", {"format": "png"})["data"]))
        if full:
            self.resize(self.w, self.h)

    def type(self, text):
        for c in text.replace("\\n", "\r"):
            for kind in ("keyDown", "keyUp"):
                key = {"type": kind, "key": "Enter" if c == "\r" else c}
                if kind == "keyDown":
                    key["text"] = c
                self.call("Input.dispatchKeyEvent", key)

    def do(self, what, arg):
        if what == "until":
            self.wait_until(arg)
        elif what == "eval":
            self.values.append(self.value(arg))
        elif what in ("shot", "full"):
            self.shoot(arg, what == "full")
        elif what == "type":
            self.type(arg)
        elif what == "sh":
            self.values.append(subprocess.call(["bash", "-c", arg], stdout=sys.stderr))
        else:
            self.b.stay(float(arg))

    def report(self):
        out = {"errors": [], "dialogs": 0, "requests": [], "until": self.until,
               "values": self.values}
        for e in self.b.events:
            m, p = e.get("method"), e.get("params", {})
            if m == "Runtime.exceptionThrown":
                d = p["exceptionDetails"]
                out["errors"].append(d.get("exception", {}).get("description") or d["text"])
            elif m == "Log.entryAdded" and p["entry"]["level"] == "error":
                out["errors"].append(p["entry"]["text"])
            elif m == "Page.javascriptDialogOpening":
                out["dialogs"] += 1
            elif m == "Network.requestWillBeSent":
                out["requests"].append(p["request"]["url"])
        return out


class Note(argparse.Action):
    def __call__(self, parser, o, value, option=None):
        o.todo = (o.todo or []) + [(option[2:], value)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("url")
    p.add_argument("--size", default="1280x900")
    p.add_argument("--dark", action="store_true")
    for action in ("until", "eval", "shot", "full", "type", "sh", "wait"):
        p.add_argument("--" + action, action=Note, dest="todo")
    o = p.parse_args()
    profile = tempfile.mkdtemp()
    b = Browser(profile)
    try:
        page = Page(b, o)
        for what, arg in o.todo or []:
            page.do(what, arg)
        json.dump(page.report(), sys.stdout)
        print()
    finally:
        b.child.kill()
        b.child.wait()
        shutil.rmtree(profile, ignore_errors=True)


main()
