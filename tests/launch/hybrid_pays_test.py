"""bench/hybrid_pays.py from end to end, with programs that stand in for all that it starts; and its report."""
import json
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from launcher import ROOT, LauncherTest

SCRIPT = ROOT / "bench" / "hybrid_pays.py"

RANK = """\
meet_shards()
settings = dict(word.split("=", 1) for word in sys.argv[3:])
note("trained", settings=settings, interface=os.environ["SATRAP_INTERFACE"])
if os.environ["RANK"] == "0":
    mode = settings["train.mode"]
    run = pathlib.Path(settings["run_dir"])
    run.mkdir(parents=True)
    (run / "summary.json").write_text(json.dumps({
        "examples_per_second": {"sync": 1000, "hybrid": 3000, "async": 3100}[mode],
        "eval": {"auc": {"sync": 0.78, "hybrid": 0.7799, "async": 0.777}[mode]},
        "staleness": {"mean": int(settings.get("train.staleness", 0))}}))
"""
IP = """#!/bin/bash
# ip netns exec NAME PROGRAM ...
export FAKE_NAMESPACE=$3
shift 3
exec "$@"
"""
EMULATOR = """#!/bin/bash
echo "emulator $*" >> "$FAKE_FOLDER/emulators"
echo ready
exec sleep 1000
"""


class HybridPays(LauncherTest):
    def setUp(self):
        super().setUp()
        build, tools = self.dir / "build", self.dir / "tools"
        (build / "bench").mkdir(parents=True)
        self.bin.rename(build / "bin")
        tools.mkdir()
        for path, text in [(tools / "ip", IP), (build / "bench" / "link_emulator", EMULATOR)]:
            path.write_text(text)
            path.chmod(0o755)
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"
        self.script("data", "for flag in ['--out', '--eval-out']: pathlib.Path(sys.argv[sys.argv.index(flag) + 1]).touch()")
        for rank in [0, 1]:
            self.script(f"rank-{rank}", RANK)

    def run_script(self, *args, status=0):
        done = subprocess.run([sys.executable, SCRIPT, "--out", self.dir / "out", "--build", self.dir / "build",
                               *map(str, args)], env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assert_no_orphans()
        return done

    def results(self, **auc):
        """Two made-up rounds of one link."""
        (self.dir / "out").mkdir()
        with open(self.dir / "out" / "results.jsonl", "w") as file:
            for number, factor in enumerate([1, 2]):  # the machine's speed changes between rounds
                for mode, rate in [("sync", 100), ("hybrid:4", 270), ("async", 290)]:
                    file.write(json.dumps({
                        "link": "1 ms, 1 Gbit/s", "round": str(number), "mode": mode, "examples_per_second": rate * factor,
                        "auc": {"sync": 0.78, "hybrid:4": 0.7797, "async": 0.776}[mode] + auc.get(mode.split(":")[0], 0),
                        "staleness": 1.4}) + "\n")

    def test_from_the_link_to_the_plot(self):
        done = self.run_script("--rounds", 1, "--link", "1000,1000", "--modes", "sync,hybrid:1,hybrid:4,async",
                               "--check", "train.threads=2")
        self.assertEqual((self.dir / "emulators").read_text(),
                         "emulator --name satrap --delay-us 1000 --rate-mbit 1000.0\n")
        trained = self.diary("rank-1", "trained")
        self.assertEqual([(e["settings"]["train.mode"], e["settings"].get("train.staleness")) for e in trained],
                         [("sync", None), ("hybrid", "1"), ("hybrid", "4"), ("async", None)])
        self.assertEqual({e["interface"] for e in trained}, {"link0"})
        self.assertEqual(trained[0]["settings"]["train.threads"], "2")
        places = {e["who"]: e["env"]["FAKE_NAMESPACE"] for e in self.diary(event="started") if e["who"] != "data"}
        self.assertEqual(places, {"shard-0": "satrap-a", "shard-1": "satrap-a", "rank-0": "satrap-b", "rank-1": "satrap-b"})
        self.assertIn("| 1 ms, 1 Gbit/s | hybrid(4) | 1 | 3,000 (3,000 - 3,000) | 3.00 | 0.97 | 0.77990 | -0.00010 | 4.0 |",
                      done.stdout)
        self.assertEqual((self.dir / "out" / "table.md").read_text(), done.stdout)

    def test_a_rank_that_fails_ends_the_benchmark(self):
        self.script("rank-1", "meet_shards(); sys.exit(1)")
        done = self.run_script("--rounds", 1, "--link", "1000,1000", "--modes", "sync", status=1)
        self.assertIn("error: rank 1 ended with status 1", done.stderr)

    def test_ratios_are_taken_within_a_round(self):
        self.results()
        text = self.run_script("--plot-only", "--check").stdout
        self.assertIn("| hybrid(4) | 2 | 405 (270 - 540) | 2.70 | 0.93 | 0.77970 | -0.00030 | 1.4 |", text)

    def test_the_plot_is_a_picture_with_every_mode_and_link(self):
        self.results()
        self.run_script("--plot-only")
        picture = xml.etree.ElementTree.parse(self.dir / "out" / "plot.svg").getroot()
        texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
        for word in ["sync", "hybrid(4)", "async", "1 ms, 1 Gbit/s", "examples per second", "AUC on held-out rows"]:
            self.assertIn(word, texts)
        self.assertEqual(len(list(picture.iter("{http://www.w3.org/2000/svg}circle"))), 6)

    def test_the_check_names_what_is_missed(self):
        self.results(hybrid=-0.002)
        done = self.run_script("--plot-only", "--check", status=1)
        self.assertIn("the AUC of hybrid(4) differs from sync's by -0.00230", done.stderr)

    def test_async_has_to_lose_more(self):
        self.results(**{"async": 0.0045})
        self.assertIn("async loses no more AUC", self.run_script("--plot-only", "--check", status=1).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
