#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages for the display's benchmarks: HTML as people read it, rendered by a real browser.

usage: pages.py [-n PAGES] [-g WIDTHxHEIGHT] DIRECTORY

Six sorts in turn: text, text with a picture, tables, gradients with a picture, cards, source code.  They
are the same in every run.  DIRECTORY gets page-NN.html and, by chromium without a window, page-NN.ppm.
Needs chromium and ffmpeg.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

WORDS = """session display server viewer moves between hosts while its connections stay open and nobody
notices because names are virtual memory is copied ahead of time pages that change again are sent once more
the rest of it follows when everything stands still for some milliseconds which is shorter than a blink of
an eye and than most networks need for one round trip a picture however is made of pixels""".split()
COLOURS = ["#3465a4", "#cc0000", "#4e9a06", "#75507b", "#c17d11", "#2e3436"]


def sentence(r):
    words = [r.choice(WORDS) for _ in range(r.randint(6, 18))]
    return " ".join(words).capitalize() + ". "


def paragraphs(r, n):
    return "".join("<p>" + "".join(sentence(r) for _ in range(r.randint(3, 7))) + "</p>"
                   for _ in range(n))


def picture(r, w, h):
    """Clouds: as hard to compress as a photograph."""
    seed, f = r.randint(1, 999), r.uniform(.004, .02)
    return (f'<svg width="{w}" height="{h}"><filter id="f{seed}"><feTurbulence type="fractalNoise" '
            f'baseFrequency="{f:.4f}" numOctaves="6" seed="{seed}"/><feColorMatrix values="'
            f'1 .3 0 0 .1  0 .9 .2 0 .1  .2 0 .8 0 .2  0 0 0 0 1"/></filter>'
            f'<rect width="100%" height="100%" filter="url(#f{seed})"/></svg>')


def text(r):
    return "<h1>" + sentence(r) + "</h1>" + paragraphs(r, 9)


def text_picture(r):
    return (f'<h1>{sentence(r)}</h1><div style="float:right;margin:12px">{picture(r, 420, 300)}</div>'
            + paragraphs(r, 8))


def table(r):
    rows = "".join("<tr>" + "".join(f"<td>{r.choice(WORDS)} {r.randint(0, 99999)}</td>"
                                    for _ in range(7)) + "</tr>" for _ in range(28))
    return ("<style>td{border:1px solid #bbb;padding:3px 8px}tr:nth-child(even){background:#eef}"
            f"</style><h2>{sentence(r)}</h2><table style='border-collapse:collapse'>{rows}</table>")


def gradient(r):
    a, b = r.sample(COLOURS, 2)
    return (f'<style>body{{background:linear-gradient({r.randint(0, 180)}deg,{a},{b});color:#fff}}'
            f'</style><h1 style="font-size:52px">{sentence(r)}</h1>{picture(r, 600, 330)}'
            + paragraphs(r, 2))


def cards(r):
    card = "".join(
        f'<div style="width:220px;height:210px;margin:8px;padding:8px;border-radius:10px;float:left;'
        f'box-shadow:0 2px 8px #888;overflow:hidden"><div style="height:60px;background:'
        f'{r.choice(COLOURS)}">{picture(r, 220, 60) if r.random() < .4 else ""}</div>'
        f'<b>{r.choice(WORDS)}</b><br>{sentence(r)}</div>' for _ in range(12))
    return "<style>body{background:#f4f4f6}</style>" + card


def source(r):
    lines = "\n".join("  " * r.randint(0, 5) + f'<span style="color:{r.choice(COLOURS)}">'
                      f"{r.choice(WORDS)}</span>({r.choice(WORDS)}, {r.randint(0, 255)});"
                      for _ in range(50))
    return f'<pre style="font-size:12px">{lines}</pre>'


SORTS = [text, text_picture, table, gradient, cards, source]


def render(html, ppm, width, height, profile):
    png = ppm[:-4] + ".png"
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    f"--user-data-dir={profile}", f"--window-size={width},{height}",
                    f"--screenshot={png}", "file://" + html],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", png, "-pix_fmt", "rgb24", ppm], check=True)
    os.unlink(png)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    ap.add_argument("-n", type=int, default=54)
    ap.add_argument("-g", default="1024x768")
    ap.add_argument("directory")
    args = ap.parse_args()
    width, height = map(int, args.g.split("x"))
    for program in ("chromium", "ffmpeg"):
        if not shutil.which(program):
            sys.exit(f"pages.py: needs {program}")
    os.makedirs(args.directory, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        for i in range(args.n):
            path = os.path.abspath(os.path.join(args.directory, f"page-{i:02d}"))
            body = SORTS[i % len(SORTS)](random.Random(i))
            with open(path + ".html", "w", encoding="utf-8") as f:
                f.write('<!doctype html><meta charset="utf-8"><body style="font-family:DejaVu Sans,'
                        f'sans-serif;margin:20px">{body}')
            render(path + ".html", path + ".ppm", width, height, profile)


if __name__ == "__main__":
    main()
