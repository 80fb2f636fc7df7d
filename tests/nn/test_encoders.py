from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from eegnn.nn.encoders import Decoder, Encoder


def test_the_encoder_is_a_linear_layer_and_relu() -> None:
    encoder = Encoder(3, 4).double()
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = (x @ encoder.weight.T + encoder.bias).clamp(min=0)
    torch.testing.assert_close(encoder(x), expected)


def test_without_features_every_node_starts_from_the_bias() -> None:
    encoder = Encoder(0, 4)
    out = encoder(torch.zeros(3, 0))
    assert torch.equal(out, encoder.bias.relu().expand(3, 4))
    out.sum().backward()
    assert encoder.bias.grad is not None
    assert torch.equal(encoder.bias.grad, 3.0 * (encoder.bias > 0))


@pytest.mark.parametrize("in_channels", [0, 1, 100])
def test_the_encoder_starts_as_torchs_linear_does(in_channels: int) -> None:
    torch.manual_seed(0)
    encoder = Encoder(in_channels, 500)
    bound = max(in_channels, 1) ** -0.5
    for p in encoder.parameters():
        if p.numel():
            assert 0.97 * bound < p.abs().max() <= bound


def test_dropout_is_for_training_and_scales() -> None:
    encoder = Encoder(3, 400, dropout=0.5)
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    full = encoder.eval()(x)
    torch.manual_seed(0)
    dropped = encoder.train()(x)
    kept = dropped != 0
    assert 0 < int(kept.sum()) < int((full != 0).sum())
    torch.testing.assert_close(dropped[kept], 2 * full[kept])


def test_the_decoder_is_linear_without_bias() -> None:
    decoder = Decoder(4, 3)
    assert [tuple(p.shape) for p in decoder.parameters()] == [(3, 4)]
    assert torch.equal(decoder(torch.zeros(2, 4)), torch.zeros(2, 3))


@pytest.mark.parametrize("bias", [None, True, False])
def test_a_deeper_decoder_has_relu_between_and_biases_unless_told(bias: bool | None) -> None:
    decoder = Decoder(4, 3, num_layers=2, bias=bias).double()
    first, last = decoder.mlp.lins
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    assert (first.bias is not None) == (last.bias is not None) == (bias is not False)
    z = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(decoder(z), last(first(z).clamp(min=0)))


def test_decoder_dropout_acts_on_the_states_it_is_given() -> None:
    decoder = Decoder(4, 3, dropout=1.0)
    assert torch.equal(decoder(torch.ones(2, 4)), torch.zeros(2, 3))
    assert decoder.eval()(torch.ones(2, 4)).abs().sum() > 0


@pytest.mark.parametrize("module", [Encoder(3, 4), Decoder(3, 4, num_layers=2, bias=True)])
def test_reset_draws_anew(module: Encoder | Decoder) -> None:
    before = [p.detach().clone() for p in module.parameters()]
    module.reset_parameters()
    assert not any(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


@pytest.mark.parametrize("kind", [Encoder, Decoder])
@pytest.mark.parametrize(
    ("dropout", "error"), [(2, ValueError), (-0.1, ValueError), ("0.1", TypeError)]
)
def test_a_bad_dropout_is_refused(
    kind: type[Encoder] | type[Decoder], dropout: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="dropout must be"):
        kind(3, 4, dropout=dropout)


def test_a_negative_number_of_features_is_refused() -> None:
    with pytest.raises(ValueError, match="in_channels must be at least 0, got -1"):
        Encoder(-1, 4)


def test_repr() -> None:
    assert repr(Encoder(3, 4)) == "Encoder(3, 4)"
    assert repr(Decoder(4, 2)) == "Decoder(MLP(4, 2))"


def test_a_batch_norm_brings_what_is_decoded_to_one_scale() -> None:
    decoder = Decoder(4, 3, num_layers=2, norm=True)
    z = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    out = decoder(z)
    # The batch norm divides by √(variance + 1e-5).
    torch.testing.assert_close(decoder(1000 * z + 7), out, atol=1e-4, rtol=1e-4)
    assert decoder(z[:1]).shape == (1, 3)  # a single unit has no variance
    plain = Decoder(4, 3, num_layers=2)
    assert set(plain.state_dict()) < set(decoder.state_dict())
