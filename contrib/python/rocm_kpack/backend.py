# SPDX-License-Identifier: MIT
"""Makes the wheel of the pyproject.toml where it runs, for pip.

The packages are Python files and nothing else: so pip needs no setuptools and no network.  It is
here because older ones copy this directory alone before they build what is in it.
"""
import base64
import hashlib
import os
import re
import zipfile


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with open("pyproject.toml") as f:
        text = f.read()
    project = dict(re.findall(r'^([a-z-]+) = "(.*)"$', text, re.M))
    needs = re.findall(r'^dependencies = \["(.*)"\]$', text, re.M)
    name = f"{project['name'].replace('-', '_')}-{project['version']}"
    info = f"{name}.dist-info/"
    files = {}
    for top, _, names in sorted(os.walk(project["package"])):
        for file in sorted(names):
            if file.endswith((".py", ".typed")):
                with open(os.path.join(top, file), "rb") as f:
                    files[f"{top}/{file}"] = f.read()
    files[info + "METADATA"] = "\n".join([
        "Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}",
        f"Summary: {project['description']}", "License: MIT", f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {need}" for need in needs), ""]).encode()
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: kpackfs\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    wheel = f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as z:
        for path, data in files.items():
            item = zipfile.ZipInfo(path)  # of 1980: equal trees make equal wheels
            item.external_attr = 0o644 << 16
            z.writestr(item, data)
    return wheel
