"""Two classes of values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def split_point(ordered: NDArray[np.float64]) -> int:
    """How many of some sorted values, two or more, are in the lower of two classes.

    They are parted where the variance within the classes is smallest, and between them largest
    (N. Otsu, A threshold selection method from gray-level histograms, IEEE Transactions on Systems,
    Man, and Cybernetics 9, 1979).
    """
    count = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    first, total = sums[:-1], sums[-1]
    between = first**2 / count + (total - first) ** 2 / (len(ordered) - count)
    return int(between.argmax()) + 1
