"""omb-py, built from the checkout that this recipe is in."""

from pathlib import Path

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cuda import CudaPackage
    from spack_repo.builtin.build_systems.python import PythonPackage
except ImportError:
    pass  # Spack before 1.0 has them in spack.package


class PyOmbPython(PythonPackage, CudaPackage):
    """Communication benchmarks for Python on HPC systems, with native OMB's definitions."""

    git = Path(__file__).resolve().parents[4].as_uri()

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("sweep", default=True, description="Sweeps and batch jobs")
    variant("analysis", default=False, description="Comparisons, plots and reports")

    depends_on("c", type="build")
    depends_on("py-hatchling", type="build")
    depends_on("mpi", type="run")

    with default_args(type=("build", "run")):
        depends_on("python@3.11:")
        depends_on("py-mpi4py@4:")
        depends_on("py-numpy@1.24:")
        depends_on("py-click@8.2:")

        with when("+sweep"):
            depends_on("py-pydantic@2.7:")
            depends_on("py-jinja2@3.1.2:")
            depends_on("py-rich@13:")
            depends_on("py-tomli-w@1:")

        with when("+analysis"):
            depends_on("py-pandas@2.2:")
            depends_on("py-pyarrow@16:")
            depends_on("py-scipy@1.11:")
            depends_on("py-altair@5.4:")
            depends_on("py-vl-convert-python@1.6:")
            depends_on("py-plotext@6:")
            depends_on("py-rich@13:")
            depends_on("py-jinja2@3.1.2:")
            depends_on("py-pydantic@2.7:")

        # Spack has no py-numba-cuda, so +cuda brings the buffer library CuPy alone.
        with when("+cuda"):
            depends_on("py-cupy@13.6:")
            for _arch in CudaPackage.cuda_arch_values:
                depends_on(f"py-cupy +cuda cuda_arch={_arch}", when=f"cuda_arch={_arch}")

    conflicts("cuda_arch=none", when="+cuda", msg="name the devices, as in cuda_arch=90")
    conflicts("^py-cupy@14.1.0", when="+cuda")

    def _measure(self, ranks, *arguments):
        """What omb-py prints on so many ranks."""
        mpiexec = which(self.spec["mpi"].prefix.bin.mpiexec)
        program = self.prefix.bin.join("omb-py")
        return mpiexec("-n", str(ranks), program, *arguments, output=str.split, error=str.split)

    def test_latency(self):
        """messages arrive as they were sent, between two ranks"""
        out = self._measure(2, "latency", "-m", "8:8", "-i", "100", "-c")
        assert "OSU MPI Latency Test" in out
        assert "Pass" in out

    def test_allreduce(self):
        """a collective on four ranks gives the sum"""
        out = self._measure(4, "allreduce", "-m", "8:8", "-i", "100", "-c")
        assert "Pass" in out

    def test_native(self):
        """C beside Python in one job"""
        out = self._measure(2, "latency", "-m", "8:8", "-i", "100", "--binding", "native")
        assert "binding native" in out
