"""The training loop: one for nodes and graphs, one graph and many."""

from __future__ import annotations

import hashlib
import json
import math
import operator
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from eegnn import _check
from eegnn.compute import CPU, Compute
from eegnn.data.arrays import write_arrays
from eegnn.data.encodings import flip_signs
from eegnn.data.problem import Problem
from eegnn.distributed import ALONE, Ranks
from eegnn.io import save
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches, MiniBatch, check_blocks
from eegnn.train.config import Config, make_config, parse_encoding
from eegnn.train.distributed import average_buffers, global_means, seed_rank, sum_gradients
from eegnn.train.evaluate import Evaluation, evaluate
from eegnn.train.losses import choose_loss
from eegnn.train.metrics import better
from eegnn.train.models import build_model
from eegnn.train.monitor import ExitMonitor, GradientNorms
from eegnn.train.run import RunFolder, damaged_state

#: Of the CPU and, if it is another, of the device.
RandomState = tuple[Tensor, Tensor | None]


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and what to change."""


@dataclass
class Progress:
    """The epochs so far; what `state.pt` keeps besides weights and random numbers."""

    epoch: int = 0
    best_epoch: int = 0
    best_val: float | None = None
    seconds: float = 0.0


class Trainer:
    """Trains a model on a problem and records the run in a folder.

    After each epoch all that training depends on is on disk: weights, optimiser, schedule, random
    numbers and the best epoch so far. A run that was killed and resumed ends with the same bits as
    one that was not.

    Several ranks each hold the model and step together; rank 0 alone reads and writes the folder.

    Args:
        config: everything that decides the run.
        problem: what to train on.
        folder: where the run is kept.
        ranks: this process and those it trains with.
        compute: device and precision. The first weights are drawn on the CPU, and so are the same
            on every device; noise and dropout are drawn on the device.
    """

    def __init__(
        self,
        config: Config,
        problem: Problem,
        folder: RunFolder,
        ranks: Ranks = ALONE,
        compute: Compute = CPU,
    ) -> None:
        self.config = config
        self.folder = folder
        self.ranks = ranks
        self.compute = compute
        torch.manual_seed(config.seed)
        self.model: GraphModel = build_model(config, problem).to(compute.device)
        if config.blocks:
            check_blocks(self.model)
        if ranks.size > 1:
            seed_rank(ranks, config.seed, 0)
        with_edges = self.model.edge_dim is not None
        self.batches = Batches(
            problem, config.batch_size, with_edges, config.blocks, ranks, compute
        )
        self.problem = problem
        self.loss = choose_loss(config.loss, problem.task)
        optimizer = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.optimizer]
        self.optimizer: torch.optim.Optimizer = optimizer(
            self.model.parameters(), lr=config.lr, weight_decay=config.weight_decay
        )
        self.scaler = compute.scaler()
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, _schedule(config))
        self.order = torch.Generator().manual_seed(config.seed)
        self.progress = Progress()
        self._gradients = GradientNorms(self.model)
        self._exits = ExitMonitor(config, self.model)
        self._metrics_hash = hashlib.sha256()

    def fit(self, on_epoch: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
        """Train to the end and return the summary.

        Args:
            on_epoch: called after each epoch with its line of ``metrics.jsonl``.

        Raises:
            TrainingError: the loss is not finite.
        """
        while not self._done():
            line = self._epoch()
            random = self.ranks.all_gather((torch.get_rng_state(), self.compute.random_state()))
            if self.ranks.is_main:
                self._write(line, random)
            if on_epoch is not None:
                on_epoch(line)
        return self._finish()

    def _write(self, line: dict[str, Any], random: list[RandomState]) -> None:
        self._metrics_hash.update(self.folder.append_metrics(line))
        if self.progress.best_epoch == self.progress.epoch:
            save(self.model, self.folder.model_path)
        self.folder.write_state(self._state(random))

    def resume(self) -> None:
        """Continue from the state on disk, if an epoch was finished.

        With as many ranks as before on the same type of device, each goes on with its own random
        numbers. Else they are drawn anew from the seed, the epoch and the rank.
        """
        state = self.ranks.on_main(self._read_state)
        if state is None:
            return
        try:
            self._restore(state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise damaged_state(self.folder.path / "state.pt", error) from error

    def _restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        if state.get("scaler") and self.scaler.is_enabled():
            self.scaler.load_state_dict(state["scaler"])
        self.order.set_state(state["order"])
        progress = {field.name: state["progress"][field.name] for field in fields(Progress)}
        self.progress = Progress(**progress)
        random = state["random"].view(-1, torch.get_rng_state().numel())
        device_type, of_device = state.get("device_random", ("cpu", []))
        if (len(random), device_type) == (self.ranks.size, self.compute.device.type):
            torch.set_rng_state(random[self.ranks.rank].clone())  # a view crashes torch 2.13
            if of_device:
                self.compute.set_random_state(of_device[self.ranks.rank])
        else:
            seed_rank(self.ranks, self.config.seed, self.progress.epoch)

    def _read_state(self) -> dict[str, Any] | None:
        """Read the state on disk, and remove the metrics of epochs that came after it."""
        self.folder.remove_temporary_files()
        state = self.folder.state()
        # A setting that is younger than the state had its default.
        if state and make_config(json.loads(state["config"])) != self.config:
            raise ValueError(f"{self.folder.path}: config.json was changed since the run was begun")
        self._metrics_hash.update(self.folder.truncate_metrics(state))
        return state

    def _state(self, random: list[RandomState]) -> dict[str, Any]:
        """Return all that training depends on, on the CPU: any device may go on with it."""
        of_cpu, of_device = zip(*random, strict=True)
        device_random = [state for state in of_device if state is not None]
        return {
            "model": _on_cpu(self.model.state_dict()),
            "optimizer": _on_cpu(self.optimizer.state_dict()),
            "scheduler": self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "order": self.order.get_state(),
            "random": torch.cat(of_cpu),  # of all ranks, one after the other
            "device_random": (self.compute.device.type, device_random),
            "progress": asdict(self.progress),
            "config": self.config.model_dump_json(),
            "metrics": self._metrics_hash.hexdigest(),
        }

    def _done(self) -> bool:
        p, patience = self.progress, self.config.patience
        out_of_patience = patience is not None and p.epoch - p.best_epoch >= patience
        return p.epoch >= self.config.epochs or out_of_patience

    def _epoch(self) -> dict[str, Any]:
        """Train for an epoch, evaluate, and return the line of ``metrics.jsonl``."""
        start = time.perf_counter()
        self.progress.epoch += 1
        loss = self._train_epoch()
        lr = self.scheduler.get_last_lr()[0]
        self.scheduler.step()
        average_buffers(self.ranks, self.model)
        val, test = self._evaluate_epoch()
        warning = self._exits.check(self.progress.epoch, val.exits)
        if warning and self.ranks.is_main:
            warnings.warn(warning, stacklevel=2)
        seconds = time.perf_counter() - start
        self.progress.seconds += seconds
        return {
            "epoch": self.progress.epoch,
            "loss": loss,
            "val": val.score,
            "test": None if test is None else test.score,
            "exit_mean": float(val.layer.double().mean()),
            "exit_quantiles": np.quantile(val.layer.numpy(), (0.1, 0.5, 0.9)).tolist(),
            "grad": self._gradients.mean(),
            "lr": lr,
            "seconds": seconds,
        }

    def _train_epoch(self) -> float:
        """Take the steps of an epoch, and return the mean loss of its units."""
        self.model.train()
        self.model.before_epoch(self.progress.epoch)
        steps = [self._step(batch) for batch in self.batches.training(self.order)]
        # A GPU is waited for here, once an epoch, and not after every step.
        losses, sizes = torch.stack([loss for loss, _ in steps]).tolist(), [n for _, n in steps]
        if not all(map(math.isfinite, losses)):
            loss = next(loss for loss in losses if not math.isfinite(loss))
            raise TrainingError(
                f"the loss is {loss} at epoch {self.progress.epoch}; try a smaller lr "
                f"(now {self.config.lr:g}), clip_norm, or standardize=true"
            )
        return sum(map(operator.mul, losses, sizes)) / sum(sizes)

    def _evaluate_epoch(self) -> tuple[Evaluation, Evaluation | None]:
        """Evaluate the validation and the test part, and note whether this epoch is the best.

        Many graphs are tested in epochs with a new best validation score only: others do not
        count. A single graph has both scores from one pass.
        """
        parts = ("val",) if self.problem.inductive else ("val", "test")
        found = evaluate(self.model, self.batches, parts)
        score, progress = found["val"].score, self.progress
        if better(self.problem.metric, score, progress.best_val):
            progress.best_val, progress.best_epoch = score, progress.epoch
            if "test" not in found:
                found |= evaluate(self.model, self.batches, ("test",))
        return found["val"], found.get("test")

    def _step(self, batch: MiniBatch) -> tuple[Tensor, int]:
        """Take a step of the optimiser; return the loss and the number of units, of all ranks."""
        self.optimizer.zero_grad()
        x = batch.x
        kind, columns = parse_encoding(self.config.encoding)
        if kind == "lappe" and x is not None:  # eigenvectors come last
            x = _check.trust(flip_signs(x, slice(x.size(1) - columns, x.size(1)), self.order))
        with self.compute.autocast():
            out, exits = self.model(x, batch.adj, batch.edge_attr, return_exits=True)
        num_costs = batch.adj.num_nodes if self.model.cost_of_nodes else exits.layer.numel()
        loss_mean, cost_mean = global_means(
            self.ranks, batch.num_targets, 0 if batch.is_dummy else num_costs
        )
        loss = self.loss(out.float(), batch, loss_mean)
        self.scaler.scale(loss + self.config.cost_weight * cost_mean(exits.cost)).backward()
        sum_gradients(self.ranks, self.model.parameters())
        self.scaler.unscale_(self.optimizer)
        self._gradients.add()
        if self.config.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach(), loss_mean.total

    def _finish(self) -> dict[str, Any]:
        """Evaluate the weights of the best epoch, and write the summary."""
        if self.progress.best_epoch == 0:
            raise TrainingError("the validation score was never a number; nothing was kept")
        best = deepcopy(self.model)
        best.load_state_dict(self.ranks.on_main(lambda: self.folder.model().state_dict()))
        found = evaluate(best, self.batches, ("val", "test"))
        config, progress = self.config, self.progress
        summary = {
            **config.model_dump(include={"dataset", "model", "split", "seed"}),
            "epochs": progress.epoch,
            "best_epoch": progress.best_epoch,
            "metric": self.problem.metric,
            "val": found["val"].score,
            "test": found["test"].score,
            "params": sum(p.numel() for p in self.model.parameters()),
            "exits": found["test"].exits.summary(),
            "seconds": progress.seconds,
            **self.compute.as_dict(),
            "notes": self.problem.notes,
        }
        if self.ranks.is_main:
            columns = {
                f"{part}_{name}": getattr(evaluation, name).numpy()
                for part, evaluation in found.items()
                for name in ("layer", "time")
            }
            write_arrays(self.folder.path / "exits.npz", columns)
            self.folder.write_summary(summary)
        return summary


def _on_cpu(state: dict[str, Any]) -> dict[str, Any]:
    return tree_map_only(Tensor, Tensor.cpu, state)


def _schedule(config: Config) -> Callable[[int], float]:
    """Factor on the learning rate in each epoch, counted from 0."""
    warm_up = max(config.epochs // 20, 1)

    def factor(epoch: int) -> float:
        if config.schedule == "constant":
            return 1.0
        if epoch < warm_up:
            return (epoch + 1) / warm_up
        share = (epoch - warm_up) / max(config.epochs - warm_up, 1)
        return 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))

    return factor
