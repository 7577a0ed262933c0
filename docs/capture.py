#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make docs/quickstart.svg: run a command in a terminal and draw what it shows.

    HOME=$(mktemp -d) docs/capture.py docs/quickstart.svg bin/diwan run examples/quickstart/experiment.yaml

The picture shows a few moments of the run, one after another, and ends with the last one, which is also what
viewers without animation show.
"""

import fcntl
import html
import os
import pty
import re
import select
import struct
import sys
import termios
import time

COLUMNS, ROWS = 88, 24
MOMENTS = 8  # how many moments of the run are shown before the last one
SECONDS = 1.2  # how long each of them is shown
COLOURS = {"1": "#ffffff", "2": "#7d8590", "31": "#ff7b72", "32": "#3fb950"}
TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


class Screen:
    """The few things of a terminal that diwan uses: moving up, erasing, colours."""

    def __init__(self):
        self.lines, self.row, self.column, self.colour = [[]], 0, 0, ""

    def feed(self, text):
        for argument, command, ret, newline, plain in TOKEN.findall(text):
            if command == "A":
                self.row = max(0, self.row - int(argument or 1))
            elif command == "K":
                del self.lines[self.row][self.column :]
            elif command == "J":
                del self.lines[self.row + 1 :]
                del self.lines[self.row][self.column :]
            elif command == "m":
                self.colour = COLOURS.get(argument, "")
            elif ret:
                self.column = 0
            elif newline:
                self.row += 1
                while len(self.lines) <= self.row:
                    self.lines.append([])
            for character in plain:
                line = self.lines[self.row]
                line.extend([(" ", "")] * (self.column + 1 - len(line)))
                line[self.column] = (character, self.colour)
                self.column += 1

    def snapshot(self):
        return [list(line) for line in self.lines]


def record(command):
    """Run the command in a terminal; return (seconds, screen) for each change."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    screen, begin, changes = Screen(), time.monotonic(), []
    while select.select([terminal], [], [], 300)[0]:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not data:
            break
        screen.feed(data.decode("utf-8", "replace"))
        changes.append((time.monotonic() - begin, screen.snapshot()))
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{' '.join(command)} failed")
    return changes


def draw(lines, top):
    """The SVG text of some lines, each a run of spans of one colour."""
    for number, line in enumerate(lines):
        spans, start = [], 0
        while start < len(line):
            end = start
            while end < len(line) and line[end][1] == line[start][1]:
                end += 1
            text = html.escape("".join(character for character, _ in line[start:end]))
            colour = line[start][1]
            spans.append(f'<tspan fill="{colour}">{text}</tspan>' if colour else text)
            start = end
        if spans:
            yield f'<text x="16" y="{top + 18 * number}">{"".join(spans)}</text>'


def picture(command, moments):
    height = 18 * (max(len(lines) for lines in moments) + 2) + 28
    longest = max(len(line) for lines in moments for line in lines)
    width = int(max(COLUMNS, longest) * 8.43) + 32
    total = SECONDS * (len(moments) - 1)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="diwan tunes the quick start">'
    yield "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;white-space:pre}"
    for number in range(len(moments)):
        begin = SECONDS * number
        if number < len(moments) - 1:
            yield f".m{number}{{visibility:hidden;animation:show {SECONDS}s {begin:.1f}s}}"
        else:
            yield f".m{number}{{animation:hide {total:.1f}s}}"
    yield "@keyframes show{from,to{visibility:visible}}@keyframes hide{from,to{visibility:hidden}}</style>"
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>'
    yield f'<text x="16" y="32"><tspan fill="#7d8590">$</tspan> {html.escape(" ".join(command))}</text>'
    for number, lines in enumerate(moments):
        yield f'<g class="m{number}">'
        yield from draw(lines, 50)
        yield "</g>"
    yield "</svg>"


def main():
    target, command = sys.argv[1], sys.argv[2:]
    changes = record(command)
    end = changes[-1][0]
    moments = []
    for number in range(MOMENTS):
        at = end * (number + 0.5) / MOMENTS
        moments.append(next(lines for seconds, lines in changes if seconds >= at))
    moments.append(changes[-1][1])
    with open(target, "w") as file:
        file.write("\n".join(picture(command, moments)).replace(os.path.expanduser("~"), "~") + "\n")


if __name__ == "__main__":
    main()
