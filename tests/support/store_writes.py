"""The part of store_server that takes files: requests that write and remove, as clients of S3 and WebHDFS make them."""
import io
import json
import re
import urllib.parse
import zlib
from xml.sax.saxutils import unescape

DEADLINE_S = 300  # of a stalled answer


class Writes:
    """Of a http.server handler. Its store's `write_fault(key)` says what becomes of a request that brings bytes or
    gives them a name; None: it succeeds. reset, stall: nothing is stored; lost: it is, and the answer does not come;
    500, 503, 403: refused."""

    def do_PUT(self):
        body = self.read_body()
        if self.hdfs_path() is not None:
            return self.put_hdfs(self.hdfs_path(), body)
        if "uploadId" in self.query():
            part = (self.query()["uploadId"], int(self.query()["partNumber"]))
            return self.store_bytes(self.key(), lambda: self.server.store.parts.__setitem__(part, body), self.refuse_s3,
                                    200, ETag=f'"{zlib.crc32(body):08x}"')
        return self.store_bytes(self.key(), lambda: self.set_file(self.key(), body), self.refuse_s3, 200,
                                ETag=f'"{zlib.crc32(body):08x}"')

    def do_POST(self):
        body = self.read_body().decode()
        store = self.server.store
        if "uploads" in self.query():
            with store.lock:
                store.uploads += 1
                upload = f"upload-{store.uploads}"
            return self.send_xml(f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId>"
                                 "</InitiateMultipartUploadResult>")
        if "delete" in self.query():
            for key in re.findall(r"<Key>(.*?)</Key>", body):
                self.remove(unescape(key))
            return self.send_xml("<DeleteResult></DeleteResult>")
        upload = self.query()["uploadId"]
        numbers = [int(number) for number in re.findall(r"<PartNumber>(\d+)</PartNumber>", body)]
        content = b"".join(store.parts[upload, number] for number in numbers)
        return self.store_bytes(self.key(), lambda: self.set_file(self.key(), content), self.refuse_s3, 200,
                                b'<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>')

    def do_DELETE(self):
        self.read_body()
        path = self.hdfs_path()
        if path is not None:
            found = [key for key in self.server.store.files if key == path or key.startswith(f"{path}/")]
            for key in found:
                self.remove(key)
            return self.send(200, json.dumps({"boolean": bool(found)}).encode())
        if "uploadId" not in self.query():
            self.remove(self.key())
        return self.send(204)

    def put_hdfs(self, path, body):
        store = self.server.store
        operation = self.query()["op"]
        if operation == "RENAME":
            to = self.query()["destination"].lstrip("/")
            return self.store_bytes(to, lambda: self.set_file(to, store.files.pop(path)), self.refuse_hdfs, 200)
        if "data" not in self.query():  # the name node sends the writer to a data node
            return self.send(307, Location=f"http://{store.address}{self.path}&data=1")
        return self.store_bytes(path, lambda: self.set_file(path, body), self.refuse_hdfs, 201)

    def store_bytes(self, key, keep, refuse, status, body=b"", **headers):
        store = self.server.store
        fault = store.write_fault(key)
        if fault in ("reset", "stall", "lost"):
            self.close_connection = True
            if fault == "lost":
                keep()
            if fault == "stall":
                store.is_closing.wait(DEADLINE_S)
            return None
        if fault is not None:
            return refuse(int(fault))
        keep()
        return self.send(status, body, **headers)

    def set_file(self, key, content):
        with self.server.store.lock:
            self.server.store.files = {**self.server.store.files, key: content}

    def remove(self, key):
        with self.server.store.lock:
            self.server.store.files = {name: text for name, text in self.server.store.files.items() if name != key}

    def read_body(self):
        """Without the chunks of HTTP and those of AWS, which have checksums."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self.read_chunks(self.rfile)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") != "aws-chunked":
            return body
        return self.read_chunks(io.BytesIO(body))

    def read_chunks(self, file):
        """Chunks, each with its size in hex before it, and a trailer up to an empty line, or the end."""
        body = b""
        while size := int(file.readline().split(b";")[0], 16):
            body += file.read(size)
            file.readline()
        while file.readline().strip():
            pass
        return body

    def send_xml(self, text):
        self.send(200, text.encode(), Content_Type="application/xml")

    def query(self):
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))

    def key(self):
        return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/").partition("/")[2]

    def hdfs_path(self):
        """None: this is a request of S3."""
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).strip("/")
        return path.removeprefix("webhdfs/v1").strip("/") if path.startswith("webhdfs/v1") else None


def take_first(faults):
    """A write_fault that takes one after the other."""
    return lambda key: faults.pop(0) if faults else None
