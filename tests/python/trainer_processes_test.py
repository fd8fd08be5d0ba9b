"""satrap.Trainer in a process that gets signals, is killed, or ends in the middle of a run."""
import json
import signal
import subprocess
import sys
import unittest

from engine_case import SOURCE, EngineCase


SCRIPT = """
import sys
sys.path[:0] = [{tests!r}]
from engine_case import *
job = satrap.Job({{**{config!r}, "data": {data!r}}}, {{"train.epochs": {epochs}, "checkpoint.every": "{every}", "train.max_steps": {steps}}})
trainer, net, _ = make_trainer(job, resume={resume})
for batch in trainer:
    logits = net(batch)
    trainer.step(loss_of(logits, batch), scores=logits)
    print(batch.step, flush=True)
"""


class Processes(EngineCase):
    def start(self, run, epochs=1000, every="never", steps=0, resume=False):
        config = json.loads(json.dumps(self.config(run), default=str))
        text = SCRIPT.format(tests=str(SOURCE / "tests/python"), config=config, data=config["data"], epochs=epochs, every=every,
                             steps=steps, resume=resume)
        program = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.kill)
        return program

    def wait_for_step(self, program, step):
        for line in program.stdout:
            if line.strip() == str(step):
                return
        self.fail(program.stderr.read())

    def test_the_first_signal_ends_it_with_a_checkpoint(self):
        for number, status in ((signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM)):
            with self.subTest(number):
                run = f"run{int(number)}"
                program = self.start(run)
                self.wait_for_step(program, 5)
                program.send_signal(number)
                _, errors = program.communicate(timeout=120)
                self.assertEqual(program.returncode, status, errors)
                self.assertIn("resume=True) continues from", errors)
                if number == signal.SIGINT:
                    self.assertIn("KeyboardInterrupt", errors)
                self.digest(run)

    def test_a_killed_run_continues_with_the_same_bits(self):
        whole = self.start("whole", epochs=3, steps=45)
        _, errors = whole.communicate(timeout=120)
        self.assertEqual(whole.returncode, 0, errors)
        killed = self.start("killed", epochs=3, every="10 steps", steps=45)
        self.wait_for_step(killed, 27)
        killed.kill()
        killed.wait()
        again = self.start("killed", epochs=3, every="10 steps", steps=45, resume=True)
        out, errors = again.communicate(timeout=120)
        self.assertEqual(again.returncode, 0, errors)
        self.assertIn("resumed from", errors)
        self.assertNotEqual(out.split()[0], "1")
        self.assertEqual(self.digest("whole"), self.digest("killed"))

    def test_a_program_that_ends_in_the_middle_of_a_run_ends(self):
        code = SCRIPT.format(tests=str(SOURCE / "tests/python"), config=json.loads(json.dumps(self.config(), default=str)),
                             data=json.loads(json.dumps(self.config()["data"], default=str)), epochs=1000, every="never", steps=0,
                             resume=False).split("for batch")[0]
        done = subprocess.run([sys.executable, "-c", code + "\nbatches = iter(trainer)\nprint(next(batches).step)\n"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
