"""Real servers in Java for tests, on loopback, whose jars Maven fetches once into its cache (~/.m2)."""
import pathlib
import shutil
import signal
import subprocess
import time

DEADLINE_S = 300
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>server</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


class Unavailable(Exception):
    """Why there can be no such server on this machine."""


def fetch_jars(folder, artifacts):
    """Copies the jars of (group, artifact, version)s, and those they need, to folder/jars.

    Raises Unavailable where java, mvn or the registry is missing."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed")
    folder = pathlib.Path(folder)
    (folder / "pom.xml").write_text(POM.format(dependencies="".join(DEPENDENCY.format(*a) for a in artifacts)))
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    command = ["mvn", "-B", "-q", "-f", folder / "pom.xml", plugin, "-DincludeScope=runtime",
               f"-DoutputDirectory={folder / 'jars'}"]
    # Without the network first: what is in the cache does not change.
    for offline in (["-o"], []):
        try:
            done = subprocess.run([*command, *offline], capture_output=True, text=True, timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"mvn cannot fetch the jars within {DEADLINE_S} s") from None
        if done.returncode == 0:
            return
    raise Unavailable(f"mvn cannot fetch the jars: {(done.stdout + done.stderr)[-500:]}")


def start_on_free_ports(make):
    """make(), which chooses ports and starts at them; again if another program has taken one."""
    for attempts_left in (2, 1, 0):
        try:
            return make()
        except RuntimeError as error:
            if attempts_left == 0 or not any(word in str(error) for word in ("BindException", "in use")):
                raise


class JavaProcess:
    """A main class of the jars in `folder`, running until kill(). Its output is in `folder`/`name`.log."""

    def __init__(self, folder, name, *arguments, options=()):
        self.log = pathlib.Path(folder) / f"{name}.log"
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(command(folder, *arguments, options=options), stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=subprocess.STDOUT)

    def said(self):
        return self.log.read_text(errors="replace")

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(DEADLINE_S)


def wait_until(is_ready, processes):
    """Kills the JavaProcesses if one ends, or if is_ready() does not become true: raises RuntimeError with what that
    one, or each, said."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_ready():
        ended = [process for process in processes if process.process.poll() is not None]
        if ended or time.monotonic() > deadline:
            for process in processes:
                process.kill()
            raise RuntimeError("\n".join(f"{process.log.stem} did not start: {process.said()[-20_000:]}"
                                         for process in ended or processes))
        time.sleep(0.05)


def command(folder, *arguments, options=()):
    return ["java", "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options,
            "-cp", f"{folder}:{folder}/jars/*", *map(str, arguments)]


def run_java(folder, *arguments, options=()):
    """Runs a main class to its end."""
    done = subprocess.run(command(folder, *arguments, options=options), capture_output=True, text=True,
                          timeout=DEADLINE_S)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments[0]}: {done.stdout}{done.stderr}")
