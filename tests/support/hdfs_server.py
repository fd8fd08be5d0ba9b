"""A real HDFS for tests: a name node and a data node on loopback, written and read by WebHDFS.

Server(folder) raises java_server.Unavailable where java, mvn or the registry is missing."""
import json
import pathlib
import shutil
import urllib.error
import urllib.parse
import urllib.request

from java_server import JavaProcess, fetch_jars, run_java, start_on_free_ports, wait_until
from ports import free_ports

VERSION = "3.4.3"
ARTIFACTS = [("org.apache.hadoop", name, VERSION) for name in ("hadoop-common", "hadoop-hdfs", "hadoop-hdfs-client")]
BLOCK_BYTES = 1 << 20  # small, so that files have several
OPTIONS = ["-Djava.net.preferIPv4Stack=true", "--add-opens=java.base/java.lang=ALL-UNNAMED",
           "--add-opens=java.base/java.nio=ALL-UNNAMED"]
LOG = """\
log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%p %c{1} - %m%n
"""
WEB_PAGE = '<web-app version="3.0" xmlns="http://java.sun.com/xml/ns/javaee"/>'
DEADLINE_S = 60


def configuration(**properties):
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    return f"<configuration>{''.join(lines)}</configuration>"


class Server:
    """Its files are hdfs://`address`/... until close()."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        fetch_jars(self.folder, ARTIFACTS)
        (self.folder / "log4j.properties").write_text(LOG)
        for page in ("hdfs", "datanode", "static"):  # the jars have none
            page_folder = self.folder / "webapps" / page / "WEB-INF"
            page_folder.mkdir(parents=True)
            (page_folder / "web.xml").write_text(WEB_PAGE)
        start_on_free_ports(self.start)

    def start(self):
        web, rpc, data, data_web, data_rpc = free_ports(5)
        self.address = f"127.0.0.1:{web}"
        self.rpc_address = f"127.0.0.1:{rpc}"
        (self.folder / "core-site.xml").write_text(configuration(**{
            "fs.defaultFS": f"hdfs://{self.rpc_address}", "hadoop.tmp.dir": self.folder / "tmp"}))
        (self.folder / "hdfs-site.xml").write_text(configuration(**{
            "dfs.replication": 1, "dfs.blocksize": BLOCK_BYTES, "dfs.namenode.fs-limits.min-block-size": BLOCK_BYTES,
            "dfs.namenode.name.dir": self.folder / "name", "dfs.datanode.data.dir": self.folder / "data",
            "dfs.namenode.rpc-address": self.rpc_address, "dfs.namenode.http-address": self.address,
            "dfs.namenode.datanode.registration.ip-hostname-check": "false", "dfs.namenode.safemode.extension": 0,
            "dfs.datanode.hostname": "127.0.0.1", "dfs.datanode.address": f"127.0.0.1:{data}",
            "dfs.datanode.http.address": f"127.0.0.1:{data_web}", "dfs.datanode.ipc.address": f"127.0.0.1:{data_rpc}",
            "dfs.heartbeat.interval": 1, "dfs.datanode.scan.period.hours": -1}))
        for leftover in ("name", "data", "tmp"):
            shutil.rmtree(self.folder / leftover, ignore_errors=True)
        package = "org.apache.hadoop.hdfs.server"
        run_java(self.folder, f"{package}.namenode.NameNode", "-format", "-force", "-nonInteractive", options=OPTIONS)
        self.processes = [JavaProcess(self.folder, name, f"{package}.{name}.{main}", options=OPTIONS)
                          for name, main in (("namenode", "NameNode"), ("datanode", "DataNode"))]
        wait_until(self.is_writable, self.processes)

    def is_writable(self):
        try:
            self.write("/ready", b"ready")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def write(self, path, content):
        """Writes a file as the user who started the server."""
        self.ask("PUT", path, "CREATE", content, overwrite="true")

    def ask(self, method, path, operation, content=None, **parameters):
        user = pathlib.Path(self.folder).owner()
        query = urllib.parse.urlencode({"op": operation, "user.name": user, **parameters})
        url = f"http://{self.address}/webhdfs/v1{urllib.parse.quote(path)}?{query}"
        if content is not None:  # the name node names a data node
            with urllib.request.urlopen(urllib.request.Request(f"{url}&noredirect=true", method=method),
                                        timeout=DEADLINE_S) as answer:
                url = json.load(answer)["Location"]
        request = urllib.request.Request(url, data=content, method=method)
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return answer.read()

    def close(self):
        for process in self.processes:
            process.kill()
