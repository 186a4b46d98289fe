# make run               install into .venv and print a latency and an allreduce table
# make run MPI=openmpi   the same on Open MPI, in .venv-openmpi
# make check             in three minutes: lint, types, and quick tests without ranks
# make test              in 17 minutes: every benchmark, binding, buffer and command on MPICH and
#                        on Open MPI; of products of many cases a sample (SEED=random: another one)
# make test-mpich        its part on MPICH; make test-openmpi that on Open MPI
# make test-units        what make check tests; with MPI=openmpi on Open MPI
# make test-long         after make test, on MPICH: tests that take longer than a second or two,
#                        among them every output that a page shows; with make test what .ci/run runs
# make test-all          everything: what make test runs, then the other cases, then make chaos
# make chaos             in ten minutes: 200 faults in real runs, 100 on each MPI: processes stopped,
#                        frozen, a full disk, a network that is gone, a clock that is set
# make test-abi          tests of what calls MPI, with an mpi4py built for the MPI standard's ABI
# make test-lowest       what make check tests, with the lowest versions of all dependencies
# make coverage          the lines and branches that make test reaches, ranks included, in per cent;
#                        of other tests with COVERED="a pytest marker expression"
# make mutation          what no test notices when statistics, data checks, rows and readers are changed,
#                        thousands of times; MUTANTS='omb_py.measure.statistics*' for some of them
# make speed             what the suite adds to mpi4py and to C (needs a C compiler)
# make abi-cost          what the MPI standard's ABI costs: the table and the figure of docs/overhead.md
# make gpu-check         on a machine with a GPU: check and measure everything on a device
# make support           try every benchmark on both MPIs, into docs/support.csv; with BENCHMARK="NAME…"
#                        some of them
# make results           measure the files of results/ anew and draw the figures of docs/, on a quiet
#                        machine; of some parts PARTS="overhead families"; OMB=DIR has native OMB
# make observing         what omb-py profile costs
# make start-up          what starting costs: modules, files and seconds
# make site              the documentation as a site, in site/: open site/index.html, or serve it with
#                        python3 -m http.server --directory site, which its search needs
# make docs              write the tables in docs/ that follow from the code and from results/
# make docs-outputs      run every command whose output the documentation shows, and show what it prints
# make jobs              write the scripts in jobs/ anew from configs/
# make dist              a source distribution and a wheel, in dist/; a commit gives the same bytes again
# make lock              write constraints.txt anew: the newest versions of all packages that make installs


MPI ?= mpich
PYTHON ?= python3
CUDA ?= cu13

venv = $(if $(filter mpich,$(1)),.venv,.venv-$(1))
VENV := $(call venv,$(MPI))

# What README and the commands that read results need; applications need the extra apps, too.
EXTRAS := sweep,analysis
comma := ,

# Where eight ranks share fewer cores, MPICH's wait without yielding them unless told to step aside.
ifneq ($(filter 1 2 3 4 5 6 7,$(shell nproc)),)
export MPIR_CVAR_CH4_PROGRESS_THROTTLE := 1
export MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT := 16
endif

# Open MPI refuses to start as root or on too few cores unless told otherwise.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
export PRTE_MCA_rmaps_default_mapping_policy := :oversubscribe
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Else every rank of a test would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run check test test-mpich test-openmpi test-units test-lowest test-long test-rest test-all test-abi chaos lint coverage mutation speed abi-cost results gpu-check support observing start-up site docs docs-outputs jobs dist lock clean
.SECONDARY:

help:
	@sed -n 's/^# \{0,1\}//p; /^$$/q' $(firstword $(MAKEFILE_LIST))

run: $(VENV)/.installed
	$(VENV)/bin/mpiexec -n 2 $(VENV)/bin/omb-py latency
	$(VENV)/bin/mpiexec -n 8 $(VENV)/bin/omb-py allreduce --buffer numpy
	@echo
	@echo "# To go on, in this shell:"
	@echo "source $(VENV)/bin/activate"
ifeq ($(MPI),openmpi)
	@echo "export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe   # more ranks than cores"
ifeq ($(shell id -u),0)
	@echo "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
endif
endif
	@echo "mpiexec -n 2 omb-py latency   # README.md has more"

# Order, samples of products and examples of properties are the same each time, as pyproject.toml has
# them. SEED=N chooses others, SEED=random draws them; a failure names the seed.
ifeq ($(SEED),random)
override SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif
export SEED
seeds = $(if $(SEED),--sample-seed $(SEED) --randomly-seed $(SEED) --hypothesis-seed $(SEED))

# Markers are those of tests/layers.py. A worker for each core: more of them would only wait. One that
# crashes ends the run: pytest-xdist can wait forever for what takes its place.
pytest = bin/python -m pytest -n auto --maxprocesses 8 --max-worker-restart 0 --dist loadgroup \
	$(seeds)
ON_RANKS := tests/mpi tests/apps/on_ranks tests/sweeps/on_ranks tests/tracing
ON_OPEN_MPI := $(ON_RANKS) tests/hosts tests/chaos tests/schedulers/test_slurm_launches.py
REST := long or exhaustive
REST_ON_OPEN_MPI := $(REST) or (any_library and not every_library)
NEEDING := ranks or aware or hosts or scheduler or browser or slow
WITH_BOTH := $(call venv,mpich)/.tested-with $(call venv,openmpi)/.tested-with .intel-mpi/.unpacked

check: lint test-units

test: lint $(WITH_BOTH)
	$(MAKE) --no-print-directory test-mpich
	$(MAKE) --no-print-directory test-openmpi

test-mpich: $(call venv,mpich)/.tested-with .intel-mpi/.unpacked
	$(call venv,mpich)/$(pytest) -m "not ($(REST))"

test-openmpi: $(call venv,openmpi)/.tested-with
	$(call venv,openmpi)/$(pytest) -m "not ($(REST_ON_OPEN_MPI))" $(ON_OPEN_MPI)

test-units: $(VENV)/.checked-with
	$(VENV)/$(pytest) -m "smoke or not ($(NEEDING) or $(REST))"

test-lowest: .venv-lowest/.installed
	.venv-lowest/$(pytest) -m "smoke or not ($(NEEDING) or $(REST))"

test-long: $(call venv,mpich)/.tested-with .intel-mpi/.unpacked
	$(call venv,mpich)/$(pytest) -m long

test-rest: $(WITH_BOTH)
	$(call venv,mpich)/$(pytest) -m "$(REST) or hypothesis" --hypothesis-profile all
	$(call venv,openmpi)/$(pytest) -m "$(REST_ON_OPEN_MPI)" $(ON_OPEN_MPI)

test-all:
	$(MAKE) test
	$(MAKE) test-rest
	$(MAKE) chaos

test-abi: .venv-abi/.tested-with
	.venv-abi/$(pytest) -m "not ($(REST_ON_OPEN_MPI))" \
		$(ON_RANKS) tests/bindings tests/core tests/options

chaos: $(call venv,mpich)/.tested-with $(call venv,openmpi)/.tested-with
	$(call venv,mpich)/bin/python -m tests.chaos --seeds 0:100
	$(call venv,openmpi)/bin/python -m tests.chaos --seeds 100:200

# A process that a signal kills leaves no data. What is below 80 % is listed.
COVERED ?= not ($(REST))
covering = $(patsubst bin/python,bin/coverage run,$(pytest)) -m "$(COVERED)"

coverage: $(WITH_BOTH)
	rm -f .coverage .coverage.*
	-$(call venv,mpich)/$(covering)
	$(call venv,mpich)/bin/coverage combine -q
	-$(call venv,openmpi)/$(covering) $(ON_OPEN_MPI)
	-$(call venv,mpich)/bin/coverage combine -q --append
	@$(call venv,mpich)/bin/coverage report --sort cover | awk '$$NF + 0 < 80 || $$1 == "TOTAL"'

mutation: $(call venv,mpich)/.tested-with
	$(call venv,mpich)/bin/pip install -q mutmut==3.8.1
	$(call venv,mpich)/bin/mutmut run $(MUTANTS)
	$(call venv,mpich)/bin/mutmut results

# actionlint has no wheel: make lint runs it on the workflows where it is installed.
lint: $(call venv,mpich)/.checked-with
	$(call venv,mpich)/bin/ruff check .
	$(call venv,mpich)/bin/ruff format --check .
	$(call venv,mpich)/bin/mypy
	$(call venv,mpich)/bin/lint-imports --no-cache --no-logo
	NO_MKDOCS_2_WARNING=1 $(call venv,mpich)/bin/$(mkdocs) build/site
	[ -z "$$(command -v actionlint)" ] || actionlint

# Strict: a page outside the navigation, a broken link or a wrong anchor fails.
mkdocs := mkdocs build --strict --site-dir
site: .venv-docs/.with-docs
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/$(mkdocs) site

docs: $(VENV)/.installed
	$(VENV)/bin/python -m docs.generate

docs-outputs: $(call venv,mpich)/.tested-with
	$(call venv,mpich)/bin/python -m tests.docs.outputs

speed: $(VENV)/.installed
	$(VENV)/bin/python -m perf.speed
	$(VENV)/bin/python -m perf.c_loops
	$(VENV)/bin/python -m perf.windows
	$(VENV)/bin/python -m perf.window_parts
	$(VENV)/bin/python -m perf.thread_level
	$(VENV)/bin/python -m perf.precision

abi-cost: .venv-own/.tested-with .venv-abi/.installed
	env -u MPIR_CVAR_CH4_PROGRESS_THROTTLE -u MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT \
		.venv-own/bin/python -m perf.abi .venv-own/bin/python .venv-abi/bin/python \
		--launches 30 --rounds 20 --output results/abi.csv --figure docs/figures/abi.svg

results: $(WITH_BOTH)
	$(call venv,mpich)/bin/python -m perf.results $(PARTS) $(if $(OMB),--omb $(OMB))

# Into results/gpu; GPU_CHECK takes its options, as in GPU_CHECK="--parts overhead --buffers cupy"
gpu-check: $(VENV)/.installed .intel-mpi/.unpacked
	$(VENV)/bin/pip install -q -c constraints.txt -e ".[$(CUDA)]"
	$(VENV)/bin/python -m perf.gpu_check $(GPU_CHECK)

support: $(call venv,mpich)/.installed $(call venv,openmpi)/.installed
	$(call venv,mpich)/bin/python -m perf.families check $(BENCHMARK)
	$(call venv,openmpi)/bin/python -m perf.families check $(BENCHMARK)

observing: $(VENV)/.installed
	$(VENV)/bin/python -m perf.profile_overhead
	$(VENV)/bin/python -m perf.watching

start-up: $(VENV)/.installed
	$(VENV)/bin/python -m perf.start_up

# A first job takes few nodes: the largest points of thetagpu take the whole machine.
jobs: $(VENV)/.installed
	for machine in $(basename $(notdir $(wildcard jobs/*.sh))); do \
		[ $$machine = thetagpu ] && part="--nodes 2" || part=--one-job; \
		$(VENV)/bin/omb-py job render scaling --machine $$machine $$part \
			--output jobs/$$machine.sh || exit; \
	done

# OMB_PY_REPOSITORY, the repository's address, gives the package its links.
dist: .venv-dist/.with-dist
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
		.venv-dist/bin/python -m hatchling build -t sdist -t wheel -d dist
	.venv-dist/bin/python -m twine check --strict dist/*

# For each Python and system that the versions differ on.
lock: $(call venv,mpich)/.tested-with
	$(call venv,mpich)/bin/uv pip compile -q --universal --upgrade --no-annotate --python-version 3.11 \
		--custom-compile-command "make lock" pyproject.toml -o constraints.txt \
		$(foreach one,mpich openmpi apps $(subst $(comma), ,$(EXTRAS)),--extra $(one)) \
		$(foreach one,lint docs test integration,--group $(one))

BUILT_FROM := pyproject.toml constraints.txt hatch_build.py omb_py/bindings/compiled/loop.c

.venv/.installed: $(BUILT_FROM)
	$(PYTHON) -m venv .venv
	.venv/bin/pip install -q -c constraints.txt -e ".[mpich,$(EXTRAS)]"
	touch $@

.venv-%/.installed: $(BUILT_FROM)
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install -q -c constraints.txt -e ".[$*,$(EXTRAS)]"
	touch $@

# With an mpi4py built here: for the standard's ABI and, to compare with, in the same way for MPICH's.
.venv-abi/.installed: wrapper = mpicc_abi
.venv-own/.installed: wrapper = mpicc
.venv-abi/.installed .venv-own/.installed: $(BUILT_FROM)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install -q -c constraints.txt mpich
	MPI4PY_BUILD_MPIABI=1 MPICC=$(CURDIR)/$(@D)/bin/$(wrapper) $(@D)/bin/pip install -q \
		-c constraints.txt --no-cache-dir --no-binary mpi4py mpi4py
	$(@D)/bin/pip install -q -c constraints.txt -e ".[mpich,$(EXTRAS)]"
	touch $@

# Apache Otava asks for NumPy 2.2 and clients of services; its analysis needs any NumPy and SciPy alone.
otava := pip install -q --no-deps apache-otava==0.8.0

# The groups of pyproject.toml; older pips do not know groups.
%/.checked-with: %/.installed
	$*/bin/pip install -q -c constraints.txt "pip>=25.1"
	$*/bin/pip install -q -c constraints.txt -e ".[apps]" --group lint --group docs --group test
	$*/bin/$(otava)
	touch $@

# Of one group alone, without omb-py.
.venv-docs/.with-docs .venv-dist/.with-dist: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install -q -c constraints.txt "pip>=25.1"
	$(@D)/bin/pip install -q -c constraints.txt --group $(patsubst .venv-%,%,$(@D))
	touch $@

# The lowest versions that pyproject.toml admits, with the locked ones of what tests need, of MPICH and
# of mpi4py: below 4.1 it has no wheels, and 4.0 does not compile with MPICH 5.
.venv-lowest/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install -q -c constraints.txt "pip>=25.1" uv
	$(@D)/bin/pip install -q -c constraints.txt mpich mpi4py --group test
	$(@D)/bin/uv pip install -q --python $(@D)/bin/python --resolution lowest-direct \
		-r pyproject.toml $(foreach one,$(subst $(comma), ,$(EXTRAS)),--extra $(one))
	$(@D)/bin/$(otava)
	$(@D)/bin/pip install -q --no-deps -e .
	touch $@

%/.tested-with: %/.checked-with
	$*/bin/pip install -q -c constraints.txt --group integration
	[ ! -e /usr/include/fftw3.h ] || $*/bin/pip install -q -c constraints.txt mpi4py-fft==2.0.6
	touch $@

# Intel MPI from PyPI takes memory on a device; tests use it where it can be had (x86-64).
.intel-mpi/.unpacked:
	mkdir -p .intel-mpi
	-$(PYTHON) -m pip download -q --no-deps -d .intel-mpi impi-rt==2021.19.0 \
		&& $(PYTHON) -m zipfile -e .intel-mpi/*.whl .intel-mpi \
		&& chmod +x .intel-mpi/*/data/bin/* && rm .intel-mpi/*.whl
	touch $@

clean:
	rm -rf .coverage* mutants .intel-mpi .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
