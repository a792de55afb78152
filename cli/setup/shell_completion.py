"""The shell script for completing commands: for the installed `trainyard`, or for a command defined by the script for a
clone.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from typer._completion_shared import get_completion_script

from ..errors import CliError

SHELLS = ("bash", "zsh", "fish")
NAME = "trainyard"
VARIABLE = "_TRAINYARD_COMPLETE"  # with this variable, a shell's script requests completions from this program
ZSH_STARTS = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"  # a start file may lack it
# For bash, in place of Typer's own script. Bash also ends words at @, : and =, so this script counts the words again.
# Bash replaces only the text after the last of these characters ($2), so each reply leaves out the text before it.
BASH = r"""
_trainyard_completion() {
    local typed=${COMP_LINE:0:COMP_POINT} glued=0 i
    local rest=$typed word=${typed##*[[:space:]]} IFS=$'\n'
    for ((i = 0; i < COMP_CWORD; i++)); do
        rest=${rest#*"${COMP_WORDS[i]}"}
        [[ $rest == [[:space:]]* ]] || ((glued += 1))
    done
    COMPREPLY=( $( env COMP_WORDS="$typed" COMP_CWORD=$((COMP_CWORD - glued)) \
                   _TRAINYARD_COMPLETE=complete_bash $1 ) )
    COMPREPLY=( "${COMPREPLY[@]#"${word%"$2"}"}" )
}

complete -o default -F _trainyard_completion trainyard
""".strip()
CLONE = Path(__file__).resolve().parents[2]


def script(shell: str, clone: bool) -> str:
    """Return the completion script for the shell. For a clone, the script also defines the command `trainyard`.
    Raises CliError for an unknown shell."""
    if shell not in SHELLS:
        raise CliError(f"There is no completion for {shell!r}; there is for {', '.join(SHELLS)}.")
    made = BASH if shell == "bash" else get_completion_script(prog_name=NAME, complete_var=VARIABLE, shell=shell)
    made = f"{ZSH_STARTS}\n{made}" if shell == "zsh" else made
    if not clone:
        return f"{made}\n"
    answers = (
        f"env PYTHONPATH={shlex.quote(str(CLONE))} {shlex.quote(sys.executable)} -m {__package__.partition('.')[0]}"
    )
    call = re.compile(r"\$1(?= \))|\btrainyard(?=\)|\"$)", re.MULTILINE)  # where the script calls the program
    return f"{_function(shell)}\n{call.sub(lambda _: answers, made)}\n"


def _function(shell: str) -> str:
    start = f"{shlex.quote(sys.executable)} {shlex.quote(str(CLONE / 'trainyard.py'))}"
    if shell == "fish":
        return f"function {NAME}; {start} $argv; end"
    return f'{NAME}() {{ {start} "$@"; }}'
