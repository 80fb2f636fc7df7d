from __future__ import annotations

import base64
import json
import math

import numpy as np
import pytest

from eegnn.report.page_pack import FULL, pack, pack_share, rounded, script_json


@pytest.mark.parametrize("dtype", ["u2", "u4", "f4"])
def test_numbers_come_back(dtype: str) -> None:
    values = [0, 1, 513, 65535]
    packed = pack(values, dtype)
    assert packed["dtype"] == dtype
    assert np.frombuffer(base64.b64decode(packed["data"]), f"<{dtype}").tolist() == values


@pytest.mark.parametrize("value", [65536, -1, 0.5])
def test_what_does_not_fit_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="must fit into u2"):
        pack(np.array([value]), "u2")


def test_shares_are_kept_to_the_fifth_digit() -> None:
    values = np.array([0.0, 0.3, 0.99996, 1.0, 1.5, -0.1, math.nan])
    back = np.frombuffer(base64.b64decode(pack_share(values)["data"]), "<u2") / FULL
    np.testing.assert_allclose(back, [0, 0.3, 0.99996, 1, 1, 0, 0], atol=1e-5)


def test_json_knows_no_nan_and_few_digits() -> None:
    found = rounded({"a": [1 / 3, math.nan, (math.inf, 2)], "b": "text", "c": None, "d": True})
    assert found == {"a": [0.33333, None, [None, 2]], "b": "text", "c": None, "d": True}


def test_nothing_ends_the_script() -> None:
    content = {"name": "</script><script>alert(1)</script>&amp;<!--\u2028"}
    text = script_json(content)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == content
