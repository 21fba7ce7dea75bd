"""Products of sparse rows and their gradients, against those of the whole matrix."""

import pytest
import torch

from textmill.models.layers.sparse_rows import SparseRows


@pytest.fixture
def parts():
    """Numbers in any order, two of them at one place, and rows and columns that have none."""
    torch.manual_seed(0)
    rows = torch.tensor([4, 0, 2, 0, 4, 4])
    columns = torch.tensor([1, 3, 3, 0, 1, 6])
    return rows, columns, torch.randn(6, dtype=torch.float64)


def test_product_and_gradient_are_those_of_the_whole_matrix(parts):
    rows, columns, values = parts
    matrix = torch.zeros(6, 8, dtype=torch.float64).index_put_((rows, columns), values, True)
    table = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    sparse = SparseRows(*parts, shape=(6, 8))
    torch.testing.assert_close(sparse.times(table), matrix @ table)
    assert torch.autograd.gradcheck(sparse.times, (table,))
    up = torch.randn(6, 3, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(sparse.times(table), table, up)
    torch.testing.assert_close(gradient, matrix.T @ up)


def test_rows_without_any_number_are_zero():
    nothing = torch.zeros(0, dtype=torch.int64)
    sparse = SparseRows(nothing, nothing, torch.zeros(0), shape=(2, 3))
    table = torch.ones(3, 1, requires_grad=True)
    out = sparse.times(table)
    out.sum().backward()
    assert out.tolist() == [[0.0], [0.0]]
    assert table.grad.tolist() == [[0.0]] * 3
