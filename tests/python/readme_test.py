"""The network of README.md, trained as it stands there."""
import contextlib
import io
import re
import subprocess
import unittest

from engine_case import SATRAP, SOURCE, EngineCase, write_clicks


class Readme(EngineCase):
    def test_its_network_learns(self):
        program, = re.findall(r"```python\n(.*?)```", (SOURCE / "README.md").read_text(), re.S)
        self.assertLessEqual(len(program.splitlines()), 25)
        write_clicks(self.dir / "clicks.csv", 20_000)
        done = subprocess.run([SATRAP, "init", "clicks.csv"], cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = io.StringIO()
        with contextlib.chdir(self.dir), contextlib.redirect_stdout(out):
            exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})  # noqa: S102
        auc = float(out.getvalue().splitlines()[-1])
        self.assertGreater(auc, 0.65)


if __name__ == "__main__":
    unittest.main(verbosity=2)
