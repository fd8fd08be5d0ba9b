"""A copy of the tree, and additions to it."""

import os
import pathlib
import shutil
import subprocess

from places import Addition, Edit, NewFile

ROOT = pathlib.Path(__file__).resolve().parents[3]


class CopiedTree:
    """The files that git knows, in a folder of their own; .venv is that of the checkout."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                               capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).exists():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name, follow_symlinks=False)
        if (ROOT / ".venv").exists():
            (self.root / ".venv").symlink_to(ROOT / ".venv")
        self.build_folder = self.root / "build" / "release"

    def replace(self, file, old, new):
        path = self.root / file
        if not path.is_file():
            raise AssertionError(f"there is no {file}")
        text = path.read_text()
        if text.count(old) != 1:
            raise AssertionError(f"{file}: this text is there {text.count(old)} times instead of once:\n{old}")
        path.write_text(text.replace(old, new))

    def put(self, place: Edit | NewFile):
        if isinstance(place, Edit):
            for old, new in [(place.old, place.new), *place.beside]:
                self.replace(place.file, old, new)
            return
        path = self.root / place.file
        if path.exists():
            raise AssertionError(f"{place.file} is there already")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(place.text)

    def add(self, addition: Addition):
        for place in [*addition.places, *filter(None, [addition.test])]:
            self.put(place)

    def keep_only(self, folder, pattern, kept):
        """Removes other tests, which would take minutes to compile."""
        for path in (self.root / folder).glob(pattern):
            if path.relative_to(self.root).as_posix() not in kept:
                path.unlink()

    def build(self, *targets):
        """The preset release, but unoptimised: nothing is measured here, and compilers take most of the time."""
        jobs = os.environ.get("SATRAP_JOBS") or str(os.cpu_count())
        for command in (["cmake", "--preset", "release", "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG"],
                        ["cmake", "--build", "build/release", "-j", jobs, "--target", *targets]):
            done = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                raise AssertionError(f"{' '.join(command)}\n{done.stdout[-8000:]}")
