"""A real broker of Kafka for tests: one node on loopback.

Server(folder) raises java_server.Unavailable where java, mvn or the registry is missing."""
import pathlib
import shutil

from java_server import JavaProcess, fetch_jars, run_java, start_on_free_ports, wait_until
from ports import free_ports

ARTIFACTS = [("org.apache.kafka", "kafka_2.13", "4.3.1"), ("org.slf4j", "slf4j-simple", "1.7.36")]
OPTIONS = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
           "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info"]
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


class Server:
    """Listens at `brokers` until close(). kill() is a crash, after which start() recovers at the same address."""

    def __init__(self, folder, partitions):
        self.folder = pathlib.Path(folder)
        self.partitions = partitions
        fetch_jars(self.folder, ARTIFACTS)
        start_on_free_ports(self.make)

    def make(self):
        """Starts an empty broker at a port of its own."""
        port, controller = free_ports(2)
        self.brokers = f"127.0.0.1:{port}"
        self.properties = self.folder / "server.properties"
        self.properties.write_text(PROPERTIES.format(port=port, controller=controller, folder=self.folder,
                                                     partitions=self.partitions))
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        run_java(self.folder, "kafka.tools.StorageTool", "format", "-t", "c2F0cmFwLWthZmthLXRlcw", "-c",
                 self.properties, options=OPTIONS)
        self.start()

    def start(self):
        self.process = JavaProcess(self.folder, "broker", "kafka.Kafka", self.properties, options=OPTIONS)
        wait_until(lambda: "Kafka Server started" in self.process.said(), [self.process])

    def kill(self):
        self.process.kill()

    def close(self):
        self.kill()
