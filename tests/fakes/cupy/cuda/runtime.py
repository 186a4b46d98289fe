"""The runtime of CUDA, or of ROCm where OMB_FAKE_ROCM is set."""

import os

is_hip = "OMB_FAKE_ROCM" in os.environ
DRIVER = "libamdhip64.so.7" if is_hip else "libcuda.so.1"


def runtimeGetVersion() -> int:  # noqa: N802 - CuPy's name
    return 13000
