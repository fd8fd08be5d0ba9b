"""The folder of a run that nobody named, and what is checked before the folder."""
import os
import subprocess
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest

JOB = """
device: cpu
data: {train: d.csv, batch_size: 64, schema: {label: click, features: [user]}}
tables: {default: {dim: 2}}
model: {type: ffnn, top: [4]}
train: {deterministic: true, threads: 1}
"""
BY_HAND = {name: text for name, text in os.environ.items() if not name.startswith(("SLURM_", "TORCHELASTIC_"))}


class RunFolders(CliTest):
    def setUp(self):
        super().setUp()
        self.write("d.csv", "click,user\n" + "".join(f"{r % 2},u{r % 5}\n" for r in range(640)))
        self.write("job.yaml", JOB)

    def train(self, *args, **kwargs):
        return self.succeed("train", "job.yaml", *args, cwd=self.dir, env=BY_HAND, **kwargs)

    def folders(self):
        return sorted(path.name for path in (self.dir / "runs").iterdir())

    def test_each_run_has_a_folder_of_its_own(self):
        self.assertNotIn("run_dir", self.train().stderr)
        self.assert_words(self.train("--dry-run").stdout, "runs/job-2: free")
        self.assertEqual(self.folders(), ["job"])
        second = self.train("train.max_steps=4")
        self.assert_words(second.stderr, "run_dir: runs/job-2, a new folder beside runs/job")
        self.assert_words(second.stdout, "runs/job-2/summary.json", "runs/job-2/report.html")
        self.assertEqual(self.folders(), ["job", "job-2"])

    def test_the_newest_is_continued_used_and_overwritten(self):
        self.train()
        self.train("train.max_steps=4")
        newest = self.dir / "runs/job-2/checkpoints"
        self.assert_words(self.train("--resume", "train.max_steps=6").stderr, "run_dir: runs/job-2, the newest")
        self.assertTrue((newest / "step-000000000006").exists())
        for command in (["predict"], ["eval"]):
            used = self.succeed(*command, "--checkpoint", "runs/job", "--data", "d.csv", cwd=self.dir)
            self.assert_words(used.stderr, "runs/job-2: the newest run")
        first = self.succeed("eval", "--checkpoint", "runs/job/checkpoints", "--data", "d.csv", cwd=self.dir)
        self.assert_words(first.stdout, "runs/job/checkpoints/step-000000000010")
        self.train("--overwrite", "train.max_steps=3")
        self.assertEqual([path.name for path in newest.glob("step-*")], ["step-000000000003"])
        self.assertTrue((self.dir / "runs/job/checkpoints/step-000000000010").exists())

    def test_the_folder_of_another_job_is_not_the_newest(self):
        self.train()
        (self.dir / "job-2.yaml").write_text(JOB)
        self.succeed("train", "job-2.yaml", cwd=self.dir, env=BY_HAND)
        self.assert_words(self.train("--resume", "train.epochs=2").stderr, "step 20", "runs/job/checkpoints")
        self.train()
        self.assertEqual(self.folders(), ["job", "job-2", "job-3"])

    def test_who_names_it_or_is_started_again_by_a_program_gets_no_other(self):
        self.train()
        for name in ("SLURM_JOB_ID", "RANK", "PBS_JOBID"):
            with self.subTest(name):
                error = self.fail_with(2, "train", "job.yaml", cwd=self.dir, env=BY_HAND | {name: "0"})
                self.assert_words(error, "'runs/job' holds an earlier run", "--resume")
        service = subprocess.run(["bash", "-c", 'SYSTEMD_EXEC_PID=$$ exec "$0" train job.yaml', SATRAP], cwd=self.dir,
                                 env=BY_HAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assert_words(service.stderr, "'runs/job' holds an earlier run")
        error = self.fail_with(2, "train", "job.yaml", "run_dir=runs/job", cwd=self.dir, env=BY_HAND)
        self.assert_words(error, "'runs/job' holds an earlier run")
        self.assertEqual(self.folders(), ["job"])

    def test_what_is_wrong_elsewhere_comes_before_the_folder_and_leaves_nothing(self):
        self.train()
        for folder in ("runs/job", "runs/new"):
            for setting, status, words in [
                    ("device=cuda", 1, "device: there is no GPU"),
                    ("data.schema.label=clack", 2, "no column 'clack', which the label reads; did you mean 'click'"),
                    ("data.train.path=none.csv", 1, "none.csv': No such file"),
                    ("data.eval=none.csv", 1, "none.csv': No such file")]:
                with self.subTest(folder=folder, setting=setting):
                    error = self.fail_with(status, "train", "job.yaml", f"run_dir={folder}", setting, cwd=self.dir)
                    self.assert_words(error, words)
        self.assertEqual(self.folders(), ["job"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
