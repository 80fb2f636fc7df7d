from __future__ import annotations

from typing import Any

import pytest

from eegnn.train.config import Config, make_config, parse_encoding, parse_overrides

BASE = {"dataset": "tolokers"}


def test_defaults_hold_where_nothing_is_said() -> None:
    config = make_config(BASE)
    assert config.model_dump(exclude_unset=True) == {"dataset": "tolokers", "options": {}}
    assert (config.model, config.split, config.seed, config.options) == ("eegnn", 0, 0, {})


def test_later_layers_win() -> None:
    config = make_config(BASE, {"lr": 0.1, "epochs": 7}, {"lr": 0.2})
    assert (config.lr, config.epochs, config.dataset) == (0.2, 7, "tolokers")


def test_options_are_merged_entry_by_entry() -> None:
    first = {"options": {"dropout": 0.1, "nu0": 0.0}}
    config = make_config(BASE, first, {"seed": 1}, {"options": {"dropout": 0.2, "pool": "add"}})
    assert config.options == {"dropout": 0.2, "nu0": 0.0, "pool": "add"}


def test_merging_leaves_the_layers_as_they_were() -> None:
    first: dict[str, Any] = {"dataset": "cora", "options": {"dropout": 0.1}}
    second: dict[str, Any] = {"options": {"nu0": 1}}
    make_config(first, second)
    assert first == {"dataset": "cora", "options": {"dropout": 0.1}}
    assert second == {"options": {"nu0": 1}}


def test_a_dumped_configuration_is_read_back_unchanged() -> None:
    config = make_config(BASE, {"patience": 3, "clip_norm": 1.5, "options": {"shared": True}})
    assert make_config(config.model_dump()) == config


def test_a_configuration_never_changes() -> None:
    config = make_config(BASE)
    with pytest.raises(ValueError, match="frozen"):
        config.lr = 1.0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("split", -1),
        ("seed", -1),
        ("hidden_channels", 0),
        ("num_layers", 0),
        ("epochs", 0),
        ("patience", 0),
        ("optimizer", "sgd"),
        ("lr", 0),
        ("lr", float("nan")),
        ("weight_decay", -1e-9),
        ("clip_norm", 0),
        ("schedule", "linear"),
        ("batch_size", 0),
        ("loss", "cross_entropy"),
        ("cost_weight", -0.1),
        ("encoding", "sines"),
        ("encoding", "none:4"),
        ("encoding", "rwse:0"),
        ("encoding", "lappe:"),
        ("encoding", "rwse:8.5"),
    ],
)
def test_a_value_out_of_range_is_named(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{key}: ") as caught:
        make_config(BASE, {key: value})
    assert repr(value) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dataset", 3),
        ("model", None),
        ("split", "first"),
        ("epochs", 2.5),
        ("patience", "never"),
        ("lr", "fast"),
        ("lr", None),
        ("hidden_channels", [32]),
        ("standardize", "perhaps"),
        ("clip_norm", {}),
    ],
)
def test_a_value_of_the_wrong_type_is_named(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{key}: ") as caught:
        make_config(BASE, {key: value})
    assert repr(value) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_key_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^'learning_rate' is no setting; known are") as caught:
        make_config(BASE, {"learning_rate": 0.1})
    assert "\n" not in str(caught.value)
    for known in ("lr", "epochs", "options.NAME"):
        assert known in str(caught.value)


def test_a_missing_data_set_is_named() -> None:
    with pytest.raises(ValueError, match=r"^dataset: field required$"):
        make_config({"lr": 0.1})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.003", 0.003),
        ("7", 7),
        ("true", True),
        ("null", None),
        ('"quoted"', "quoted"),
        ("[1, 2]", [1, 2]),
        ("cosine", "cosine"),
        ("True", "True"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_values_on_the_command_line_are_json_or_else_text(text: str, value: Any) -> None:
    parsed = parse_overrides([f"key={text}"])
    assert parsed == {"key": value}
    assert type(parsed["key"]) is type(value)


def test_options_on_the_command_line_are_gathered() -> None:
    pairs = ["options.nu0=0", "lr=0.1", "options.confidence=mlp"]
    assert parse_overrides(pairs) == {"lr": 0.1, "options": {"nu0": 0, "confidence": "mlp"}}


def test_clipping_is_switched_off_on_the_command_line() -> None:
    recipe = {**BASE, "clip_norm": 1.0}
    assert make_config(recipe, parse_overrides(["clip_norm=null"])).clip_norm is None


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("none", ("none", 0)),
        ("rwse", ("rwse", 16)),
        ("lappe", ("lappe", 16)),
        ("rwse:8", ("rwse", 8)),
        ("lappe:10", ("lappe", 10)),
    ],
)
def test_an_encoding_has_its_number_of_columns(encoding: str, expected: tuple[str, int]) -> None:
    assert parse_encoding(make_config(BASE, {"encoding": encoding}).encoding) == expected


def test_there_are_twenty_settings() -> None:
    assert len(Config.model_fields) == 20


def test_the_last_of_two_values_on_the_command_line_wins() -> None:
    assert parse_overrides(["lr=1", "lr=2"]) == {"lr": 2}


def test_nothing_on_the_command_line_changes_nothing() -> None:
    assert parse_overrides([]) == {}


@pytest.mark.parametrize("pair", ["lr", "", "=0.1", "lr 0.1"])
def test_an_override_without_key_or_value_is_named(pair: str) -> None:
    with pytest.raises(ValueError, match="--set needs key=value") as caught:
        parse_overrides([pair])
    assert repr(pair) in str(caught.value)


@pytest.mark.parametrize("pairs", [["options=3"], ["options=3", "options.nu0=1"], ["options=[]"]])
def test_options_that_are_no_table_are_named(pairs: list[str]) -> None:
    with pytest.raises(ValueError, match="options"):
        make_config({"dataset": "x"}, parse_overrides(pairs))


@pytest.mark.parametrize(
    "pair", ["lr=Infinity", "weight_decay=Infinity", "cost_weight=Infinity", "epochs=true"]
)
def test_infinite_numbers_and_booleans_as_numbers_are_refused(pair: str) -> None:
    with pytest.raises(ValueError, match=pair.partition("=")[0]):
        make_config({"dataset": "x"}, parse_overrides([pair]))
