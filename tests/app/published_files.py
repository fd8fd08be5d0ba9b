"""Tiny files of the shape of public data sets, and a test that prepares them."""
import gzip
import random
import subprocess

from cli import CliTest

SMALL = ["--part-rows", "200", "--memory", "1MiB"]  # several parts and runs of the sorters


# Makers of files: a folder, a number of rows and a seed -> the files.

def criteo_row(draw):
    numbers = [str(draw.randrange(-1, 50)) if draw.random() < 0.7 else "" for _ in range(13)]
    ids = [f"{draw.randrange(2**32):08x}" if draw.random() < 0.9 else "" for _ in range(26)]
    return "\t".join([str(draw.randrange(2)), *numbers, *ids]) + "\n"


def make_criteo(folder, rows, seed):
    draw = random.Random(seed)
    (folder / "train.txt").write_text("".join(criteo_row(draw) for _ in range(rows)))


def make_avazu(folder, rows, seed):
    draw = random.Random(seed)
    columns = ["id", "click", "hour", "C1", "banner_pos", "site_id", "site_domain", "site_category", "app_id",
               "app_domain", "app_category", "device_id", "device_ip", "device_model", "device_type",
               "device_conn_type", *(f"C{i}" for i in range(14, 22))]
    lines = [",".join(columns)]
    for row in range(rows):
        day, hour = 21 + 10 * row // rows, draw.randrange(24)
        rest = [f"{draw.randrange(2**16):08x}" for _ in columns[3:]]
        lines.append(",".join([str(draw.randrange(2**64)), str(draw.randrange(2)), f"1410{day}{hour:02}", *rest]))
    with gzip.open(folder / "train.gz", "wt", compresslevel=1) as file:
        file.write("\n".join(lines) + "\n")


def make_criteo_1tb(folder, rows, seed):
    draw = random.Random(seed)
    for day in range(24):
        with gzip.open(folder / f"day_{day}.gz", "wt", compresslevel=1) as file:
            file.write("".join(criteo_row(draw) for _ in range(rows // 24 + day % 2)))


def make_movielens(folder, rows, seed):
    """Few users and moments, so that several ratings of a user have the same time."""
    draw = random.Random(seed)
    with open(folder / "ratings.csv", "w") as file:
        print("userId,movieId,rating,timestamp", file=file)
        for _ in range(rows):
            print(draw.randrange(1, 8), draw.randrange(1, 300), draw.randrange(1, 11) / 2, 1000 + draw.randrange(90),
                  sep=",", file=file)


def make_frappe(folder, rows, seed):
    draw = random.Random(seed)
    names = ["user", "item", "cnt", "daytime", "weekday", "isweekend", "homework", "cost", "weather", "country", "city"]
    lines = ["\t".join(names)]
    lines += ["\t".join(str(draw.randrange(9)) for _ in names) for _ in range(rows)]
    (folder / "frappe.csv").write_text("\n".join(lines) + "\n")


MAY_13 = 1494604800  # 2017-05-13 00:00 in UTC+8


def make_taobao(folder, rows, seed):
    draw = random.Random(seed)

    def write(name, header, lines):
        (folder / name).write_text("\n".join([header, *(",".join(map(str, line)) for line in lines)]) + "\n")

    def moment():
        return MAY_13 - 50 + draw.randrange(100)

    write("raw_sample.csv", "user,time_stamp,adgroup_id,pid,nonclk,clk",
          [[draw.randrange(1, 30), moment(), draw.randrange(1, 40), "430548_1007", 1 - click, click]
           for click in (draw.randrange(2) for _ in range(rows))])
    write("ad_feature.csv", "adgroup_id,cate_id,campaign_id,customer,brand,price",
          [[ad, ad % 7, ad, ad % 5, "NULL" if ad % 3 == 0 else ad % 4, ad * 1.5] for ad in range(1, 35)])
    write("user_profile.csv", "userid,cms_segid,cms_group_id,final_gender_code,age_level,pvalue_level,shopping_level,"
          "occupation,new_user_class_level ", [[user, 1, 2, 1, 3, "", 3, 0, ""] for user in range(1, 25)])
    write("behavior_log.csv", "user,time_stamp,btag,cate,brand",
          [[draw.randrange(1, 40), moment(), draw.choice(["pv", "cart", "fav", "buy"]), draw.randrange(1, 9),
            draw.randrange(1, 9)] for _ in range(10 * rows)])


def make_adult(folder, rows, seed):
    draw = random.Random(seed)

    def row(end):
        return ", ".join([*(str(draw.randrange(9)) for _ in range(14)), draw.choice(["<=50K", ">50K"]) + end])
    (folder / "adult.data").write_text("\n".join(row("") for _ in range(rows)) + "\n\n")
    (folder / "adult.test").write_text("\n".join(["|1x3 Cross validator", *(row(".") for _ in range(rows // 2))]) + "\n")


def make_nothing(folder, rows, seed):
    """The rows of kwai are generated in training."""


MAKERS = {"criteo": make_criteo, "avazu": make_avazu, "criteo_1tb": make_criteo_1tb, "movielens": make_movielens,
          "frappe": make_frappe, "taobao": make_taobao, "adult": make_adult, "kwai": make_nothing}


class PrepareCase(CliTest):
    """Has a folder for published files, and prepares them."""

    def setUp(self):
        super().setUp()
        self.source = self.dir / "from"
        self.source.mkdir()

    def prepare(self, name, out, *options):
        source = [] if name == "kwai" else ["--from", self.source]
        return self.succeed("data", "prepare", name, *source, "--out", self.dir / out, *SMALL, *options)

    def rows(self, out, split):
        """The rows of a split, in the order of its parts."""
        parts = sorted((self.dir / out).glob(f"{split}-*.txt.zst"))
        text = b"".join(subprocess.run(["zstd", "-dc", part], stdout=subprocess.PIPE, check=True).stdout
                        for part in parts)
        return [line.split("\t") for line in text.decode().splitlines()]

    def contents(self, out):
        folder = self.dir / out
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
