#!/usr/bin/env python3
"""Open a page in headless Chromium and say what a person would meet there.

usage: browse.py URL [--shot FILE] [--size WxH] [--dark] [--wait SECONDS] [--until JS] [--eval JS]...

Prints one JSON object: {"errors": [...], "dialogs": N, "requests": [...], "until": bool,
"values": [...]}. Speaks the DevTools protocol over a pipe: no port, no package is needed.
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


def visit(b, o):
    target = b.call("Target.createTarget", {"url": "about:blank"})["targetId"]
    s = b.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
    w, h = map(int, o.size.split("x"))
    for domain in ("Page", "Runtime", "Network", "Log"):
        b.call(domain + ".enable", {}, s)
    b.call("Emulation.setDeviceMetricsOverride",
           {"width": w, "height": h, "deviceScaleFactor": 1, "mobile": False}, s)
    if o.dark:
        b.call("Emulation.setEmulatedMedia",
               {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}, s)
    b.call("Page.navigate", {"url": o.url}, s)

    def value(js):
        r = b.call("Runtime.evaluate", {"expression": js, "returnByValue": True}, s)
        return r["result"].get("value")

    until, end = not o.until, time.monotonic() + 30
    while not until and time.monotonic() < end:
        b.stay(0.2)
        until = bool(value(o.until))
    b.stay(o.wait)
    values = [value(js) for js in o.eval]
    if o.shot:
        png = b.call("Page.captureScreenshot", {"format": "png"}, s)["data"]
        with open(o.shot, "wb") as f:
            f.write(base64.b64decode(png))
    out = {"errors": [], "dialogs": 0, "requests": [], "until": until, "values": values}
    for e in b.events:
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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("url")
    p.add_argument("--shot")
    p.add_argument("--size", default="1400x1500")
    p.add_argument("--dark", action="store_true")
    p.add_argument("--wait", type=float, default=1)
    p.add_argument("--until")
    p.add_argument("--eval", action="append", default=[])
    o = p.parse_args()
    profile = tempfile.mkdtemp()
    b = Browser(profile)
    try:
        json.dump(visit(b, o), sys.stdout)
        print()
    finally:
        b.child.kill()
        b.child.wait()
        shutil.rmtree(profile, ignore_errors=True)


main()
