import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import antisparse
from antisparse import BlockFrame, InputError, InputTypeError, block_frame, gaussian_frame, tight_frame
from antisparse.frames import frame_matrix


@given(d=st.integers(1, 80), more=st.integers(0, 80), seed=st.integers(0, 2**32))
def test_tight_frame_rows_are_orthonormal(d: int, more: int, seed: int) -> None:
    A = tight_frame(d, d + more, seed)
    assert A.shape == (d, d + more) and A.dtype == np.float64
    np.testing.assert_allclose(A @ A.T, np.eye(d), atol=1e-12, rtol=0)


@given(d=st.integers(1, 60), more=st.integers(0, 60), size=st.integers(1, 70), seed=st.integers(0, 2**32))
def test_block_frame_is_tight_and_knows_its_matrix(d: int, more: int, size: int, seed: int) -> None:
    frame = block_frame(d, d + more, size, seed)
    assert frame.shape == frame.matrix.shape == (d, d + more)
    np.testing.assert_allclose(frame.matrix @ frame.matrix.T, np.eye(d), atol=1e-12, rtol=0)
    assert len(frame.blocks) == -(-d // size)
    assert max(b.shape[0] for b in frame.blocks) <= size
    assert all(b.shape[1] >= b.shape[0] for b in frame.blocks)
    rotation = np.eye(d) if frame.rotation is None else frame.rotation
    start_row = start_column = 0
    for block in frame.blocks:
        rows = slice(start_row, start_row + block.shape[0])
        columns = slice(start_column, start_column + block.shape[1])
        np.testing.assert_allclose(frame.matrix[:, columns], rotation[:, rows] @ block, atol=1e-14)
        start_row, start_column = rows.stop, columns.stop


def test_a_seed_gives_the_same_frame_bit_for_bit() -> None:
    for make in (gaussian_frame, tight_frame):
        assert make(7, 20, 3).tobytes() == make(7, 20, 3).tobytes()
        assert make(7, 20, 3).tobytes() == make(7, 20, np.random.default_rng(3)).tobytes()
        assert make(7, 20, 3).tobytes() != make(7, 20, 4).tobytes()
    assert block_frame(9, 20, 4, 1).matrix.tobytes() == block_frame(9, 20, 4, 1).matrix.tobytes()


def test_the_orthonormal_rows_use_only_exactly_rounded_operations_in_a_fixed_order() -> None:
    # The same sums written in Python floats, which are IEEE doubles everywhere: the frame must match to the last bit.
    d, m = 5, 11
    rows = np.random.default_rng(8).standard_normal((d, m)).tolist()

    def dot(a: list[float], b: list[float]) -> float:
        lanes = [0.0] * 8
        for i in range(m):
            lanes[i % 8] += a[i] * b[i]
        total = 0.0
        for lane in lanes:
            total += lane
        return total

    for _ in range(2):
        for i in range(d):
            for j in range(i):
                factor = dot(rows[i], rows[j])
                rows[i] = [u - factor * v for u, v in zip(rows[i], rows[j], strict=True)]
            norm = float(np.sqrt(dot(rows[i], rows[i])))
            rows[i] = [u / norm for u in rows[i]]
    assert np.array(rows).tobytes() == tight_frame(d, m, 8).tobytes()


def test_gaussian_frame_is_tight_on_average() -> None:
    A = gaussian_frame(4, 100_000, 0)
    np.testing.assert_allclose(A @ A.T, np.eye(4), atol=0.02)
    assert gaussian_frame(5, 3, 0).shape == (5, 3)


@pytest.mark.parametrize("make", [tight_frame, lambda d, m: block_frame(d, m, 4)])
def test_tight_frames_refuse_fewer_columns_than_rows(make) -> None:
    with pytest.raises(InputError, match=r"m >= d, but m = 5 and d = 6"):
        make(6, 5)


@pytest.mark.parametrize("make", [gaussian_frame, tight_frame, lambda d, m: block_frame(d, m, 4)])
def test_sizes_are_checked_by_name(make) -> None:
    with pytest.raises(InputError, match="d = 0"):
        make(0, 5)
    with pytest.raises(InputError, match="m = -1"):
        make(3, -1)
    with pytest.raises(InputTypeError, match="d must be an integer"):
        make(2.5, 5)
    with pytest.raises(InputTypeError, match="m must be an integer"):
        make(2, "5")


def test_seed_and_block_size_are_checked() -> None:
    with pytest.raises(InputError, match="block_size = 0"):
        block_frame(4, 8, 0)
    with pytest.raises(InputTypeError, match="seed"):
        tight_frame(2, 3, "x")
    with pytest.raises(InputError, match="seed = -1"):
        tight_frame(2, 3, -1)


def test_block_frame_checks_its_parts() -> None:
    with pytest.raises(InputError, match="blocks is empty"):
        BlockFrame(())
    with pytest.raises(InputTypeError, match="sequence of matrices"):
        BlockFrame(np.eye(3))
    with pytest.raises(InputError, match=r"blocks\[1\] has shape \(0, 2\)"):
        BlockFrame((np.eye(2), np.ones((0, 2))))
    with pytest.raises(InputError, match=r"must be \(4, 4\)"):
        BlockFrame((np.eye(2), np.eye(2)), np.eye(3))
    with pytest.raises(InputError, match="not orthogonal"):
        BlockFrame((np.eye(2),), np.array([[1.0, 0.1], [0.0, 1.0]]))
    with pytest.raises(InputError, match="contains NaN"):
        BlockFrame((np.array([[np.nan]]),))


def test_block_frame_keeps_its_own_read_only_copy() -> None:
    block = np.eye(2)
    frame = BlockFrame((block,))
    block[0, 0] = 7
    assert frame.matrix[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        frame.blocks[0][0, 0] = 3


def test_frame_matrix_names_the_argument() -> None:
    with pytest.raises(InputError, match=r"A has shape \(0, 3\)"):
        frame_matrix(np.ones((0, 3)))
    with pytest.raises(InputError, match="A row 1, column 0 is inf"):
        frame_matrix(np.array([[1.0], [np.inf]]))


def test_public_names_exist() -> None:
    for name in antisparse.__all__:
        assert hasattr(antisparse, name)
    assert antisparse.__version__ == "0.2.0"
