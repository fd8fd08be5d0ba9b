#!/usr/bin/env python3
"""Is every row of a topic trained on once, whatever dies? Ranks, loaders and a real broker of Kafka (fetched by Maven)
are killed with SIGKILL at random moments while a job learns a topic without an end, whose rows each have an id of
their own; the number of ranks changes twice. In the end the table must have as many rows as were written, and the job
as many examples.

    bench/kafka_kills.py --out DIR [--bin-dir build/release/bin] [--messages 1000000] [--rows 1] [--kills 20]

DIR gets kills.json (what was done, seconds, the result) and kills.svg (examples trained on and messages behind, over
time, with the kills). The exit status is 1 if a row was lost or came twice.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTITIONS = 6
SHARES = ((2, 0.34), (3, 0.67), (2, 1.0))  # ranks, and up to which share of the rows
LOADERS = 2
WAIT_S = 3600
JOB = """\
seed: 7
device: cpu
data:
  train: {url}
  kafka: {kafka}
  batch_size: {batch}
  schema: {{header: false, columns: [click, user], label: click, features: [user]}}
tables: {{default: {{dim: 1, optimizer: {{type: sgd, lr: 0.05}}}}}}
model: {{type: logistic}}
embedding: {{store: ps}}
train: {{mode: hybrid, staleness: 2, threads: 1, report_every: 5 steps}}
checkpoint: {{every: {every} steps, keep: 2}}
cluster: {{timeout: 60s}}
"""
PANEL, LEFT, WIDTH = 160, 90, 760
KILLED = {"rank": "#d62728", "loader": "#1f77b4", "broker": "#2ca02c"}


def write_topic(kafka_client, brokers, messages, rows):
    """Message i is in partition i % PARTITIONS and has the rows i * rows to (i + 1) * rows."""
    for partition in range(PARTITIONS):
        values = ("\n".join(f"{row % 3 // 2},u{row}" for row in range(i * rows, (i + 1) * rows)).encode()
                  for i in range(partition, messages, PARTITIONS))
        kafka_client.produce(brokers, "clicks", partition, values)


class Watch:
    """Samples the job's metrics."""

    def __init__(self, run):
        self.file, self.samples, self.ends = run / "metrics.jsonl", [], False
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self.run, name="watch")
        self.thread.start()

    def now(self):
        return round(time.monotonic() - self.began, 2)

    def run(self):
        while not self.ends:
            try:
                lines = [json.loads(line) for line in self.file.read_text().splitlines()[-20:] if '"examples"' in line]
                if lines:
                    self.samples.append((self.now(), lines[-1]["examples"], lines[-1].get("lag", -1)))
            except (OSError, ValueError):
                pass  # not there yet, or a line that is being written
            time.sleep(0.25)

    def close(self):
        self.ends = True
        self.thread.join()


def panel(title, top, points, end_s, kills):
    most = max([value for _, value in points] or [1])

    def at(second, value):
        return f"{LEFT + WIDTH * second / end_s:.1f},{top + PANEL - PANEL * value / most:.1f}"

    shapes = [f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{title}</text>',
              f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most:,}</text>',
              f'<text x="{LEFT - 6}" y="{top + PANEL}" text-anchor="end">0</text>',
              f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{PANEL}" fill="none" stroke="#999"/>']
    for second, kind in kills:
        x = LEFT + WIDTH * second / end_s
        shapes.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + PANEL}" stroke="{KILLED[kind]}" '
                      f'stroke-opacity="0.5"><title>{kind} killed at {second:.0f} s</title></line>')
    line = " ".join(at(*point) for point in points)
    return shapes + [f'<polyline points="{line}" fill="none" stroke="black" stroke-width="1.5"/>']


def plot(samples, kills, end_s):
    shapes = panel("examples trained on", 40, [(s, examples) for s, examples, _ in samples], end_s, kills)
    second = 40 + PANEL + 50
    shapes += panel("messages behind", second, [(s, lag) for s, _, lag in samples if lag >= 0], end_s, kills)
    bottom = second + PANEL + 24
    shapes.append(f'<text x="{LEFT + WIDTH}" y="{bottom}" text-anchor="end">{end_s:.0f} s</text>')
    for i, (kind, colour) in enumerate(KILLED.items()):
        shapes.append(f'<text x="{LEFT + 130 * i}" y="{bottom}" fill="{colour}">{kind} killed</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{bottom + 16}" '
            'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(shapes) + "\n</svg>\n")


def examples_of(run):
    """Of the newest checkpoint."""
    try:
        newest = max((run / "checkpoints").glob("step-*/manifest.json"))
        return json.loads(newest.read_text())["examples"]
    except (OSError, ValueError):
        return 0  # none, or removed since


def kill(kind, job, server, draw):
    if kind == "broker":
        server.kill()
        server.start()
        return
    draw.choice(job.any_members(kind, WAIT_S)).send(signal.SIGKILL)


def train(folder, server, options, watch, ClusterJob):
    """Kills and changes of the number of ranks, up to the end of the topic. Returns the kills as (second, kind)."""
    draw = random.Random(options.seed)
    rows = options.messages * options.rows
    run = folder / "run"
    left = sorted((draw.random() * 0.97, kind) for kind in KILLED for _ in range(options.kills))
    done = []
    for number, (ranks, share) in enumerate((*SHARES, (2, 0))):
        is_last = share == 0  # up to the end, and no row more
        config = folder / f"job-{number}.yaml"
        config.write_text(JOB.format(
            url=f"kafka://{server.brokers}/clicks", every=options.every, batch=options.batch,
            kafka="{timeout: 10min}" if is_last else "{end: never, timeout: 10min, group: kills}"))
        job = ClusterJob(folder / f"job-{number}", config, shards=2, ranks=ranks, max_restarts=100 * options.kills,
                         settings=(f"run_dir={run}",), options=[] if is_last else ["--loaders", str(LOADERS)])
        try:
            job.start("--resume")
            while not is_last and left and left[0][0] < share:
                moment, kind = left.pop(0)
                job.wait_until(lambda: examples_of(run) >= moment * rows, WAIT_S, f"{moment:.2f} of the rows")
                kill(kind, job, server, draw)
                done.append((watch.now(), kind))
                print(f"{watch.now():7.1f} s: {kind} killed at {examples_of(run):,} rows", flush=True)
            if not is_last:
                enough = min(share * rows, rows - options.batch * (options.every + 6))
                job.wait_until(lambda: examples_of(run) >= enough, WAIT_S, f"{share} of the rows")
                os.kill(job.pid, signal.SIGTERM)
            status = job.end(WAIT_S)
            if is_last and status != 0:
                raise RuntimeError(job.output()[-3000:])
        finally:
            job.kill_all()
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--bin-dir", default="build/release/bin", type=pathlib.Path)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=1, help="of each message")
    parser.add_argument("--kills", type=int, default=20, help="of ranks, of loaders and of the broker, each")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ["SATRAP_BIN"] = str(options.bin_dir.absolute() / "satrap")
    sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "process")]
    import kafka_client
    import kafka_server
    from cluster_job import ClusterJob

    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="satrap-kafka-kills-") as name:
        folder = pathlib.Path(name)
        (folder / "broker").mkdir()
        server = kafka_server.Server(folder / "broker", PARTITIONS)
        try:
            write_topic(kafka_client, server.brokers, options.messages, options.rows)
            watch = Watch(folder / "run")
            try:
                kills = train(folder, server, options, watch, ClusterJob)
            finally:
                watch.close()
        finally:
            server.close()
        summary = json.loads((folder / "run" / "summary.json").read_text())
    rows = options.messages * options.rows
    result = {"messages": options.messages, "rows_per_message": options.rows, "rows": rows,
              "trained_examples": summary["examples"], "table_rows": summary["rows"],
              "seconds": watch.now(), "seed": options.seed, "kills": kills, "samples": watch.samples}
    (options.out / "kills.json").write_text(json.dumps(result) + "\n")
    (options.out / "kills.svg").write_text(plot(watch.samples, kills, watch.now()))
    is_exact = summary["examples"] == summary["rows"] == rows
    print(f"{rows:,} rows; {summary['examples']:,} examples, {summary['rows']:,} rows of the table: "
          f"{'every row once' if is_exact else 'WRONG'}; {len(kills)} kills in {watch.now():.0f} s")
    return 0 if is_exact else 1


if __name__ == "__main__":
    sys.exit(main())
