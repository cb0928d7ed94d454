"""What help says."""

import re

import pytest

from tsrnn.models import MODELS

COMMANDS = ["forecast", "compare", "batch", "features", "summary", "models"]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_examples_and_exit_codes(answer, command):
    said = answer(f"{command} --help")
    assert "Examples:\n    tsrnn " in said
    assert "130  interrupted" in said


@pytest.mark.parametrize("command", ["forecast", "compare", "batch"])
def test_help_lists_the_models(answer, command):
    said = answer(f"{command} --help")
    listed = re.search(r"Models: (.*?)\n\n", said, re.DOTALL)[1]
    assert re.split(r",\s+", listed) == [
        model.command for model in MODELS.values() if model.command
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_an_example_is_there(answer, command):
    said = answer(f"{command} --help")
    examples, options = said.partition("Examples:")[2].split("Options:")
    used = set(re.findall(r"--[a-z-]+", examples))
    assert used <= set(re.findall(r"--[a-z-]+", options))


def test_without_a_command_there_is_help(tsrnn):
    done = tsrnn("")
    assert "Commands:" in done.output
    assert [line.split()[0] for line in done.output.split("Commands:\n")[1].splitlines()[:6]] == (
        COMMANDS
    )


def test_a_command_that_is_not_there(misused):
    assert "No such command 'forecasts'" in misused("forecasts x.csv")
