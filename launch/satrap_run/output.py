"""The output of processes: log files, one merged stream, and rank 0's standard output.

Nothing here blocks the event loop, even if nobody reads the launcher's standard streams: pending
output is kept, up to MAX_PENDING_BYTES; then nothing is read from the processes until there is room.
"""
import fcntl
import os
import re
import stat
import struct
import sys
import termios
import time
import tty

MAX_PENDING_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 16
READ_BYTES = 1 << 16
ERASE_LINE = b"\r\x1b[K"
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2(?=[\x80-\x9f])")  # a terminal would obey it
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
COLOURS = {"rank": 32, "shard": 36, "loader": 34, "store": 35, "satrap-run": 33}


def reopen_without_blocking(fd):
    """A separate descriptor of the same pipe or terminal: O_NONBLOCK on fd would affect others too."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        try:
            return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            pass
    return os.dup(fd)


class Sink:
    """One of the launcher's own output streams."""

    def __init__(self, loop, fd, on_room):
        self.is_terminal = os.isatty(fd)
        self._loop = loop
        self._fd = reopen_without_blocking(fd)
        self._on_room = on_room
        self._pending = bytearray()
        self._waiting = False
        self._broken = False  # nobody reads it any more

    @property
    def is_full(self):
        return len(self._pending) > MAX_PENDING_BYTES

    def write(self, data):
        if self._broken:
            return
        self._pending += data
        if not self._waiting:
            self._flush()

    def _flush(self):
        was_full = self.is_full
        try:
            while self._pending:
                del self._pending[:os.write(self._fd, bytes(self._pending[:READ_BYTES]))]
        except BlockingIOError:
            pass
        except OSError:
            self._broken = True
            self._pending.clear()
        if bool(self._pending) != self._waiting:
            self._waiting = bool(self._pending)
            if self._waiting:
                self._loop.add_writer(self._fd, self._flush)
            else:
                self._loop.remove_writer(self._fd)
        if was_full and not self.is_full:
            self._on_room()

    def close(self, deadline):
        while self._pending and time.monotonic() < deadline:
            time.sleep(0.01)
            self._flush()
        if self._waiting:
            self._loop.remove_writer(self._fd)
        os.close(self._fd)


class LogFile:
    """Everything one process wrote. A full disk ends the file, not the job."""

    def __init__(self, path, header, say):
        self.path = path
        self._say = say
        self._fd = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            self._fail(error)
        self.write(f"# {time.strftime('%Y-%m-%d %H:%M:%S')} {header}\n".encode())

    def write(self, data):
        try:
            while self._fd is not None and data:
                data = data[os.write(self._fd, data):]
        except OSError as error:
            self._fail(error)

    def close(self):
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _fail(self, error):
        self._say(f"{self.path}: {error.strerror}; continuing without this log file")
        self.close()


class Output:
    """The launcher's standard streams, and the flow of all processes' streams into them."""

    def __init__(self, loop):
        self._loop = loop
        self._err = Sink(loop, sys.stderr.fileno(), self._resume)
        self._out = Sink(loop, sys.stdout.fileno(), self._resume)
        self._colour = self._err.is_terminal and not os.environ.get("NO_COLOR")
        self._progress = b""  # the last line of a terminal
        self._streams = set()
        self._paused = False
        self.keep_up = False  # drop what finds no room instead of letting processes wait

    @property
    def is_terminal(self):
        return self._err.is_terminal

    def say(self, text):
        for line in text.splitlines():
            self.line("satrap-run", "satrap-run", line.encode())

    def line(self, kind, name, text):
        """Writes a whole line of a process."""
        if self.keep_up and self._err.is_full:
            return
        label = self._label(kind, name)
        if self._progress:
            self._err.write(ERASE_LINE + label + text + b"\n" + self._progress)
        else:
            self._err.write(label + text + b"\n")

    def progress(self, kind, name, text):
        """Shows the line that a process keeps rewriting."""
        if text or self._progress:
            self._progress = self._label(kind, name) + text if text else b""
            self._err.write(ERASE_LINE + self._progress)

    def pass_through(self, data):
        if self.keep_up and self._out.is_full:
            return
        if self._progress and self._out.is_terminal:
            self._err.write(ERASE_LINE)
            self._progress = b""
        if self._out.is_terminal:
            data = CONTROL.sub(lambda found: b"\\x%02x" % found[0][0], data)
        self._out.write(data)

    def end_stdout(self, text):
        """Writes text and closes standard output, for the shell that waits for its end."""
        self._out.write(text.encode())
        self._out.close(time.monotonic() + 5)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        self._out = Sink(self._loop, null, self._resume)
        os.close(null)

    def add(self, stream):
        self._streams.add(stream)
        stream.resume()

    def remove(self, stream):
        self._streams.discard(stream)

    def check_room(self):
        """Makes all processes wait while nobody reads the merged stream."""
        if (self._err.is_full or self._out.is_full) and not self._paused and not self.keep_up:
            self._paused = True
            for stream in self._streams:
                stream.pause()

    def drop_what_finds_no_room(self):
        self.keep_up = True
        self._resume()

    def close(self):
        if self._progress:
            self._err.write(ERASE_LINE)
        deadline = time.monotonic() + (0.2 if self.keep_up else 5.0)
        self._err.close(deadline)
        self._out.close(deadline)

    def _resume(self):
        self._paused = False
        for stream in list(self._streams):
            stream.resume()

    def _label(self, kind, name):
        if self._colour:
            return f"\x1b[{COLOURS[kind]}m[{name}]\x1b[0m ".encode()
        return f"[{name}] ".encode()


class Stream:
    """One output stream of a process: all of it to the log, whole lines to the merged stream."""

    def __init__(self, loop, output, kind, name, log, pass_through=False, on_line=None):
        self._loop, self._output, self._log = loop, output, log
        self._kind, self._name = kind, name
        self._pass_through = pass_through
        self._on_line = on_line
        self._partial = b""
        self._read_fd, self.write_fd = self._open()
        os.set_blocking(self._read_fd, False)
        self._open_fd = True
        output.add(self)

    def _open(self):
        return os.pipe()

    def close_write_end(self):
        """Called once the process has the stream."""
        os.close(self.write_fd)

    def pause(self):
        if self._open_fd:
            self._loop.remove_reader(self._read_fd)

    def resume(self):
        if self._open_fd:
            self._loop.add_reader(self._read_fd, self._read)

    def finish(self):
        """After the process has ended, reads what is still in the pipe, not what others may yet write."""
        for _ in range(64):
            if not self._open_fd or not self._read():
                break
        self._close()

    def _read(self):
        try:
            data = os.read(self._read_fd, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # how a pseudo terminal tells its end
            data = b""
        if not data:
            self._close()
            return False
        self._take(data)
        self._output.check_room()
        return True

    def _take(self, data):
        self._log.write(data)
        if self._pass_through:
            self._output.pass_through(data)
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._emit(line)
        while len(self._partial) > MAX_LINE_BYTES:
            self._emit(self._partial[:MAX_LINE_BYTES])
            self._partial = self._partial[MAX_LINE_BYTES:]

    def _emit(self, line):
        # Rewritten text is gone, as it would be on a terminal.
        text = line.rstrip(b"\r").rsplit(b"\r", 1)[-1]
        self._output.line(self._kind, self._name, text)
        if self._on_line is not None:
            self._on_line(text.decode(errors="replace"))

    def _close(self):
        if not self._open_fd:
            return
        self._loop.remove_reader(self._read_fd)
        os.close(self._read_fd)
        self._open_fd = False
        self._output.remove(self)
        if self._partial:
            self._emit(self._partial)
            self._partial = b""


class TerminalStream(Stream):
    """Standard error of rank 0 if the launcher's is a terminal: the rank sees a terminal too and shows
    its progress line, which stays below the lines of all processes."""

    def _open(self):
        read_fd, write_fd = os.openpty()
        tty.setraw(write_fd)
        self._read_fd = read_fd
        self.fit()
        return read_fd, write_fd

    def fit(self):
        """Tells the rank how wide its line may be."""
        try:
            size = fcntl.ioctl(sys.stderr.fileno(), termios.TIOCGWINSZ, bytes(8))
            rows, columns, *_ = struct.unpack("HHHH", size)
            room = max(columns - len(f"[{self._name}] "), 20) if columns else 0
            fcntl.ioctl(self._read_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, room, 0, 0))
        except OSError:
            pass

    def _take(self, data):
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r").rsplit(ERASE_LINE, 1)[-1]
            self._log.write(ESCAPE.sub(b"", text) + b"\n")
            self._output.progress(self._kind, self._name, b"")
            self._emit(text)
        if ERASE_LINE in self._partial:
            self._partial = ERASE_LINE + self._partial.rsplit(ERASE_LINE, 1)[-1]
            self._output.progress(self._kind, self._name, self._partial[len(ERASE_LINE):])

    def _close(self):
        if self._open_fd and self._partial.startswith(ERASE_LINE):
            self._output.progress(self._kind, self._name, b"")
            self._partial = b""
        super()._close()
