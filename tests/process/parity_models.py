"""The models of satrap written with nn.Module and autograd, for pytorch_parity_test.py."""
import torch
from torch import nn

NUM_NUMERIC, SEQUENCE = 5, 3
FEATURES = ["bag", "mean", "sqrtn", "twin", "series"]  # twin shares the table of bag
POOLING = {"bag": "sum", "mean": "mean", "sqrtn": "sqrtn", "twin": "sum", "series": "sequence"}
TABLE = {"bag": "bag", "mean": "mean", "sqrtn": "sqrtn", "twin": "bag", "series": "series"}
NUM_FIELDS = len(FEATURES) - 1 + SEQUENCE
NUM_INPUTS = NUM_NUMERIC + SEQUENCE  # the mask of the sequence is numeric input


class Relu(nn.Module):
    """torch.relu. `near`: the inputs within 2e-6 of its kink, relative to the root mean square of the call's inputs, as
    (distance, call, element). `from_other_side`: the (call, element) that is taken as if its sign were the other."""

    def __init__(self):
        super().__init__()
        self.calls, self.near, self.from_other_side = 0, [], None

    def forward(self, x):
        distance = (x.detach().abs() / x.detach().square().mean().sqrt()).flatten()
        self.near += [(distance[i].item(), self.calls, i) for i in (distance < 2e-6).nonzero()[:, 0].tolist()]
        passes = x.detach() > 0
        if self.from_other_side and self.from_other_side[0] == self.calls:
            passes.view(-1)[self.from_other_side[1]] ^= True
        self.calls += 1
        return x * passes


class Mlp(nn.Module):
    def __init__(self, name, widths, relu=True, relu_last=False, batch_norm=False):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(b) for b in widths[1:]) if batch_norm else None
        self.relu, self.has_relu, self.relu_last = Relu(), relu, relu_last
        self.named = {}
        for i, layer in enumerate(self.layers):
            self.named[f"{name}.{i}"] = layer
            if batch_norm:
                self.named[f"{name}.{i}.batch_norm"] = self.norms[i]

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            if self.relu_last if i + 1 == len(self.layers) else self.has_relu:
                x = self.relu(x)
        return x


class Logistic(nn.Module):
    def __init__(self, config, dims):
        super().__init__()
        self.linear = nn.Linear(NUM_INPUTS, 1)
        self.named = {"linear": self.linear}

    def forward(self, numeric, fields):
        return self.linear(numeric)[:, 0] + torch.cat(fields, 1).sum(1)


class DeepFm(nn.Module):
    def __init__(self, config, dims):
        super().__init__()
        k = dims["bag"]
        self.linear = nn.Linear(NUM_INPUTS, 1)
        self.deep = Mlp("deep", [NUM_INPUTS + NUM_FIELDS * k, *config["hidden"], 1])
        self.named = {"linear": self.linear, **self.deep.named}

    def forward(self, numeric, fields):
        e = torch.stack(fields, 1)
        first, v = e[:, :, 0].sum(1), e[:, :, 1:]
        total = v.sum(1)
        second = 0.5 * (total * total - (v * v).sum(1)).sum(1)
        deep = self.deep(torch.cat([numeric, v.flatten(1)], 1))[:, 0]
        return deep + self.linear(numeric)[:, 0] + first + second


class Fm(nn.Module):
    def __init__(self, config, dims):
        super().__init__()
        self.linear = nn.Linear(NUM_INPUTS, 1)
        self.named = {"linear": self.linear}

    def forward(self, numeric, fields):
        e = torch.stack(fields, 1)
        v = e[:, :, 1:]
        pairs = [(v[:, i] * v[:, j]).sum(1) for i in range(v.shape[1]) for j in range(i)]
        return self.linear(numeric)[:, 0] + e[:, :, 0].sum(1) + sum(pairs)


class WideDeep(DeepFm):
    def forward(self, numeric, fields):
        e = torch.stack(fields, 1)
        deep = self.deep(torch.cat([numeric, e[:, :, 1:].flatten(1)], 1))[:, 0]
        return deep + self.linear(numeric)[:, 0] + e[:, :, 0].sum(1)


class DcnV2(nn.Module):
    def __init__(self, config, dims):
        super().__init__()
        n = NUM_INPUTS + sum(dims[TABLE[f]] for f in FEATURES[:-1]) + SEQUENCE * dims["series"]
        self.cross = nn.ModuleList(nn.Linear(n, n) for _ in range(config["cross_layers"]))
        self.deep = Mlp("deep", [n, *config["hidden"]], relu_last=True)
        self.final = nn.Linear(n + config["hidden"][-1], 1)
        self.named = {"final": self.final, **self.deep.named}
        self.named.update({f"cross.{i}": layer for i, layer in enumerate(self.cross)})

    def forward(self, numeric, fields):
        x0 = x = torch.cat([numeric, *fields], 1)
        for layer in self.cross:
            x = x0 * layer(x) + x
        return self.final(torch.cat([x, self.deep(x0)], 1))[:, 0]


class Dlrm(nn.Module):
    def __init__(self, config, dims):
        super().__init__()
        d, n = dims["bag"], NUM_FIELDS + 1
        self.bottom = Mlp("bottom", [NUM_INPUTS, *config["bottom"], d], relu_last=True)
        self.top = Mlp("top", [d + n * (n - 1) // 2, *config["top"], 1])
        self.named = {**self.bottom.named, **self.top.named}
        self.pairs = torch.tril_indices(n, n, -1)

    def joined(self, numeric, fields):
        b = self.bottom(numeric)
        z = torch.stack([b, *fields], 1)
        products = torch.bmm(z, z.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return torch.cat([b, products], 1)

    def forward(self, numeric, fields):
        return self.top(self.joined(numeric, fields))[:, 0]


class TwoLabels(Dlrm):
    """DLRM whose top is hidden as a whole, with an MLP per label on it."""

    def __init__(self, config, dims):
        super().__init__(config, dims)
        inputs = self.top.layers[0].in_features
        self.top = Mlp("top", [inputs, *config["top"]], relu_last=True)
        self.heads = nn.ModuleList(
            Mlp(f"head.{l}", [config["top"][-1], *config["head"], 1]) for l in range(2))
        parts = [self.bottom, self.top, *self.heads]
        self.named = {name: layer for part in parts for name, layer in part.named.items()}

    def forward(self, numeric, fields):
        x = self.top(self.joined(numeric, fields))
        return torch.cat([head(x) for head in self.heads], 1)


class Level(nn.Module):
    """A level of PLE for two labels; one without own experts is MMoE. It maps the inputs of label 0, label 1 and the
    shared experts to those of the next level; the last one has no shared gate."""

    def __init__(self, number, inputs, heads, is_last):
        super().__init__()
        num_own = heads.get("experts_per_label", 1) if heads["type"] == "ple" else 0

        def experts(owner, count):
            return nn.ModuleList(Mlp(f"experts.{number}.{owner}.{i}", [inputs, *heads["layers"]], relu_last=True)
                                 for i in range(count))
        self.shared = experts("shared", heads["experts"])
        self.own = nn.ModuleList(experts(f"label.{l}", num_own) for l in range(2))
        num_weighed = [len(self.shared) + num_own] * 2 + [len(self.shared) + 2 * num_own] * (not is_last)
        self.gates = nn.ModuleList(nn.Linear(inputs, n) for n in num_weighed)
        self.named = {f"gate.{number}.{owner}": gate
                      for owner, gate in zip(["label.0", "label.1", "shared"], self.gates)}
        for expert in [*self.shared, *self.own[0], *self.own[1]]:
            self.named.update(expert.named)

    def forward(self, inputs):
        shared = [expert(inputs[2]) for expert in self.shared]
        own = [[expert(x) for expert in experts] for x, experts in zip(inputs, self.own)]
        weighed = [shared + own[0], shared + own[1], shared + own[0] + own[1]]
        return [torch.einsum("be,ebw->bw", torch.softmax(gate(x), 1), torch.stack(vectors))
                for gate, x, vectors in zip(self.gates, inputs, weighed)]


class Experts(TwoLabels):
    """TwoLabels whose heads read MMoE's or PLE's mixtures of experts."""

    def __init__(self, config, dims):
        super().__init__(config, dims)
        heads = config["heads"]
        width, num_levels = heads["layers"][-1], heads.get("levels", 1)
        self.levels = nn.ModuleList(Level(i, width if i else config["top"][-1], heads, i + 1 == num_levels)
                                    for i in range(num_levels))
        self.heads = nn.ModuleList(Mlp(f"head.{l}", [width, *config["head"], 1]) for l in range(2))
        for part in [*self.levels, *self.heads]:
            self.named.update(part.named)

    def forward(self, numeric, fields):
        inputs = [self.top(self.joined(numeric, fields))] * 3
        for level in self.levels:
            inputs = level(inputs)
        return torch.cat([head(x) for head, x in zip(self.heads, inputs)], 1)


class Ffnn(nn.Module):
    """PERSIA's adult-income model (examples/src/adult-income/model.py) for its `persia` config."""

    def __init__(self, config, dims):
        super().__init__()
        n = sum(dims[TABLE[f]] for f in FEATURES[:-1]) + SEQUENCE * dims["series"]
        relu = config.get("activation", "relu") == "relu"
        tower = dict(relu=relu, relu_last=relu, batch_norm=config.get("batch_norm", False))
        self.sparse = Mlp("sparse", [n, *config["sparse"]], **tower)
        self.bottom = Mlp("bottom", [NUM_INPUTS, *config["bottom"]], **tower)
        joined = ([n] + config["sparse"])[-1] + ([NUM_INPUTS] + config["bottom"])[-1]
        self.top = Mlp("top", [joined, *config["top"], 1], relu=relu)
        self.named = {**self.sparse.named, **self.bottom.named, **self.top.named}

    def forward(self, numeric, fields):
        x = torch.cat([self.sparse(torch.cat(fields, 1)), self.bottom(numeric)], 1)
        return self.top(x)[:, 0]


class Din(nn.Module):
    """Every attention over all positions; those of the padding are masked afterwards."""

    def __init__(self, config, dims):
        super().__init__()
        d = dims["bag"]
        self.attend = [(a["query"], Mlp(f"attention.{i}", [4 * d, *config["attention"], 1]))
                       for i, a in enumerate(config["attend"])]
        n = NUM_NUMERIC + (len(FEATURES) - 1) * d + len(self.attend) * d
        self.top = Mlp("top", [n, *config["top"], 1])
        self.units = nn.ModuleList(unit for _, unit in self.attend)
        self.named = {k: v for unit in [*self.units, self.top] for k, v in unit.named.items()}

    def forward(self, numeric, fields):
        bags, keys = fields[:-SEQUENCE], torch.stack(fields[-SEQUENCE:], 1)
        numbers, mask = numeric[:, :NUM_NUMERIC], numeric[:, NUM_NUMERIC:]
        attended = []
        for query, unit in self.attend:
            q = bags[FEATURES.index(query)][:, None].expand_as(keys)
            scores = unit(torch.cat([q, keys, q - keys, q * keys], 2))[:, :, 0]
            attended.append(torch.einsum("bs,bsd->bd", scores * mask, keys))
        return self.top(torch.cat([numbers, *bags, *attended], 1))[:, 0]


CLASSES = dict(logistic=Logistic, fm=Fm, wide_deep=WideDeep, deepfm=DeepFm, dcn_v2=DcnV2, dlrm=Dlrm,
               ffnn=Ffnn, din=Din, two_labels=TwoLabels, mmoe=Experts, ple=Experts)
