"""A server that speaks as much of S3 and of WebHDFS as a job needs, in the threads of the test, and makes mistakes.

It checks no signature: tests/process/stores_test.py uses real servers."""
import contextlib
import datetime
import functools
import http.server
import json
import ssl
import threading
import urllib.parse
import zlib
from xml.sax.saxutils import escape

from store_writes import Writes

TRICKLE_S = 0.2  # between bytes
DEADLINE_S = 300  # of a stalled answer, whose client should have gone long before


class Server:
    """Serves `files`, {"folder/name": bytes}, as s3://bucket/... and hdfs://`address`/... until close().

    `faults` are taken by the next reads, one each: reset, truncate, stall, half, longer, 500, 503, 403, null (500
    without a message), 301, 400, trickle (a byte now and then, for ever). `changes` is called before each read,
    `looked` once the answer to a HEAD request of S3 is known; `asked` has the (method, headers) of the requests of
    S3 for an object. `claimed_bytes` is what HDFS says of every file, unless None, and `stray_keys` are listed by S3
    too. If not `knows_ranges`, it sends whole objects. `write_fault`: see Writes."""

    def __init__(self):
        self.files = {}
        self.faults = []
        self.changes = lambda: None
        self.looked = lambda: None
        self.asked, self.knows_ranges = [], True
        self.claimed_bytes, self.stray_keys = None, []
        self.reads = 0
        self.write_fault = lambda key: None
        self.uploads, self.parts = 0, {}
        self.lock = threading.Lock()
        self.is_trickling = threading.Event()
        self.is_closing = threading.Event()
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.store = self
        self.address = f"127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def environment(self):
        return {"AWS_ENDPOINT_URL": f"http://{self.address}", "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests", "AWS_EC2_METADATA_DISABLED": "true"}

    def use_tls(self, certificate, key):
        """Before the first request."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)

    def url(self, scheme, path):
        return f"{scheme}://{'bucket' if scheme == 's3' else self.address}/{path}"

    def next_fault(self):
        with self.lock:
            self.reads += 1
            self.changes()
            return self.faults.pop(0) if self.faults else None

    def children(self, folder):
        """(name, content) of what is in it; the content of a folder is None."""
        prefix = f"{folder}/" if folder else ""
        found = {}
        for path, content in self.files.items():
            if path.startswith(prefix):
                name, slash, _ = path[len(prefix):].partition("/")
                if name:  # else it is the object that stands for the folder
                    found[name] = None if slash else content
        return sorted(found.items())

    def close(self):
        self.is_closing.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@functools.lru_cache(maxsize=8)
def crc_of(content):
    """Of a large file it would take longer than sending a piece of it."""
    return zlib.crc32(content)


def modified_s(content):
    """Follows from the content, so that a file that changes has another time."""
    return 1_700_000_000 + crc_of(content) % 10_000_000


class Handler(Writes, http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is sent in two parts

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer_s3()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path).strip("/")
        if path.startswith("webhdfs/v1"):
            self.answer_hdfs(path.removeprefix("webhdfs/v1").strip("/"))
        else:
            self.answer_s3()

    def send(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(ConnectionError):  # the client has gone
                self.wfile.write(body)

    def send_bytes(self, fault, status, body, refuse, **headers):
        """The answer to a read, or what a fault makes of it."""
        store = self.server.store
        if fault is None:
            return self.send(status, body, **headers)
        if fault.isdigit():
            return refuse(int(fault))
        if fault == "null":
            return refuse(500, message=None)
        if fault == "half":
            return self.send(status, body[:len(body) // 2], **headers)
        if fault == "longer":
            return self.send(status, body + b"and more", **headers)
        self.close_connection = True
        if fault != "reset":
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if fault != "trickle":
                self.wfile.write(body[:len(body) // 2])
            self.wfile.flush()
        if fault == "trickle":
            store.is_trickling.set()
            with contextlib.suppress(OSError):  # the client has gone
                for i in range(len(body)):
                    if store.is_closing.wait(TRICKLE_S):
                        break
                    self.wfile.write(body[i:i + 1])
        if fault == "stall":
            store.is_closing.wait(DEADLINE_S)

    def refuse_s3(self, status, message="as asked for"):
        code = {301: "PermanentRedirect", 400: "ExpiredToken", 403: "AccessDenied", 404: "NoSuchKey",
                503: "SlowDown"}.get(status, "InternalError")
        self.send(status, f"<Error><Code>{code}</Code><Message>{message or ''}</Message></Error>".encode(),
                  Content_Type="application/xml")

    def answer_s3(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        _, _, key = urllib.parse.unquote(url.path).lstrip("/").partition("/")
        store = self.server.store
        if query.get("list-type") == "2":
            return self.list_s3(query.get("prefix", ""), "delimiter" in query)
        with store.lock:
            store.asked.append((self.command, dict(self.headers)))
        fault = store.next_fault() if self.command == "GET" else None
        content = store.files.get(key)
        if content is None:
            return self.refuse_s3(404)
        headers = {"ETag": f'"{crc_of(content):08x}"',
                   "Last_Modified": self.date_time_string(modified_s(content))}
        if self.command == "HEAD":
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(content)))
            store.looked()
            return self.end_headers()
        if not store.knows_ranges:
            return self.send_bytes(fault, 200, content, self.refuse_s3, **headers)
        begin, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        begin, last = int(begin), min(int(last), len(content) - 1)
        if begin > last:
            return self.send(416, Content_Range=f"bytes */{len(content)}")
        headers["Content_Range"] = f"bytes {begin}-{last}/{len(content)}"
        return self.send_bytes(fault, 206, content[begin:last + 1], self.refuse_s3, **headers)

    def list_s3(self, prefix, is_folder):
        entries = []
        files = self.server.store.files
        found = self.server.store.children(prefix.rstrip("/")) if is_folder else [
            (key.removeprefix(prefix), content) for key, content in files.items() if key.startswith(prefix)]
        for name, content in found:
            path = escape(f"{prefix}{name}")
            entries.append(f"<CommonPrefixes><Prefix>{path}/</Prefix></CommonPrefixes>" if content is None else
                           f"<Contents><Key>{path}</Key><Size>{len(content)}</Size><LastModified>"
                           f"{iso_time(modified_s(content))}</LastModified></Contents>")
        entries += [f"<Contents><Key>{escape(key)}</Key><Size>9</Size><LastModified>{iso_time(0)}</LastModified></Contents>"
                    for key in self.server.store.stray_keys]
        self.send(200, f"<ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>{len(entries)}</KeyCount>"
                       f"{''.join(entries)}</ListBucketResult>".encode(), Content_Type="application/xml")

    def refuse_hdfs(self, status, message="as asked for\n\tat Some.java"):
        name = {403: "AccessControlException", 404: "FileNotFoundException"}.get(status, "IOException")
        body = {"RemoteException": {"exception": name if message else None, "message": message}}
        self.send(status, json.dumps(body).encode(), Content_Type="application/json")

    def answer_hdfs(self, path):
        store = self.server.store
        operation = self.query()["op"]
        content = store.files.get(path)
        if operation == "LISTSTATUS":
            children = store.children(path)
            statuses = [status_of(name, found) for name, found in children]
            return self.send(200, json.dumps({"FileStatuses": {"FileStatus": statuses}}).encode())
        if content is None and not store.children(path):
            return self.refuse_hdfs(404)
        if operation == "GETFILESTATUS":
            status = status_of("", content)
            if store.claimed_bytes is not None:
                status["length"] = store.claimed_bytes
            return self.send(200, json.dumps({"FileStatus": status}).encode())
        if "data" not in self.query():  # the name node sends the reader to a data node
            return self.send(307, Location=f"http://{store.address}{self.path}&data=1")
        fault = store.next_fault()
        content = store.files[path]
        begin = int(self.query()["offset"])
        return self.send_bytes(fault, 200, content[begin:begin + int(self.query()["length"])], self.refuse_hdfs)


def status_of(name, content):
    if content is None:
        return {"pathSuffix": name, "type": "DIRECTORY", "length": 0, "modificationTime": 0, "fileId": 1}
    return {"pathSuffix": name, "type": "FILE", "length": len(content), "modificationTime": modified_s(content) * 1000,
            "fileId": crc_of(content)}


def iso_time(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.123Z")
