"""Writes a wheel of the Python package with the library and the command, the same bytes for the same files.

Usage: wheel.py VERSION PACKAGE_DIR LIBRARY COMMAND OUT_DIR      (SOURCE_DATE_EPOCH: the time of all files)

`python/pyproject.toml` has the metadata. `maturin build` would compile library and command with other features of
their dependencies than `cargo build` did, so most of it twice; this packs what is built.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib
import zipfile


def newest_glibc(*files):
    """Returns the newest version of glibc that the files need, as a pair of numbers."""
    text = "".join(
        subprocess.run(["objdump", "-T", file], check=True, capture_output=True, text=True).stdout for file in files
    )
    return max((int(major), int(minor)) for major, minor in re.findall(r"\(GLIBC_(\d+)\.(\d+)", text))


def metadata(project, version, readme):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        *(f"Classifier: {text}" for text in project["classifiers"]),
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in project["license-files"]),
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + readme


def main(version, package, library, command, out):
    root = pathlib.Path(package)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    tag = "cp310-abi3-manylinux_{}_{}_{}".format(*newest_glibc(library, command), os.uname().machine)
    info, scripts = f"infold-{version}.dist-info", f"infold-{version}.data/scripts"
    files = {}
    for path in sorted((root / "package").rglob("*")):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            files[str(path.relative_to(root / "package"))] = (path.read_bytes(), 0o644)
    files["infold/_infold.abi3.so"] = (pathlib.Path(library).read_bytes(), 0o755)
    files[f"{scripts}/infold"] = (pathlib.Path(command).read_bytes(), 0o755)
    files[f"{info}/METADATA"] = (metadata(project, version, (root / "README.md").read_text()).encode(), 0o644)
    wheel = f"Wheel-Version: 1.0\nGenerator: infold ({version})\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)
    for name in project["license-files"]:
        files[f"{info}/licenses/{name}"] = ((root / name).read_bytes(), 0o644)
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, (data, _) in files.items())
    files[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), 0o644)

    # A zip file knows no time before 1980, and only even seconds.
    when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315619200))[:6]
    target = pathlib.Path(out) / f"infold-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            archive.writestr(entry, data)
    print(target)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main(*sys.argv[1:6])
