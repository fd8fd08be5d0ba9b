"""What the tests of reports share: made-up runs, and the page of one after a browser has run its scripts."""
import html.parser
import json
import shutil
import subprocess

from cli import TIMEOUT_S, CliTest

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class Page(html.parser.HTMLParser):
    """The contents of a page: `charts`, captions with the numbers of shapes drawn; `cells` of its tables, and those of
    them that are `marked` as best; `terms`, the metrics that stand first; `folded`, what a reader must open; `said`."""

    def __init__(self, text):
        super().__init__()
        self.charts, self.cells, self.path, self.marked, self.terms, self.folded = {}, [], [], [], [], []
        self.order = []  # texts
        self.title = self.error = self.heading = self.legend = self.about = self.said = ""
        self.images = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in ("meta", "input", "br"):
            return
        self.path.append((tag, attributes))
        if tag == "figure":
            self.caption, self.shapes = "", 0
        if tag == "img":
            self.images += 1
        if tag in ("td", "th"):
            self.cells.append("")
        if tag in ("dt", "dd"):
            self.terms.append("")
        kind = attributes.get("class") or ""
        is_shape = tag == "rect" or tag == "path" and kind.split(" ")[0] in ("curve", "layer")
        if is_shape and ("svg", "img") in [(t, a.get("role")) for t, a in self.path]:
            assert tag == "rect" or attributes["d"].startswith("M"), attributes
            assert "NaN" not in str(attributes), attributes
            self.shapes += 1

    def handle_endtag(self, tag):
        while self.path and self.path.pop()[0] != tag:
            pass
        if tag == "figure":
            self.charts[self.caption] = self.shapes

    def handle_data(self, text):
        self.order.append(text)
        tags = [tag for tag, _ in self.path]
        if "figcaption" in tags:
            self.caption += text
        elif "td" in tags or "th" in tags:
            self.cells[-1] += text
            if any(a.get("class") == "best" for _, a in self.path):
                self.marked.append(text)
        elif "dt" in tags or "dd" in tags:
            self.terms[-1] += text
        elif "summary" in tags:
            self.folded.append(text)
        elif any(a.get("class") in ("said", "notice") for _, a in self.path):
            self.said += text + "\n"
        elif any(a.get("id") == "about" for _, a in self.path):
            self.about += text
        elif tags[-1:] == ["title"] and "svg" not in tags:
            self.title += text
        elif "h1" in tags:
            self.heading += text
        elif any(a.get("class") == "legend" for _, a in self.path):
            self.legend += text + "\n"
        elif any(a.get("id") == "error" for _, a in self.path):
            self.error += text

    def value_of(self, row):
        return self.cells[self.cells.index(row) + 1]


class ReportTest(CliTest):
    def dump(self, text):
        """What a browser makes of the page with this text."""
        page = self.write("copy.html", text)
        done = subprocess.run(
            [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={self.dir}/browser", "--dump-dom", page.as_uri()],
            capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def render(self, path, also=""):
        """The page at `path` after its scripts have run, followed by the script `also`."""
        page = Page(self.dump(path.read_text().replace("</body>", f"<script>{also}</script></body>")))
        self.assertEqual(page.error, "")
        return page

    def run_directory(self, name="made-up", metrics=(), config="run_dir: x\n"):
        run = self.dir / name
        run.mkdir(parents=True)
        (run / "config.yaml").write_text(config)
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
        return run
