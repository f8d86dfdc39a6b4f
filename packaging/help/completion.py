#!/usr/bin/env python3
"""Writes the completion of a shell, made from the help of the program: completion.py bash|zsh|fish PROGRAM"""

import sys

import help_text

HEAD = "# Completion of arbalest for {shell}. Made from the program's help by packaging/help/completion.py.\n"
BASH = r"""
_arbalest() {
  local cur words_before="" word
  cur=${COMP_WORDS[COMP_CWORD]}
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " ${_arbalest_commands[$words_before]} " in *" $word "*) words_before="${words_before:+$words_before }$word" ;; esac
  done
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_arbalest_options[$words_before]}" -- "$cur")
  elif [ -n "${_arbalest_commands[$words_before]}" ]; then
    mapfile -t COMPREPLY < <(compgen -W "${_arbalest_commands[$words_before]}" -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames
  fi
}
"""


def flags_of(command):
    return [flag for option in command.options for flag in option.flags]


def names_of(command):
    return [entry.name for entry in command.subcommands]


def table(name, commands, values):
    """An associative array of bash from the words of a command to the values."""
    rows = [f"  [{' '.join(command.words)!r}]={' '.join(values(command))!r}" for command in commands[1:]]
    rows.insert(0, f"  ['']={' '.join(values(commands[0]))!r}")
    # Bash takes no empty subscript in a list, so the program itself is the subscript "-".
    return f"declare -gA {name}=(\n" + "\n".join(rows) + "\n)\n"


def bash(commands):
    tables = table("_arbalest_commands", commands, names_of) + table("_arbalest_options", commands, flags_of)
    text = (tables + BASH).replace("['']", "['-']")
    return text.replace("[$words_before]", "[${words_before:--}]")


def zsh(commands):
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash(commands)


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(commands):
    lines = []
    for command in commands:
        seen = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in command.words).removeprefix("; and ")
        own = " ".join(names_of(command))
        if own:
            when = f"{seen}; and not __fish_seen_subcommand_from {own}" if seen else "__fish_use_subcommand"
            for entry in command.subcommands:
                lines.append(f"complete -c arbalest -f -n {fish_text(when)} -a {entry.name} -d {fish_text(entry.text)}")
        for option in command.options:
            when = seen or "__fish_use_subcommand"
            names = "".join(f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in option.flags)
            takes = " -r" if option.value else ""
            lines.append(f"complete -c arbalest -n {fish_text(when)}{names}{takes} -d {fish_text(option.text)}")
    return "\n".join(lines) + "\n"


SHELLS = {
    "bash": lambda commands: bash(commands) + "complete -F _arbalest arbalest\n",
    "zsh": lambda commands: zsh(commands) + "complete -F _arbalest arbalest\n",
    "fish": fish,
}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in SHELLS:
        print(__doc__, file=sys.stderr)
        return 2
    shell, program = sys.argv[1:]
    sys.stdout.write(HEAD.format(shell=shell) + SHELLS[shell](help_text.read_program(program)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
