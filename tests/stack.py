#!/usr/bin/env python3
"""Usage: stack.py FILE.ci

Reads what gcc's -fcallgraph-info=su wrote and prints the bytes of the deepest path, and the path. Calls
through pointers (the medium's callbacks) and functions outside of the file count as nothing. Ends with an error
when a function's frame has no bound, or when there is a recursion."""

import re
import sys


def read(path):
    frames, calls = {}, {}
    for line in open(path, encoding="utf-8"):
        node = re.match(r'node: { title: "([^"]+)" label: "([^"]*)"', line)
        edge = re.match(r'edge: { sourcename: "([^"]+)" targetname: "([^"]+)"', line)
        if node:
            size = re.search(r"\\n(\d+) bytes \((.*?)\)", node.group(2))
            if size and size.group(2) not in ("static", "dynamic,bounded"):
                sys.exit(f"stack: the frame of {node.group(1)} is {size.group(2)}")
            frames[node.group(1)] = int(size.group(1)) if size else 0
        elif edge:
            calls.setdefault(edge.group(1), set()).add(edge.group(2))
    return frames, calls


def main():
    frames, calls = read(sys.argv[1])
    deepest, open_path = {}, []

    def visit(name):
        if name in open_path:
            sys.exit("stack: recursion: " + " -> ".join(open_path[open_path.index(name) :] + [name]))
        if name not in deepest:
            open_path.append(name)
            below = max((visit(callee) for callee in sorted(calls.get(name, ()))), default=(0, []))
            open_path.pop()
            deepest[name] = (frames.get(name, 0) + below[0], [name] + below[1])
        return deepest[name]

    if not frames:
        sys.exit("stack: no functions in " + sys.argv[1])
    size, path = max(visit(name) for name in sorted(frames))
    short = [f"{name.rsplit(':', 1)[-1]} {frames[name]}" for name in path if frames.get(name, 0) > 0]
    print(size, " > ".join(short))


if __name__ == "__main__":
    main()
