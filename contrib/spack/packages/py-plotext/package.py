"""plotext, which Spack does not have."""

from spack.package import *

try:
    from spack_repo.builtin.build_systems.python import PythonPackage
except ImportError:
    pass  # Spack before 1.0 has it in spack.package


class PyPlotext(PythonPackage):
    """Plots in a terminal."""

    pypi = "plotext/plotext-6.1.0.tar.gz"

    license("MIT")

    version("6.1.0", sha256="6b729ce6376c5c1c2152fe85e0449dcc54879d0923b3c6c8d1670108245c6f84")

    depends_on("cxx", type="build")
    depends_on("py-setuptools@64:", type="build")
    depends_on("py-wheel", type="build")
    depends_on("python@3.8:", type=("build", "run"))
