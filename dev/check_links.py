#!/usr/bin/env python3
"""Checks the relative links of all tracked Markdown files: the file exists, and so does the heading."""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def anchors(path):
    """The names that headings get on the usual forges."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", FENCE.sub("", path.read_text()), re.M):
        name = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")
        found.add(name)
    return found


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=root, check=True, capture_output=True, text=True,
    ).stdout
    files = [root / name for name in listed.split("\0") if name]
    faults = []
    links = 0
    for path in files:
        for target in LINK.findall(FENCE.sub("", path.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            name, _, anchor = target.partition("#")
            other = (path.parent / name).resolve() if name else path
            if not other.exists():
                faults.append(f"{path.relative_to(root)}: no such file: {target}")
            elif anchor and other.suffix == ".md" and anchor not in anchors(other):
                faults.append(f"{path.relative_to(root)}: no such heading: {target}")
    if not files:
        faults.append("no documents found")
    for fault in faults:
        print(f"docs: {fault}", file=sys.stderr)
    print(f"docs: {len(files)} files, {links} relative links")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
