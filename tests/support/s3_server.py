"""A real server of S3 for tests, S3Proxy, which checks the signatures of requests: one process on loopback that serves
files of a folder.

Server(folder) raises java_server.Unavailable where java, mvn or the registry is missing."""
import pathlib

from java_server import JavaProcess, fetch_jars, start_on_free_ports, wait_until
from ports import free_ports

ARTIFACTS = [("org.gaul", "s3proxy", "2.6.0")]
KEY, SECRET = "satrap", "secret-of-the-tests"
PROPERTIES = """\
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={key}
s3proxy.credential={secret}
s3proxy.ignore-unknown-headers=true
jclouds.provider=filesystem
jclouds.filesystem.basedir={data}
"""
LOG = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%msg%n</pattern></encoder>
  </appender>
  <root level="info"><appender-ref ref="out"/></root>
</configuration>
"""


class Server:
    """Serves `data`/BUCKET/KEY at `endpoint` until close()."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "data"
        self.data.mkdir()
        fetch_jars(self.folder, ARTIFACTS)
        (self.folder / "logback.xml").write_text(LOG)
        start_on_free_ports(self.start)

    def start(self):
        [port] = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        properties = self.folder / "s3proxy.conf"
        properties.write_text(PROPERTIES.format(port=port, key=KEY, secret=SECRET, data=self.data))
        self.process = JavaProcess(self.folder, "s3proxy", "org.gaul.s3proxy.Main", "--properties", properties)
        wait_until(lambda: "Started Server" in self.process.said(), [self.process])

    def environment(self):
        """What a client needs."""
        return {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_EC2_METADATA_DISABLED": "true"}

    def close(self):
        self.process.kill()
