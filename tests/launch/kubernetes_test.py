"""launch/kubernetes/job.yaml: it follows the schemas of Kubernetes, and its commands train a job on two pods, which are
processes here. The package kubernetes-validate has the schemas."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

try:
    import kubernetes_validate
    import yaml
except ImportError:
    print("SKIPPED launch.kubernetes_test: no package kubernetes-validate")
    sys.exit(77)

from launcher import ROOT, NodesTest, TOKEN

sys.path.insert(0, str(ROOT / "tests/app"))
from cli import SATRAP, CliTest  # noqa: E402

MANIFEST = ROOT / "launch/kubernetes/job.yaml"
OLDEST = "1.31"  # that has all fields of the manifest, as it says


def documents():
    return {document["kind"]: document for document in yaml.safe_load_all(MANIFEST.read_text())}


class Manifest(unittest.TestCase):
    def test_it_follows_the_schemas(self):
        for version in [OLDEST, kubernetes_validate.latest_version()]:
            for kind, document in documents().items():
                with self.subTest(version=version, kind=kind):
                    kubernetes_validate.validate(document, version, strict=True)
        self.assertIn(f"({OLDEST} or newer)", MANIFEST.read_text())

    def test_the_schemas_notice_an_unknown_field(self):
        job = documents()["Job"]
        job["spec"]["template"]["spec"]["restartPolice"] = "Never"
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(job, OLDEST, strict=True)

    def test_its_parts_fit(self):
        found = documents()
        service, claim, job = (found[kind] for kind in ["Service", "PersistentVolumeClaim", "Job"])
        pod = job["spec"]["template"]["spec"]
        container, = pod["containers"]
        command = container["args"][0]
        self.assertEqual(pod["subdomain"], service["metadata"]["name"])
        self.assertEqual(service["spec"]["selector"], {"batch.kubernetes.io/job-name": job["metadata"]["name"]})
        self.assertIn(f"--nnodes {job['spec']['completions']} ", command)
        self.assertEqual(job["spec"]["parallelism"], job["spec"]["completions"])
        self.assertIn(f"--master-addr {job['metadata']['name']}-0.{pod['subdomain']} ", command)
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, set(volumes))
        self.assertEqual(volumes["runs"]["persistentVolumeClaim"]["claimName"], claim["metadata"]["name"])
        fatal = job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]
        self.assertEqual((fatal["containerName"], fatal["values"]), (container["name"], [2]))


class Pods(NodesTest, CliTest):
    """What the pods of the Job would run, on this machine: mounts are folders, and names are 127.0.0.1."""

    def pod(self, index):
        container, = documents()["Job"]["spec"]["template"]["spec"]["containers"]
        command = [*container["command"], *container["args"]]
        local = {mount["mountPath"]: str(self.dir / mount["name"]) for mount in container["volumeMounts"]}
        local |= {"satrap-0.satrap": "127.0.0.1", "29400": str(self.port)}
        for there, here in local.items():
            self.assertIn(there, command[-1])
            command = [word.replace(there, here) for word in command]
        environment = {variable["name"]: TOKEN for variable in container["env"]}
        self.assertEqual(set(environment), {"SATRAP_TOKEN"})
        path = f"{ROOT / 'launch'}:{pathlib.Path(SATRAP).parent}:{os.environ['PATH']}"
        pod = subprocess.Popen(command, cwd=self.dir, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True,
                               env=self.env | environment | {"JOB_COMPLETION_INDEX": str(index), "PATH": path})
        self.addCleanup(pod.stdout.close)
        self.addCleanup(pod.wait)
        self.addCleanup(pod.kill)
        return pod

    def run_pods(self, status):
        pods = [self.pod(index) for index in range(2)]
        said = [pod.communicate(timeout=120)[0] for pod in pods]
        self.assertEqual([pod.returncode for pod in pods], [status, status], said)
        return said

    def setUp(self):
        super().setUp()
        for folder in ["runs", "job"]:
            (self.dir / folder).mkdir()

    def test_a_job_on_two_pods(self):
        self.job(rows=1000).rename(self.dir / "job/job.yaml")
        self.run_pods(0)
        summary = json.loads((self.dir / "runs/clicks/summary.json").read_text())
        self.assertEqual((summary["finished"], summary["step"]), (True, 10))
        self.assertEqual((summary["ranks"], summary["shards"]), (2, 2))

    def test_pods_that_replace_a_lost_one_continue_the_job(self):
        endless = self.job(rows=1000, **{"threads: 1": "threads: 1, epochs: 1000000"}).read_text()
        (self.dir / "job/job.yaml").write_text(endless)
        pods = [self.pod(index) for index in range(2)]
        checkpoints = self.dir / "runs/clicks/checkpoints"
        self.wait_until(lambda: list(checkpoints.glob("step-*")), "a checkpoint")
        pods[1].kill()  # the launcher; its processes die with it
        said = pods[0].communicate(timeout=120)[0]
        self.assertEqual(pods[0].returncode, 1, said)
        self.assertIn("the launcher of node 1 is gone", said)
        self.assert_no_orphans()
        step = int(max(checkpoints.glob("step-*")).name.removeprefix("step-"))
        (self.dir / "job/job.yaml").write_text(endless.replace("epochs:", f"max_steps: {step + 5}, epochs:"))
        self.run_pods(0)
        summary = json.loads((self.dir / "runs/clicks/summary.json").read_text())
        self.assertEqual((summary["resumed"], summary["step"]), (True, step + 5))

    def test_a_wrong_configuration_ends_with_the_status_that_the_job_looks_for(self):
        self.job(rows=1000, dlrm="dlmr").rename(self.dir / "job/job.yaml")
        self.assertIn("dlmr", self.run_pods(2)[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
