import contextlib
import os

import numpy as np
import pytest

from antisparse import (
    AntiSparseEncoder,
    FormatError,
    InputError,
    InputTypeError,
    ITQEncoder,
    LSHEncoder,
    SpectralHashEncoder,
    block_frame,
    load_encoder,
    save_encoder,
    tight_frame,
)

X = np.random.default_rng(0).standard_normal((200, 10)) + 2
ENCODERS = [
    AntiSparseEncoder(24, random_state=0),
    AntiSparseEncoder(24, means=20, random_state=0),
    AntiSparseEncoder(20, means=20, bias="half", random_state=0),
    AntiSparseEncoder(24, frame="tight", bias="half", random_state=0),
    AntiSparseEncoder(24, frame="words", random_state=0),
    AntiSparseEncoder(20, frame="words", means=20, bias="half", random_state=0),
    AntiSparseEncoder(24, frame="block", block_size=4, random_state=np.random.RandomState(3)),
    AntiSparseEncoder(24, frame=block_frame(10, 24, 3, 0)),
    LSHEncoder(6, frame="gaussian", random_state=0),
    LSHEncoder(12, frame=tight_frame(10, 12, 0), center=False),
    ITQEncoder(8, random_state=0),
    SpectralHashEncoder(17),
]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_what_is_loaded_is_what_was_saved(tmp_path, encoder) -> None:
    path = tmp_path / "encoder.safetensors"
    save_encoder(encoder.fit(X), path)
    again = load_encoder(path)
    assert type(again) is type(encoder)
    codes = encoder.transform(X)
    np.testing.assert_array_equal(again.transform(X), codes)
    assert again.code_layout_ == encoder.code_layout_
    if encoder.reconstructs:
        np.testing.assert_array_equal(again.inverse_transform(codes), encoder.inverse_transform(codes))
    again.fit(X)  # the parameters came along
    assert os.listdir(tmp_path) == ["encoder.safetensors"]


def test_every_flipped_bit_and_every_truncation_is_found(tmp_path) -> None:
    path = tmp_path / "encoder"
    encoder = AntiSparseEncoder(4, random_state=0).fit(X[:, :3])
    save_encoder(encoder, path)
    whole = path.read_bytes()
    codes = encoder.transform(X[:, :3])
    harmless = 0
    for position in range(8 * len(whole)):
        data = bytearray(whole)
        data[position // 8] ^= 1 << position % 8
        path.write_bytes(data)
        with contextlib.suppress(FormatError):
            again = load_encoder(path)
            # A flip that says the same, such as one blank for another in the header, must change nothing.
            np.testing.assert_array_equal(again.transform(X[:, :3]), codes)
            assert again.get_params() == encoder.get_params()
            harmless += 1
    assert harmless <= 8 * 16  # the header's padding, at most
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            load_encoder(path)


@pytest.mark.parametrize("data", [b"", b"\x00" * 100, b"\xff" * 100, b"PK\x03\x04" * 50, b"\x02" + b"\x00" * 7 + b"{}"])
def test_other_files_are_refused(tmp_path, data: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="other: "):
        load_encoder(path)
    with pytest.raises(FileNotFoundError):
        load_encoder(tmp_path / "missing")


def forged(tmp_path, change):
    """A file with a good checksum that says something else."""
    import json

    from safetensors.numpy import save

    from antisparse.encoders import storage

    path = tmp_path / "forged"
    save_encoder(LSHEncoder(8, random_state=0).fit(X), path)
    data = path.read_bytes()
    header = storage._header(data)
    tensors = storage.load_tensors(data)
    content = json.loads(header["content"])
    change(header, content, tensors)
    text = json.dumps(content)
    header |= {"content": text, "crc32": str(storage._checksum(text, tensors))}
    path.write_bytes(save(tensors, header))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, c, t: h.update(version="2"), "has version 2"),
        (lambda h, c, t: h.update(format="x"), "not an encoder"),
        (lambda h, c, t: c.update({"class": "Popen"}), "not a sound encoder file"),
        (lambda h, c, t: c["fitted"].pop("sigma_"), "attributes"),
        (lambda h, c, t: c["fitted"].update(transform=1), "attributes"),
        (lambda h, c, t: c["fitted"].update(sigma_=-1), "sigma_"),
        (lambda h, c, t: c["fitted"].update(mean_={"tensor": "nothing"}), "not a sound encoder file"),
        (lambda h, c, t: t.update({"fitted.mean_": np.zeros(9)}), "mean_ has shape"),
        (lambda h, c, t: t.update({"fitted.mean_": np.full(10, np.nan)}), "mean_"),
        (lambda h, c, t: t.update({"fitted.frame_": np.zeros((3, 8))}), "frame_ has shape"),
        (lambda h, c, t: c["parameters"].update(n_bits=9), "n_bits"),
        (lambda h, c, t: c["fitted"]["code_layout_"].update(n_bits=float("inf")), "not a sound encoder file"),
        (lambda h, c, t: c["fitted"]["code_layout_"].update(side=[["x", 10**13]]), "code_layout_"),
        (lambda h, c, t: t.update({"fitted.frame_": np.zeros((8, 8), np.float32)}), "frame_"),
        (
            lambda h, c, t: c["fitted"].update(frame_={"blocks": [{"tensor": "fitted.mean_"}] * 9, "rotation": None}),
            "not a sound encoder file",
        ),
        (lambda h, c, t: c["parameters"].update(surprise=1), "surprise"),
    ],
)
def test_hostile_files_are_refused(tmp_path, change, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load_encoder(forged(tmp_path, change))


def test_names_of_features_are_kept(tmp_path) -> None:
    path, names = tmp_path / "encoder.safetensors", [f"x{i}" for i in range(10)]
    encoder = LSHEncoder(12, random_state=0).fit(X)
    encoder.feature_names_in_ = np.array(names, dtype=object)  # as fitting on a table does
    save_encoder(encoder, path)
    assert list(load_encoder(path).feature_names_in_) == names
    for wrong in (names[:9], [*names[:9], "x" * 3, "y"]):
        encoder.feature_names_in_ = np.array(wrong, dtype=object)
        save_encoder(encoder, path)
        with pytest.raises(FormatError, match="feature names"):
            load_encoder(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "encoder"
    save_encoder(LSHEncoder(8, random_state=0).fit(X), path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        save_encoder(LSHEncoder(9, random_state=0).fit(X), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["encoder"]


def test_what_cannot_be_saved_is_said(tmp_path) -> None:
    with pytest.raises(InputError, match="not fitted"):
        save_encoder(LSHEncoder(8), tmp_path / "x")
    with pytest.raises(InputTypeError, match="encoder is a int"):
        save_encoder(3, tmp_path / "x")
