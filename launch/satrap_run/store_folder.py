"""The folder in the temporary directory that holds the stores of a job, and what killed launchers left there.

The launcher holds a lock on a file in its folder, which the kernel releases when it dies: a folder whose lock can be
had is nobody's. Where the folder is shared by machines, locks may be each machine's own; so only folders of this
machine, since it was started, are looked at.
"""
import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile

PREFIX = "satrap-run-"


def boot_id():
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def lock(folder):
    """Creates the folder's lock and takes it. Returns its descriptor; None if a sweep was faster."""
    path = folder / "lock"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        os.write(fd, boot_id().encode())
        with contextlib.suppress(OSError):  # where there are no locks, there is no sweep either
            fcntl.flock(fd, fcntl.LOCK_EX)  # a sweep may hold it, for as long as it removes the folder
        if path.exists():
            return fd
        os.close(fd)
    except FileNotFoundError:
        pass
    return None


class StoreFolder:
    """A folder that only this user can read; a context, at whose end it is removed."""

    def __enter__(self):
        remove_leftovers()
        self._lock = None
        while self._lock is None:
            self._path = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock = lock(self._path)
        return self._path

    def __exit__(self, *_):
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)


def remove_leftovers():
    for folder in pathlib.Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            if folder.lstat().st_uid == os.geteuid():
                remove_if_left(folder)
        except OSError:
            pass  # in use, being removed by another, or not ours to remove


def remove_if_left(folder):
    """OSError if it is not a folder, has no lock, or its launcher lives."""
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fd = os.open("lock", os.O_RDWR | os.O_NOFOLLOW, dir_fd=folder_fd)
    finally:
        os.close(folder_fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.read(fd, 100).decode(errors="replace") == boot_id():
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)
