"""README, .ci/run and setup.cfg say the same; its quick start runs as doctests."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SCRIPT = ROOT / ".ci" / "run"
DEMO = "python3 -m venv .venv && .venv/bin/pip install -q '.[demo]' && .venv/bin/python -m umarray demo"
TESTS = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[rocm,test]' && .venv/bin/python -m pytest"


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def test_there_are_two_commands_each_one_line():
    assert [block.strip() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)] == [DEMO, TESTS]


def test_ci_runs_the_tests_as_the_readme_says():
    found = re.search(r"^command=\$\((grep .*)\)$", SCRIPT.read_text(), re.MULTILINE)
    assert found is not None
    assert subprocess.check_output(shlex.split(found[1]), cwd=ROOT, text=True) == TESTS + "\n"


def test_ci_is_a_script_that_bash_can_read():
    assert os.access(SCRIPT, os.X_OK)
    lines = SCRIPT.read_text().splitlines()
    assert lines[0] == "#!/bin/bash" and "set -euo pipefail" in lines
    subprocess.run(["bash", "-n", SCRIPT], check=True)


def test_every_extra_is_in_the_readme_and_none_besides():
    extras = set(settings()["options.extras_require"])
    commands = set(re.findall(r"[\w]+", " ".join(re.findall(r"\.\[([a-z0-9,]+)\]", README))))
    table = README.split("| extra | brings |")[1].split("\n\n")[0]
    listed = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert listed == extras
    assert commands <= extras


def test_the_emulators_sources_are_package_data():
    assert "native/*" in settings()["options.package_data"]["umarray.hipemu"]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_links_lead_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).exists()


def test_lines_fit_a_page():
    long = [line for line in README.splitlines() if len(line) > 120 and not line.startswith(("|", "python3"))]
    assert not long
