"""trainer.compile: the numbers of the plain step, the names of the module, and no more kernels."""

import pytest
import torch
from torch import nn

from tests.training.bench import differences, metrics_of, outcome
from textmill.errors import UserError
from textmill.training import Callback, Every, blocks
from textmill.training.blocks import blocks_of


@pytest.fixture
def graphs(monkeypatch):
    """Stands for torch's inductor, which takes a minute: what is compiled is run as it is."""
    import torch._dynamo

    made = []

    def backend(graph, inputs):
        made.append(graph)
        return graph.forward

    torch._dynamo.reset()
    monkeypatch.setattr(blocks, "BACKEND", backend)
    yield made
    torch._dynamo.reset()


class Sees(Callback):
    """How many graphs there are after each step and each evaluation."""

    def __init__(self, graphs):
        self.graphs, self.steps, self.evaluated_ = graphs, [], []

    def step(self, progress):
        self.steps.append(len(self.graphs))

    def evaluated(self, progress, values):
        self.evaluated_.append(len(self.graphs))


def losses(bench):
    return [line["loss"] for line in metrics_of(bench.folder)]


def test_a_compiled_run_is_the_plain_one_to_the_rounding(bench, graphs):
    found = []
    for compile_ in (False, True):
        here = bench.but(
            folder=bench.folder / str(compile_), dropout=0.0, eps=1e-3, test_data=None,
            task={"generate": False}, trainer={"max_steps": 8, "evaluate_every": Every(4)},
        )  # fmt: skip
        sees = Sees(graphs)
        trainer = here.make(sees, compile=compile_)
        names = [*trainer.task.module.state_dict()]
        trainer.fit()
        assert [*trainer.task.module.state_dict()] == names
        assert not any(m._compiled_call_impl for m in trainer.task.module.modules())
        found.append((losses(here), outcome(trainer)["model"]))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-4)
    for name, value in found[0][1].items():
        torch.testing.assert_close(found[1][1][name], value, rtol=1e-3, atol=1e-4, msg=name)
    # A layer of each kind, with a mask and without, for a few ranges of sizes: not for each shape.
    assert 2 <= sees.steps[-1] <= 10
    assert sees.steps[2:] == [sees.steps[2]] * 6
    assert sees.evaluated_ == [sees.steps[3], sees.steps[7]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's compiler's own
def test_the_kernels_of_torchs_compiler_give_the_same_loss_and_gradients(bench):
    here = bench.but(dropout=0.0, valid_data=None, test_data=None)
    trainer = here.make(compile=True)
    batches = [next(trainer.data.first.groups)[0] for _ in range(4)]
    module, task = trainer.task.module, trainer.task

    def measured():
        for batch in batches:
            module.zero_grad()
            loss = task.training_step(batch)
            loss.total.backward()
            yield loss.total.detach(), {n: p.grad.clone() for n, p in module.named_parameters()}

    wanted = [*measured()]
    with blocks.compiled(module, use=True):
        found = [*measured()]
    assert differences(wanted, found)  # kernels of their own
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([nn.Linear(2, 2)])


def test_the_blocks_are_the_outermost_of_the_lists():
    stack = nn.ModuleList([Block(), Block()])
    assert blocks_of(nn.Sequential(nn.Linear(2, 2), stack)) == [*stack]
    tied = nn.ModuleList([stack[0], stack[0]])
    assert blocks_of(tied) == [stack[0]]
    alone = nn.Linear(2, 2)
    assert blocks_of(alone) == [alone]


def test_a_machine_without_a_compiler_is_refused_before_the_run(bench, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match=r"^trainer\.compile .* no no-such-compiler\. .* CXX"):
        bench.make(compile=True)
    bench.make()
