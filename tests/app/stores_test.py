"""Jobs whose files are in S3 or HDFS: the model is that of local files, and nothing else is read, whatever happens."""
import gzip
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import unittest
from unittest import mock

from cli import SATRAP, TIMEOUT_S, CliTest, satrap
from store_run_case import SCHEMES
import store_server

try:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet
except ImportError:
    pa = None

ROWS = 1200
READS_OF_A_CHECKSUM = 1  # of a file of one piece
JOB = """\
run_dir: run
device: cpu
seed: 7
data:
  train: {train}
  batch_size: 100
  schema: {{label: click, numeric: [price], features: [user]}}
tables: {{default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.05}}}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{mode: hybrid, staleness: 2, deterministic: true, threads: 1}}
checkpoint: {{every: 5 steps, keep: 3}}
"""
COLUMNS = {"click": [i * 7 % 5 < 2 for i in range(ROWS)], "price": [i * 13 % 97 / 4 for i in range(ROWS)],
           "user": [f"user {i * i % 501}" for i in range(ROWS)],
           # Never read; makes a file of several pieces of 8 MiB.
           "padding": [random.Random(i).randbytes(5000).hex() for i in range(ROWS)]}


def csv(begin=0, end=ROWS, names=("click", "price", "user")):
    def field(name, i):
        return str(int(COLUMNS[name][i]) if name == "click" else COLUMNS[name][i])

    lines = (",".join(field(name, i) for name in names) for i in range(begin, end))
    return ("\n".join([",".join(names), *lines]) + "\n").encode()


def json_lines():
    lines = (json.dumps({n: COLUMNS[n][i] for n in ("click", "price", "user")}) + "\n" for i in range(ROWS))
    return "".join(lines).encode()


class Stores(CliTest):
    def setUp(self):
        super().setUp()
        self.server = store_server.Server()
        self.addCleanup(self.server.close)
        environment = {**self.server.environment(), "SATRAP_REMOTE_TIMEOUT": "5min", "SATRAP_REMOTE_STALL": "1s"}
        patched = mock.patch.dict(os.environ, environment)
        patched.start()
        self.addCleanup(patched.stop)

    def put(self, name, content):
        """In the folder and, as logs/`name`, in the server."""
        (self.dir / name).write_bytes(content)
        self.server.files[f"logs/{name}"] = content

    def job(self, train):
        self.write("job.yaml", JOB.format(train=json.dumps(train)))

    def train(self, train, *more):
        self.job(train)
        self.succeed("train", "job.yaml", "--overwrite", *more, cwd=self.dir)
        newest = self.checkpoints("run")[-1]
        return newest, self.digest(self.dir / "run" / "checkpoints" / newest)

    def put_days(self):
        """Plain, gzip and zstd, which a glob reads in natural order."""
        self.put("day_2.csv", csv(0, 400))
        self.put("day_10.csv.gz", gzip.compress(csv(400, 800)))
        last = csv(800)
        if shutil.which("zstd"):
            packed = subprocess.run(["zstd", "-qc"], input=last, stdout=subprocess.PIPE, check=True).stdout
            self.put("day_11.csv.zst", packed)
        else:
            self.put("day_11.csv", last)
        self.put("other.txt", b"not asked for")

    def test_the_same_bits_as_from_local_files_in_every_format(self):
        self.put_days()
        patterns = ["day_*"]
        self.put("rows.jsonl", json_lines())
        patterns.append("rows.jsonl")
        self.put("padded.csv", csv(names=tuple(COLUMNS)))
        patterns.append("padded.csv")
        if pa:
            pa.parquet.write_table(pa.table(COLUMNS), self.dir / "rows.parquet", row_group_size=500)
            pa.feather.write_feather(pa.table(COLUMNS), self.dir / "rows.arrow", chunksize=500)
            for name in ("rows.parquet", "rows.arrow"):
                self.put(name, (self.dir / name).read_bytes())
                patterns.append(name)
        for pattern in patterns:
            expected = self.train(pattern)
            for scheme in SCHEMES:
                with self.subTest(pattern=pattern, scheme=scheme):
                    self.assertEqual(self.train(self.server.url(scheme, f"l*s/{pattern}")), expected)

    def test_faults_that_pass_change_no_bit(self):
        self.put_days()
        expected = self.train("day_*")
        for scheme in SCHEMES:
            with self.subTest(scheme):
                faults = ["reset", "truncate", "half", "longer", "500", "503", "null", "stall", "trickle", "half"]
                random.Random(28).shuffle(faults)
                # Pauses grow while one read fails.
                self.server.faults = [fault for i in range(0, 10, 2) for fault in (*faults[i:i + 2], None)]
                self.assertEqual(self.train(self.server.url(scheme, "logs/day_*")), expected)
                self.assertEqual(self.server.faults, [])

    def test_faults_that_stay_end_with_an_error_that_names_the_file(self):
        self.put("day.csv", csv())
        for scheme in SCHEMES:
            url = self.server.url(scheme, "logs/day.csv")
            self.job(url)
            cases = [(fault, "1s", ["SATRAP_REMOTE_TIMEOUT = 1.0s"]) for fault in ("half", "stall", "trickle")]
            if scheme == "hdfs":
                cases.append(("403", "5min", ["403", "as asked for", "HADOOP_USER_NAME"]))
            else:
                cases += [("403", "5min", ["403, AccessDenied: as asked for", "AWS_ACCESS_KEY_ID"]),
                          ("301", "5min", ["301, PermanentRedirect", "AWS_REGION"]),
                          ("400", "5min", ["400, ExpiredToken", "AWS_REGION"])]
            for fault, timeout, words in cases:
                with self.subTest(scheme=scheme, fault=fault):
                    self.server.faults = [fault] * 1000
                    error = self.fail_with(1, "train", "job.yaml", "--overwrite", cwd=self.dir,
                                           env={**os.environ, "SATRAP_REMOTE_TIMEOUT": timeout})
                    self.assert_words(error, f"cannot read '{url}'", *words)
                    self.assertNotIn("secret-of-the-tests", error)
            self.server.faults = []

    def test_a_stop_ends_a_read_that_trickles(self):
        self.put("day.csv", csv())
        for scheme in SCHEMES:
            with self.subTest(scheme):
                self.job(self.server.url(scheme, "logs/day.csv"))
                self.server.is_trickling.clear()
                # The first reads take the checksum, which a stop does not end.
                self.server.faults = [None] * READS_OF_A_CHECKSUM + ["trickle"] * 1000
                with subprocess.Popen([SATRAP, "train", "job.yaml", "--overwrite"], cwd=self.dir,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      text=True, env={**os.environ, "SATRAP_REMOTE_STALL": "1h"}) as program:
                    self.addCleanup(program.kill)
                    self.assertTrue(self.server.is_trickling.wait(TIMEOUT_S))
                    program.send_signal(signal.SIGINT)
                    _, error = program.communicate(timeout=TIMEOUT_S)
                    self.assertEqual(program.returncode, 130, error)

    def test_a_file_that_changes_while_it_is_read_ends_the_run(self):
        self.put("day.csv", csv(names=tuple(COLUMNS)))
        before = self.server.files["logs/day.csv"]
        other, shorter = before[:-2] + b"9\n", before[:1000]
        for scheme, after in itertools.product(SCHEMES, (other, shorter)):
            with self.subTest(scheme=scheme, bytes=len(after)):
                self.server.files["logs/day.csv"] = before
                self.server.reads = 0

                def change():
                    # The first reads take the checksum of the beginning and the end.
                    if self.server.reads == 4:
                        self.server.files["logs/day.csv"] = after

                self.server.changes = change
                self.job(self.server.url(scheme, "logs/day.csv"))
                error = self.fail_with(1, "train", "job.yaml", "--overwrite", cwd=self.dir,
                                       env={**os.environ, "SATRAP_REMOTE_STALL": "5min"})
                self.assert_words(error, "logs/day.csv' has changed while it was read", "start again")

    @unittest.skipUnless("s3" in SCHEMES, "built without S3")
    def test_an_object_replaced_while_it_is_examined_is_not_cut_short(self):
        url = self.server.url("s3", "logs/day.csv")
        self.put("day.csv", csv())
        self.train("day.csv")
        predict = ["predict", "job.yaml", "--checkpoint", "run", "--data", url]
        contents = [csv(0, 5), csv(500, 509)]
        lines = [self.predicted(predict, content) for content in contents]
        looks = 0

        def replace():
            nonlocal looks
            looks += 1
            if looks == at:
                self.server.files["logs/day.csv"] = contents[1]

        self.server.looked = replace
        for at in range(1, 100):
            looks = 0
            self.server.files["logs/day.csv"] = contents[0]
            done = satrap(*predict, cwd=self.dir)
            if done.returncode == 0:
                self.assertIn(done.stdout, lines, f"replaced after request {at}")
            else:
                self.assert_words(done.stderr, "has changed while it was read")
            if looks < at:  # the command has ended before
                break
        self.assertGreater(at, 2)

    def signed(self, **environment):
        """What the requests for an object said that a command has made, by the names of their headers."""
        self.server.asked.clear()
        self.succeed("data", "head", "job.yaml", cwd=self.dir, env={**os.environ, **environment})
        self.assertEqual({method for method, _ in self.server.asked}, {"HEAD", "GET"})
        return [{name.lower(): value for name, value in headers.items()} for _, headers in self.server.asked]

    @unittest.skipUnless("s3" in SCHEMES, "built without S3")
    def test_requests_are_signed_with_the_credentials_that_there_are(self):
        self.put("day.csv", csv())
        self.job(self.server.url("s3", "logs/day.csv"))
        self.write("credentials", "[other]\naws_access_key_id = key-of-other\naws_secret_access_key = secret\n")
        files = {"AWS_SHARED_CREDENTIALS_FILE": str(self.dir / "credentials"),
                 "AWS_CONFIG_FILE": str(self.dir / "none")}
        token = "a/token+of=the/tests=="
        for headers in self.signed(AWS_SESSION_TOKEN=token, AWS_REGION="mars-east-1"):
            self.assertEqual(headers["x-amz-security-token"], token)
            self.assertEqual(headers["x-amz-content-sha256"], "UNSIGNED-PAYLOAD")
            self.assertRegex(headers["authorization"], r"Credential=key/\d+/mars-east-1/s3/aws4_request")
            self.assertRegex(headers["authorization"], r"SignedHeaders=[a-z0-9;-]*;x-amz-security-token\b")
        with mock.patch.dict(os.environ):
            del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
            for headers in self.signed(AWS_PROFILE="other", **files):
                self.assertIn("Credential=key-of-other/", headers["authorization"])
            for headers in self.signed(**files):
                self.assertNotIn("authorization", headers)

    @unittest.skipUnless("s3" in SCHEMES, "built without S3")
    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_a_server_with_a_certificate_of_a_private_authority_is_read_once_that_is_named(self):
        self.put("day.csv", csv())
        certificate = self.use_tls()
        self.job(self.server.url("s3", "logs/d*"))
        environment = {**os.environ, "AWS_ENDPOINT_URL": f"https://{self.server.address}",
                       "SATRAP_REMOTE_STALL": "5min"}
        error = self.fail_with(1, "data", "head", "job.yaml", cwd=self.dir,
                               env={**environment, "SATRAP_REMOTE_TIMEOUT": "1s"})
        self.assert_words(error, "cannot read 's3://bucket/logs/d*'", "certificate")
        self.succeed("data", "head", "job.yaml", cwd=self.dir, env={**environment, "AWS_CA_BUNDLE": str(certificate)})

    def use_tls(self):
        """From now on the server has a certificate, which is returned."""
        certificate, key = self.dir / "certificate.pem", self.dir / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        self.server.use_tls(certificate, key)
        return certificate

    @unittest.skipUnless("s3" in SCHEMES, "built without S3")
    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_certificates_are_found_where_a_system_of_another_kind_has_them(self):
        inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c",
                  'mount --bind "$0" /etc && exec "$@"', str(self.dir / "etc")]
        bundle = self.dir / "etc/pki/tls/certs/ca-bundle.crt"  # as on Fedora; nothing is in /etc/ssl
        bundle.parent.mkdir(parents=True)
        for name in ["hosts", "ld.so.cache", "nsswitch.conf", "passwd"]:
            if os.path.exists(f"/etc/{name}"):
                shutil.copy(f"/etc/{name}", self.dir / "etc")
        if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("this user may not mount anything over /etc")
        self.put("day.csv", csv())
        shutil.copy(self.use_tls(), bundle)
        self.job(self.server.url("s3", "logs/day.csv"))
        environment = {**os.environ, "AWS_ENDPOINT_URL": f"https://{self.server.address}", "SATRAP_REMOTE_TIMEOUT": "10s"}
        environment.pop("AWS_CA_BUNDLE", None)
        done = subprocess.run([*inside, SATRAP, "data", "head", "job.yaml"], cwd=self.dir, env=environment, text=True,
                              capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless("s3" in SCHEMES, "built without S3")
    def test_a_piece_takes_one_request(self):
        self.put("day.csv", csv())
        self.train("day.csv")
        looks = []
        for names in (("click", "price", "user"), tuple(COLUMNS)):
            self.server.files["logs/day.csv"] = csv(names=names)
            self.server.asked.clear()
            self.succeed("predict", "job.yaml", "--checkpoint", "run", "--data", self.server.url("s3", "logs/day.csv"),
                         cwd=self.dir, env={**os.environ, "SATRAP_REMOTE_STALL": "5min"})
            looks.append([method for method, _ in self.server.asked].count("HEAD"))
        self.assertEqual(looks[0], looks[1], "a file of two pieces is looked at as often as one of one")

    @unittest.skipUnless("s3" in SCHEMES, "built without S3")
    def test_a_server_that_knows_no_ranges_is_refused_unless_the_object_is_one_piece(self):
        self.put("day.csv", csv())
        expected = self.train("day.csv")
        url = self.server.url("s3", "logs/day.csv")
        self.server.knows_ranges = False
        self.assertEqual(self.train(url), expected)
        self.server.files["logs/day.csv"] = csv(names=tuple(COLUMNS))
        error = self.fail_with(1, "train", "job.yaml", "--overwrite", cwd=self.dir)
        self.assert_words(error, f"cannot read '{url}'", "status 200, not 206", "Range")

    def predicted(self, predict, content):
        self.server.files["logs/day.csv"] = content
        return self.succeed(*predict, cwd=self.dir).stdout

    def test_a_run_that_stops_goes_on_with_the_same_bits_or_names_what_has_changed(self):
        self.put_days()
        expected = self.train("day_*")
        for scheme in SCHEMES:
            with self.subTest(scheme):
                days = self.server.url(scheme, "logs/day_*")
                self.train(days, "train.max_steps=7")
                before = dict(self.server.files)
                for name, content in (("day_2.csv", csv(1, 401)), ("day_2.csv", None)):
                    self.server.files[f"logs/{name}"] = content
                    if content is None:
                        del self.server.files[f"logs/{name}"]
                    done = satrap("train", "job.yaml", "--resume", cwd=self.dir)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assert_words(done.stderr, f"logs/{name}", "--accept-changed-data")
                    self.server.files = dict(before)
                self.succeed("train", "job.yaml", "--resume", cwd=self.dir)
                newest = self.checkpoints("run")[-1]
                self.assertEqual((newest, self.digest(self.dir / "run" / "checkpoints" / newest)), expected)

    def test_every_command_reads_them(self):
        self.put("day.csv", csv())
        self.train("day.csv")
        predict = ["predict", "job.yaml", "--checkpoint", "run", "--data"]
        expected = self.succeed(*predict, "day.csv", cwd=self.dir).stdout
        for scheme in SCHEMES:
            with self.subTest(scheme):
                url = self.server.url(scheme, "logs/day.csv")
                self.assertEqual(self.succeed(*predict, url, cwd=self.dir).stdout, expected)
                self.succeed("eval", "job.yaml", "--checkpoint", "run", "--data", url, cwd=self.dir)
                self.assertEqual(self.succeed("data", "head", "job.yaml", f"data.train={url}", cwd=self.dir).stdout,
                                 self.succeed("data", "head", "job.yaml", cwd=self.dir).stdout)
                check = self.succeed("config", "check", "--data", "job.yaml", f"data.train={url}", cwd=self.dir).stdout
                self.assertIn(url, check)
                out = self.dir / f"{scheme}.yaml"
                self.succeed("init", url, "--label", "click", "--out", out, cwd=self.dir)
                self.assertIn(url, out.read_text())
                self.succeed("train", out, "train.max_steps=2", f"run_dir={scheme}", cwd=self.dir)

    @unittest.skipUnless("s3" in SCHEMES, "built without S3")
    def test_a_bucket_that_cannot_be_reached_is_named_with_what_to_do(self):
        url = self.server.url("s3", "logs/day.csv")
        self.job(url)
        error = self.fail_with(1, "train", "job.yaml", cwd=self.dir,
                               env={**os.environ, "AWS_ENDPOINT_URL": "gopher://127.0.0.1:1"})
        self.assert_words(error, f"cannot read '{url}'", "gopher", "AWS_REGION", "AWS_ENDPOINT_URL")

    def test_a_name_that_looks_like_a_glob_is_that_of_its_file(self):
        self.put("day_2.csv", csv(0, 400))
        expected = self.train("day_2.csv")
        names = [("day_[2].csv", "day_[2].csv"), ("day_*.csv", "day_*.csv"), ("day_?.csv", "day_?.csv"),
                 ("[2026]/day.csv", "[[]2026]/*.csv")]
        for scheme in SCHEMES:
            for name, pattern in names:
                with self.subTest(scheme=scheme, pattern=pattern):
                    # What the glob would match has other content.
                    self.server.files = {f"logs/{name}": csv(0, 400), "logs/day_2.csv": csv(1, 401)}
                    self.assertEqual(self.train(self.server.url(scheme, f"logs/{pattern}")), expected)

    def test_a_store_that_lies_is_named(self):
        self.put("day.csv", csv(0, 400))
        if "hdfs" in SCHEMES:
            for claimed in (2**63 - 1, 2**62, -5):
                self.server.claimed_bytes = claimed
                self.job(self.server.url("hdfs", "logs/day.csv"))
                error = self.fail_with(1, "train", "job.yaml", cwd=self.dir)
                self.assert_words(error, "logs/day.csv'", f"the store says that it has {claimed} bytes")
            self.server.claimed_bytes = None
        if "s3" in SCHEMES:
            for stray in ("x", "", "../../etc/passwd", "other/y"):
                self.server.stray_keys = [stray]
                self.job(self.server.url("s3", "logs/*.csv"))
                done = satrap("train", "job.yaml", "--overwrite", cwd=self.dir)
                self.assertNotIn("substr", done.stderr)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if done.returncode == 1:
                    self.assert_words(done.stderr, "logs", "the store lists")

    def test_what_makes_no_sense_is_refused(self):
        for url, words in (("s3://key:password@bucket/day.csv", ["AWS_ACCESS_KEY_ID"]),
                           ("hdfs://user:pass/password@name/day.csv", ["HADOOP_USER_NAME"]),
                           ("https://user:password@host/day.csv", ["https://***@host/day.csv", "copy the data"]),
                           ("s3a://key:password@bucket/day.csv", ["s3a://***@bucket/day.csv", "write s3://"]),
                           ("S3://bucket/day.csv", ["write s3://"]), ("HDFS://name/day.csv", ["write hdfs://"]),
                           ("s3://", ["names no bucket"]),
                           ("s3://bucket", ["names no file"]), ("hdfs:///day.csv", ["names no name node"])):
            with self.subTest(url):
                self.job(url)
                error = self.fail_with(2, "train", "job.yaml", cwd=self.dir)
                self.assert_words(error, *words)
                self.assertNotIn("password@", error)
        for scheme in SCHEMES:
            self.job(self.server.url(scheme, "logs/none_*"))
            self.assert_words(self.fail_with(1, "train", "job.yaml", cwd=self.dir), "no data file matches", "none_*")
            self.job(self.server.url(scheme, "logs/none"))
            self.assert_words(self.fail_with(1, "train", "job.yaml", cwd=self.dir), "logs/none'", "no such")
            self.job(self.server.url(scheme, "logs//day.csv"))
            error = self.fail_with(1, "train", "job.yaml", cwd=self.dir)
            self.assert_words(error, "logs//day.csv'", "no such" if scheme == "hdfs" else "a key without an empty part")
            self.assertNotIn("SATRAP_REMOTE_TIMEOUT", error)
        self.job(self.server.url(SCHEMES[0], "logs/day.csv"))
        error = self.fail_with(2, "train", "job.yaml", cwd=self.dir,
                               env={**os.environ, "SATRAP_REMOTE_TIMEOUT": "soon"})
        self.assert_words(error, "SATRAP_REMOTE_TIMEOUT", "soon")


if __name__ == "__main__":
    unittest.main(verbosity=2)
