"""A real broker of Kafka for tests: one node on loopback, whose jars Maven fetches once into its cache (~/.m2).

Server(folder) raises Unavailable where java, mvn or the registry is missing."""
import contextlib
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time

VERSION = "4.3.1"
DEADLINE_S = 300
POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>kafka-broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
    </dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/data
num.partitions={partitions}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
num.network.threads=2
num.io.threads=2
background.threads=2
log.cleaner.dedupe.buffer.size=16777216
"""


class Unavailable(Exception):
    """Why there can be no broker on this machine."""


def free_ports(number):
    """Ports that the system gives to nobody who asks for any."""
    ports = []
    while len(ports) < number:
        port = random.SystemRandom().randrange(20_000, 30_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports.append(port)
    return ports


class Server:
    """Listens at `brokers` until close(). kill() is a crash, after which start() recovers at the same address."""

    def __init__(self, folder, partitions):
        for program in ("java", "mvn"):
            if shutil.which(program) is None:
                raise Unavailable(f"{program} is not installed")
        self.folder = pathlib.Path(folder)
        self.jars = self.folder / "jars"
        self.process = None
        self.fetch_jars()
        for attempts_left in (2, 1, 0):
            self.format(partitions)
            try:
                return self.start()
            except RuntimeError as error:  # another program may have taken a port
                if attempts_left == 0 or "BindException" not in str(error):
                    raise

    def format(self, partitions):
        """Makes an empty broker at a port of its own."""
        port, controller = free_ports(2)
        self.brokers = f"127.0.0.1:{port}"
        self.properties = self.folder / "server.properties"
        self.properties.write_text(PROPERTIES.format(port=port, controller=controller, folder=self.folder,
                                                     partitions=partitions))
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        self.run_java("kafka.tools.StorageTool", "format", "-t", "c2F0cmFwLWthZmthLXRlcw", "-c", self.properties)

    def fetch_jars(self):
        (self.folder / "pom.xml").write_text(POM)
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
        command = ["mvn", "-B", "-q", "-f", self.folder / "pom.xml", plugin, "-DincludeScope=runtime",
                   f"-DoutputDirectory={self.jars}"]
        # Without the network first: what is in the cache does not change.
        for offline in (["-o"], []):
            try:
                done = subprocess.run([*command, *offline], capture_output=True, text=True, timeout=DEADLINE_S)
            except subprocess.TimeoutExpired:
                raise Unavailable(f"mvn cannot fetch the jars within {DEADLINE_S} s") from None
            if done.returncode == 0:
                return
        raise Unavailable(f"mvn cannot fetch the jars: {(done.stdout + done.stderr)[-500:]}")

    def java(self, *arguments):
        return ["java", "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
                "-cp", f"{self.jars}/*", *map(str, arguments)]

    def run_java(self, *arguments):
        done = subprocess.run(self.java(*arguments), capture_output=True, text=True, timeout=DEADLINE_S)
        if done.returncode != 0:
            raise RuntimeError(f"{arguments[0]}: {done.stdout}{done.stderr}")

    def start(self):
        log = self.folder / "broker.log"
        with open(log, "w") as out:
            self.process = subprocess.Popen(self.java("kafka.Kafka", self.properties), stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + DEADLINE_S
        while "Kafka Server started" not in log.read_text(errors="replace"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"the broker did not start: {log.read_text(errors='replace')[-20_000:]}")
            time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE_S)

    def close(self):
        if self.process.poll() is None:
            self.kill()
