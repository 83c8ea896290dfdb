import math

import pytest
import torch
from runs import Flat, same_weights, small_data, small_fit
from torch import nn

from h2hgcn.errors import NonFiniteError
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import NonFiniteLossError, load_run
from h2hgcn.training.loop import evaluate

BAD_NUMBER = pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])


def spoil(parameter, number, epoch):
    def after_epoch(report, state):
        if report.epoch == epoch:
            parameter.data.view(-1)[-1] = number

    return after_epoch


@BAD_NUMBER
@pytest.mark.parametrize("name", ["stem.weight", "stem.bias", "convs.1.linear.weight"])
def test_a_parameter_that_went_bad_is_named(number, name, tmp_path):
    torch.manual_seed(0)
    encoder = H2HGCN(16, 4)
    state = {key: value.clone() for key, value in encoder.state_dict().items()}
    after_epoch = spoil(encoder.get_parameter(name), number, 2)
    with pytest.raises(NonFiniteLossError, match=rf"epoch 3: .* the parameter encoder.{name} holds NaN.*lower lr"):
        small_fit(model=encoder, folder=tmp_path, on_epoch=after_epoch)

    def another():
        encoder = H2HGCN(16, 4)
        encoder.load_state_dict(state)
        return encoder

    resumed = small_fit(model=another(), folder=tmp_path)  # the checkpoint is that of the second epoch, and good
    assert same_weights(resumed, small_fit(model=another()))


@BAD_NUMBER
@pytest.mark.parametrize("task", ["lp", "nc", "gc"])
def test_an_encoder_that_does_not_look_at_its_numbers(task, number):
    encoder = Flat(5 if task == "gc" else 16)
    with pytest.raises(NonFiniteLossError, match=r"epoch 2: .* the parameter encoder.linear.bias holds NaN"):
        small_fit(task, model=encoder, on_epoch=spoil(encoder.linear.bias, number, 1))


class Spoilt(nn.Linear):
    """Good numbers until they are looked at."""

    def forward(self, x):
        return super().forward(x) if self.training else super().forward(x) * math.nan


@pytest.mark.parametrize("task", ["lp", "nc", "gc"])
def test_numbers_that_go_bad_in_evaluation(task):
    encoder = Flat(5 if task == "gc" else 16)
    encoder.linear = Spoilt(5 if task == "gc" else 16, 3)
    with pytest.raises(NonFiniteLossError, match="epoch 1: the scores hold NaN or infinity: all parameters are fin"):
        small_fit(task, model=encoder)


OVERFLOW = r"epoch 1: the (scores|loss) .*all parameters are finite .* so they or the features overflow; try a lower lr"


def test_an_encoder_without_bounds_overflows_with_a_message():
    with pytest.raises(NonFiniteLossError, match=OVERFLOW):
        small_fit(model=Flat, settings={"lr": 1e30})
    graph = small_data()
    graph.x *= 1e30
    with pytest.raises(NonFiniteLossError, match=OVERFLOW):
        small_fit(data=graph, model=Flat)


@pytest.mark.parametrize("rate", [1e20, 1e30])
def test_an_encoder_with_bounds_survives_any_learning_rate(rate):
    run = small_fit(settings={"lr": rate, "stiefel_lr": rate})
    assert all(value.isfinite().all() for value in run.model.state_dict().values())
    assert run.embeddings.isfinite().all()


@pytest.mark.parametrize("scale", [1e-30, 1e10, 1e30, 1e37])
@pytest.mark.parametrize("scaling", ["raw", "row", "standard"])
def test_an_encoder_with_bounds_survives_features_of_any_size(scale, scaling):
    graph = small_data()
    graph.x = graph.x.clamp(-1, 1) * scale
    run = small_fit(LinkPrediction(scaling=scaling), graph)
    assert run.embeddings.isfinite().all()
    assert all(0 <= score <= 1 for score in run.result["trivial"].values())


def test_it_is_arithmetic_and_no_fault_of_the_input():
    assert issubclass(NonFiniteLossError, ArithmeticError)
    assert issubclass(NonFiniteLossError, NonFiniteError)


def test_gradients_are_clipped():
    free, clipped = (small_fit(model=Flat, settings={"clip_norm": norm, "weight_decay": 0.1}) for norm in (None, 1e-30))
    assert not same_weights(free, clipped)
    losses = [[row["loss"] for row in run.history] for run in (free, clipped)]
    assert losses[0][0] == losses[1][0]
    assert losses[0][1] != losses[1][1]


def test_evaluation_leaves_the_mode_as_it_was():
    run = small_fit()
    for training in (True, False):
        run.model.train(training)
        evaluate(run.problem, run.model, "val")
        assert all(module.training is training for module in run.model.modules())


def test_loading_does_not_need_a_working_generator(tmp_path):
    run = small_fit(folder=tmp_path)
    state = torch.get_rng_state()
    assert same_weights(load_run(tmp_path), run)
    assert torch.equal(torch.get_rng_state(), state)
