# SPDX-License-Identifier: MIT
"""A directory that is filled file by file."""
import os


class Tree:
    def __init__(self, root, objects):
        self.root, self.objects = root, objects

    def path(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def put(self, name, data, mode=0o644):
        path = self.path(name)
        assert not os.path.exists(path), name
        with open(path, "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        os.chmod(path, mode)

    def below(self, name):
        """The same, NAME being the root."""
        return Tree(os.path.join(self.root, name), self.objects)
