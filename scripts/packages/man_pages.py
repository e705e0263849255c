"""Writes the man pages of `infold` and of each of its commands, from what `--help` prints.

Usage: man_pages.py INFOLD DIRECTORY VERSION DATE
"""

import os
import re
import subprocess
import sys

HEADING = re.compile(r"^([A-Z][A-Za-z ]*):$")
# An option, an argument or a command with its description behind two spaces, or on the next lines.
ENTRY = re.compile(r"^ {2,6}(\S.*?)(?: {2,}(\S.*))?$")


def help_of(infold, path):
    # Wide enough that no description is wrapped.
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "COLUMNS": "1000", "NO_COLOR": "1"}
    command = [infold, *path, "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def sections(text):
    """Returns the text above the first heading, and each heading with its lines."""
    parts = [("", [])]
    for line in text.rstrip().split("\n"):
        usage = re.match(r"^Usage: (.*)$", line)
        heading = HEADING.match(line)
        if usage:
            parts.append(("Usage", [usage[1]]))
        elif heading:
            parts.append((heading[1], []))
        else:
            parts[-1][1].append(line)
    return parts


def entries(lines):
    """Returns each option or command with its description."""
    found = []
    for line in lines:
        is_more = line.startswith(" " * 10)
        entry = None if is_more else ENTRY.match(line)
        if entry:
            found.append((entry[1], [entry[2] or ""]))
        elif line.strip() and found:
            said, text = found[-1][1], line.strip()
            # Possible values stand on lines of their own.
            if text.startswith("- "):
                said.append(text)
            else:
                said[-1] = f"{said[-1]} {text}".strip()
    return found


def commands_of(parts):
    listed = [entries(lines) for name, lines in parts if name.endswith("ommands")]
    return [name.split()[0].rstrip(",") for group in listed for name, _ in group if name != "help"]


def page(path, text, version, date):
    name = "-".join(["infold", *path])
    parts = sections(text)
    about = " ".join(line.strip() for line in parts[0][1] if line.strip())
    short = about.split(". ")[0].rstrip(".")
    out = [
        f'.TH "{name.upper()}" "1" "{date}" "infold {version}" "Infold"',
        ".SH NAME",
        f"{escape(name)} \\- {escape(short)}",
    ]
    below = []
    for heading, lines in parts[1:]:
        if heading == "Usage":
            out += [".SH SYNOPSIS", f".B {escape(lines[0])}", ".SH DESCRIPTION", escape(about)]
            below = lines[1:]
            continue
        out.append(f".SH {heading.upper()}")
        if heading in ("Options", "Arguments") or heading.endswith("ommands"):
            table, rest = split_table(lines)
            for term, description in entries(table):
                out += [".TP", f"\\fB{escape(term)}\\fR", "\n.br\n".join(map(escape, description))]
            if rest:
                out += [".SH NOTES", *literal(rest)]
        else:
            out += literal(lines)
    if any(line.strip() for line in below):
        out += [".PP", *literal(below)]
    if path:
        out += [".SH SEE ALSO", "\\fBinfold\\fR(1)"]
    else:
        listed = ", ".join(f"\\fBinfold\\-{escape(name)}\\fR(1)" for name in commands_of(parts))
        out += [".SH SEE ALSO", listed]
    return name, "\n".join(out) + "\n"


def split_table(lines):
    """Splits off the text below a table, which begins at the margin."""
    for at, line in enumerate(lines):
        if line and not line.startswith(" "):
            return lines[:at], lines[at:]
    return lines, []


def literal(lines):
    while lines and not lines[0].strip():
        lines = lines[1:]
    return [".nf", *(escape(line) for line in lines), ".fi"]


def write_pages(infold, directory, version, date, path=()):
    text = help_of(infold, path)
    name, roff = page(path, text, version, date)
    with open(os.path.join(directory, f"{name}.1"), "w", encoding="utf-8") as file:
        file.write(roff)
    for command in commands_of(sections(text)):
        write_pages(infold, directory, version, date, (*path, command))


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    write_pages(*sys.argv[1:5])
