"""A program of several ranks, for ranks_test.py: trains a small net with dropout, BatchNorm and a schedule."""
import json
import os
import signal
import sys

from engine_case import Net, loss_of, satrap, torch


def train(config, options):
    job = satrap.Job(config)
    here = job.rank == options.get("rank", 1)  # the rank that does what it is told

    if options.get("plain"):
        torch.manual_seed(1)
        net = torch.nn.Linear(job.pooled_width, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    else:
        net = Net(job)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    if here and options.get("wider"):
        net.layers[0] = torch.nn.Linear(net.layers[0].in_features, 16, bias=False)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)

    def logits_of(batch):
        return net(batch.pooled) if options.get("plain") else net(batch)

    trainer = satrap.Trainer(job, net, optimizer, predict=logits_of, state={"schedule": schedule},
                             resume=options.get("resume", False))
    for batch in trainer:
        is_told = here and batch.step == options.get("step")
        if is_told and options["do"] == "break":
            break
        if is_told and options["do"] == "raise":
            raise KeyError("a mistake of the program")
        if is_told and options["do"] == "kill" and os.environ["SATRAP_ATTEMPT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        logits = logits_of(batch)
        trainer.step(loss_of(logits, batch) if len(batch) else None, scores=logits)
        schedule.step()
        del logits
    numbers = torch.cat([value.reshape(-1).float() for value in net.state_dict().values()])
    print(f"rank {job.rank} of {job.num_ranks}: finished {trainer.finished}, net {numbers.double().sum():.12f}")


if __name__ == "__main__":
    train(json.loads(sys.argv[1]), json.loads(sys.argv[2]))
