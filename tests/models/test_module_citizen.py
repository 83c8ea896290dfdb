"""What a module owes to PyTorch: copies, state, compilation, second derivatives, several processes."""

import copy
import io
import os
import pickle
import shutil

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from samples import generator, random_graph
from torch.nn.parallel import DistributedDataParallel

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.layers import FermiDiracDecoder, H2HConv, prepare_adjacency
from h2hgcn.layers.decoders import EuclideanCentroids
from h2hgcn.models import H2HGCN
from h2hgcn.models.hgcn import HGCNConv
from h2hgcn.models.hybonet import BoostedLinear
from h2hgcn.tasks.model import FeatureScaling
from h2hgcn.training import build_optimizer

EDGE_INDEX = random_graph(30, 80)[0]
X = torch.randn(30, 6, generator=generator(0))


def test_copies_and_state():
    model = H2HGCN(6, 4, 3, learn_curvature=True)
    points = model(X, EDGE_INDEX)
    other = H2HGCN(6, 4, 3, learn_curvature=True)
    other.load_state_dict(model.state_dict())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    from_file = H2HGCN(6, 4, 3)
    from_file.load_state_dict(torch.load(file, weights_only=True))
    for twin in (copy.deepcopy(model), other, from_file, pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(X, EDGE_INDEX), points)
    twin = copy.deepcopy(model)
    optimizer = build_optimizer(twin, lr=0.1)
    twin(X, EDGE_INDEX).sum().backward()
    optimizer.step()
    assert torch.equal(model(X, EDGE_INDEX), points)  # the copy moved alone
    assert stiefel.violation(twin.convs[0].linear.weight) < 1e-6
    assert not torch.equal(twin.convs[0].linear.weight, model.convs[0].linear.weight)


def test_moves_to_float64():
    model = H2HGCN(6, 4).double()
    assert model(X.double(), EDGE_INDEX).dtype == torch.float64


traces_parameters = pytest.mark.skipif(
    torch.torch_version.TorchVersion(torch.__version__) < "2.7", reason="PyTorch 2.6 cannot trace geoopt's parameters"
)
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")


@traces_parameters
@pytest.mark.parametrize(
    ("backend", "activation"),
    [("aot_eager", "relu"), ("aot_eager", "tanh"), pytest.param("inductor", "relu", marks=needs_compiler)],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the compiler's own parts
def test_compiles_to_one_graph(backend, activation):
    torch._dynamo.reset()
    model = H2HGCN(6, 4, activation=activation)
    adjacency = prepare_adjacency(EDGE_INDEX, None, 30)
    expected = model(X, adjacency)
    expected.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    output = compiled(X, adjacency)
    output.sum().backward()
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)
    for ours, truth in zip((p.grad for p in model.parameters() if p.grad is not None), gradients, strict=True):
        torch.testing.assert_close(ours, truth, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler looks at tensors where it splits the graph
def test_a_layer_compiles_with_an_edge_index():
    torch._dynamo.reset()
    conv = H2HConv(6, 6)
    points = lorentz.exp_origin(X)
    compiled = torch.compile(conv, backend="aot_eager")
    torch.testing.assert_close(compiled(points, EDGE_INDEX), conv(points, EDGE_INDEX))


def test_second_derivatives():
    model = H2HGCN(3, 3, 2, activation="leaky_relu", dtype=torch.float64)
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    decoder = FermiDiracDecoder().double()

    def loss(x):
        points = model(x, edge_index)
        return decoder(points[:-1], points[1:])

    assert torch.autograd.gradgradcheck(loss, x)


def test_autocast_leaves_the_geometry_alone():
    model = H2HGCN(6, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        points = model(X, EDGE_INDEX)
        points.sum().backward()
    assert lorentz.violation(points).max() < 1e-5


def _train_on_one_rank(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    torch.manual_seed(rank)  # ranks start apart; DDP brings them together
    model = DistributedDataParallel(H2HGCN(6, 8, 2))
    optimizer = build_optimizer(model, lr=0.01, stiefel_lr=0.1)
    edge_index = random_graph(30, 80, seed=rank)[0]
    for _ in range(20):
        optimizer.zero_grad()
        points = model(X, edge_index)
        lorentz.squared_distance(points[edge_index[0]], points[edge_index[1]]).mean().backward()
        optimizer.step()
    torch.save(model.module.state_dict(), folder / f"{rank}.pt")
    dist.barrier()
    os._exit(0)  # gloo's threads and the interpreter's shutdown can wait for each other forever


def test_two_processes_stay_in_step(tmp_path):
    mp.spawn(_train_on_one_rank, args=(tmp_path,), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    torch.manual_seed(0)
    initial = H2HGCN(6, 8, 2).state_dict()
    for name, weight in first.items():
        assert torch.equal(weight, second[name])
        if "convs" in name:
            assert stiefel.violation(weight) < 1e-6
            assert not torch.equal(weight, initial[name])


@pytest.mark.parametrize(
    ("module", "shown"),
    [
        (HGCNConv(3, 4), "(3, 4, neighbor_weights='uniform')"),
        (BoostedLinear(3, 4), "(3, 4, min_time=1.1)"),
        (EuclideanCentroids(3, 7), "(3, num_centroids=7)"),
        (FeatureScaling("row", 5), "(5, scaling='row')"),
    ],
)
def test_layers_show_their_sizes(module, shown):
    assert repr(module) == type(module).__name__ + shown
