"""Files of samples as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


def read(path: Path) -> pd.DataFrame:
    """Return the samples of a file; missing values are as the file has them."""
    table = pd.DataFrame(np.load(path))
    texts = table.select_dtypes(object)
    return table.assign(**{name: texts[name].str.decode("ascii") for name in texts})
