#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The display's benchmark, as small as it can be: all that it promises is in its rows.

The figures themselves are nobody's business here.
"""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import ROOT, main, needs, needs_namespaces, test  # noqa: E402

RUN = ROOT / "tests" / "bench" / "display" / "run"
SIZE = (640, 480)
SMALL = ["--size", "%dx%d" % SIZE, "--rtts", "0", "--pages", "1", "--letters", "1", "--moves", "1", "--scrolls", "1"]
ALL = {"cpu_ms", "viewer_cpu_ms", "cpu_s_per_gb"}
FIELDS = {
    "pages": ALL | {"visible_ms_p50", "visible_ms_p95", "kb_visible", "kb_total", "ssim_visible", "ssim", "never", "wrong"},
    "video": ALL | {"delivered", "mbit", "p50_ms", "p95_ms", "ssim"},
    "typing": ALL | {"p50_ms", "p95_ms", "kb", "never"},
    "scroll": ALL | {"p50_ms", "p95_ms", "kb", "kb_seq", "kb_find", "kb_smooth", "never"},
    "drag": ALL | {"p50_ms", "p95_ms", "kb_per_move", "never"},
}


def pages(env, n):
    """Of grey noise, as pages.py would have them of a browser."""
    where = env.path("pages")
    where.mkdir()
    for i in range(n):
        rgb = bytearray(SIZE[0] * SIZE[1] * 3)
        rgb[0::3] = rgb[1::3] = rgb[2::3] = random.Random(i).randbytes(SIZE[0] * SIZE[1])
        (where / ("page-%02d.ppm" % i)).write_bytes(b"P6\n%d %d\n255\n" % SIZE + rgb)
    return where


def bench(env, systems, *options):
    out = env.path("rows.json")
    env.call(RUN, "--json", out, "--systems", systems, "--rendered", pages(env, 2), *SMALL, *options, timeout=500)
    return json.loads(out.read_text())


def complete(result, systems, workloads):
    found = {(r["system"], r["workload"], r["rtt_ms"]): r for r in result["rows"]}
    assert set(found) == {(s, w, 0) for s in systems for w in workloads}, list(found)
    for (system, workload, _), row in found.items():
        assert FIELDS[workload] <= set(row), (system, workload, FIELDS[workload] - set(row))
    return found


@test
@needs_namespaces("a directory of the host's in the session")
def podrun_has_all_rows(env):
    needs("Xvfb", "ffmpeg")
    result = bench(env, "podrun", "--frames", "12")
    found = complete(result, ["podrun"], FIELDS)
    for workload in ("pages", "typing", "scroll", "drag"):
        assert found["podrun", workload, 0]["never"] == 0, found["podrun", workload, 0]
    assert found["podrun", "pages", 0]["kb_visible"] > 100, "noise can't be that small: %s" % found["podrun", "pages", 0]
    assert found["podrun", "typing", 0]["kb"] > 0, found["podrun", "typing", 0]
    assert {r["workload"] for r in result["lossless"]} == {"pages", "scroll"}, result["lossless"]
    assert result["about"]["load_before"]


@test
@needs_namespaces("the same bench as above")
def peers_have_rows(env):
    needs("Xvfb", "Xtigervnc", "x11vnc")
    found = complete(bench(env, "tigervnc,x11vnc", "--only", "pages,typing"), ["tigervnc", "x11vnc"], ["pages", "typing"])
    for row in found.values():
        assert row["never"] == 0, row
        assert row.get("kb_visible", row.get("kb")) > 0, row


@test
@needs_namespaces("the same bench as above")
def browsers_have_rows(env):
    needs("Xvfb", "chromium", "firefox-esr")
    out = env.path("rows.json")
    env.call(RUN, "--json", out, "--browser", "chromium,firefox", "--pages", "1", "--size", "%dx%d" % SIZE, "--rendered",
             pages(env, 2), timeout=500)
    result = json.loads(out.read_text())
    for key in ("rows", "lossless"):
        assert [r["system"] for r in result[key]] == ["podrun-chromium", "podrun-firefox"], result[key]
        for row in result[key]:
            assert row["wrong"] == 0 and row["last_ms_p50"] > 0 and row["frame_ms_p50"] >= 0 and row["viewer_cpu_ms"] > 0, row


@test
@needs_namespaces("the same bench as above")
def the_channel_has_rows(env):
    needs("Xvfb", "ffmpeg")
    out = env.path("rows.json")
    env.call(RUN, "--json", out, "--channel", "--quick", "--frames", "12", "--size", "%dx%d" % SIZE, timeout=500)
    rows = {r["way"]: r for r in json.loads(out.read_text())["channel"]}
    assert set(rows) == {"unix", "http", "https"}, rows
    for r in rows.values():
        assert r["gb"] > 0 and {"server_cpu_s_per_gb", "relay_cpu_s_per_gb", "films"} <= set(r), r


if __name__ == "__main__":
    main()
