#!/usr/bin/env python3
"""Checks every dependency's licence and source against deny.toml, as `cargo deny check licenses sources` does.

Here because cargo-deny takes longer to build than all of our tests to run. Reads the same file, so there is one list.
"""

import json
import re
import subprocess
import sys
import tomllib

REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def allowed(expression: str, licences: set[str]) -> bool:
    """Whether an SPDX expression can be satisfied: OR needs one side, AND both; the old `/` is OR."""
    tokens = re.findall(r"\(|\)|[^\s()/]+|/", expression)
    at = 0

    def either() -> bool:
        nonlocal at
        value = both()
        while at < len(tokens) and tokens[at] in ("OR", "/"):
            at += 1
            value = both() or value
        return value

    def both() -> bool:
        nonlocal at
        value = one()
        while at < len(tokens) and tokens[at] == "AND":
            at += 1
            value = one() and value
        return value

    def one() -> bool:
        nonlocal at
        if tokens[at] == "(":
            at += 1
            value = either()
            at += 1
            return value
        name = tokens[at]
        at += 1
        if at < len(tokens) and tokens[at] == "WITH":
            name = f"{name} WITH {tokens[at + 1]}"
            at += 2
        return name in licences

    return either()


def main() -> int:
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)["licenses"]
    licences = set(rules["allow"])
    exceptions = {rule["crate"]: set(rule["allow"]) for rule in rules.get("exceptions", [])}
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
    )
    ours = set(metadata["workspace_members"])
    wrong, used = [], set()
    for package in metadata["packages"]:
        name, licence = package["name"], package["license"] or ""
        if package["id"] not in ours and package["source"] != REGISTRY:
            wrong.append(f"{name} comes from {package['source']}, not from crates.io")
        if not licence:
            wrong.append(f"{name} names no licence")
        elif not allowed(licence, licences):
            if allowed(licence, licences | exceptions.get(name, set())):
                used.add(name)
            else:
                wrong.append(f"{name} is under {licence}, which deny.toml does not allow")
    wrong += [f"deny.toml has an exception for {name} that nothing needs" for name in exceptions.keys() - used]
    for line in sorted(wrong):
        print(line, file=sys.stderr)
    print(f"{len(metadata['packages'])} packages, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
