# Start with `make demo`, `make quick` or `make test`. Each sets up a virtual environment first.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
  --constraint constraints.txt
NATIVE := CMakeLists.txt $(shell find cpp -name '*.cpp' -o -name '*.h')

# Byte code is written whatever the caller has set: without it, each process that a test starts
# compiles torch again, for some 3 seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo quick test test-pythons test-wheel lint format unit stub bench bench-cluster bench-micro bench-linear bench-peers bench-training bench-accuracy bench-torch bench-decentralized bench-local claims docs clean

demo: $(VENV)/.demo
	$(BIN)/sparcml demo

# Under a minute: no MPI, no torch.distributed, no further processes, few cases of each test. What
# needs torch is skipped if it is not installed.
quick: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --quick --numprocesses 2 --dist worksteal

test: lint unit

# One wheel, built by the oldest Python from 3.12 on and installed on each: those on PATH, pyenv's,
# and those that PYTHONS names. test-wheel imports all modules and adds up; test-pythons also runs
# the quick tests.
test-wheel:
	$(PYTHON) tests/pythons.py --short $(PYTHONS)
test-pythons:
	OMP_NUM_THREADS=1 $(PYTHON) tests/pythons.py $(PYTHONS)

lint: $(VENV)/.quick
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	find cpp -name '*.cpp' -o -name '*.h' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/mypy
	$(BIN)/lint-imports

# One process more than cores: some tests wait.
WORKERS = $(shell $(BIN)/python -c "import os; print(min(4, os.cpu_count() + 1))")
unit: $(VENV)/.dev $(VENV)/.browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

format: $(VENV)/.quick
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	find cpp -name '*.cpp' -o -name '*.h' | xargs $(BIN)/clang-format -i

# Rewrite the stubs of the compiled modules; a test compares them with the committed ones.
stub: $(VENV)/.quick
	for folder in kernels linear; do \
	  $(BIN)/python -m nanobind.stubgen -m sparcml.$$folder._core \
	    -p cpp/bindings/stub_patterns.nb -o src/sparcml/$$folder/_core.pyi || exit 1; done

# Measure again and save the rows; `make bench docs` also rewrites the page.
RESULTS = benchmarks/results/$(shell date -u +%F)
SUMS := --sizes 16M --density 0.001,0.01,0.1
DENSE := gloo_allreduce,master,sharded,ring,recursive_double,halving_doubling,double_binary_tree
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run_kernels.py --json $(RESULTS)-kernels.json
	$(BIN)/python benchmarks/run_compression.py --json $(RESULTS)-compress.json
	$(BIN)/python benchmarks/run_momentum.py --size 8M --json $(RESULTS)-momentum.json
	$(BIN)/python benchmarks/run_simulate.py --json $(RESULTS)-simulate.json
	$(BIN)/python benchmarks/run_reading.py --json $(RESULTS)-reading.json
	$(BIN)/python benchmarks/run_threads.py --json $(RESULTS)-threads.json
	$(BIN)/python benchmarks/run_linear_ranks.py --json $(RESULTS)-linear-ranks.json
	$(BIN)/python benchmarks/run_startup.py --json $(RESULTS)-startup.json
	$(BIN)/python benchmarks/run_rates.py --json $(RESULTS)-rates.json
	$(BIN)/python benchmarks/run_kills.py --json $(RESULTS)-kills.json
	for n in 4 8; do \
	  $(BIN)/sparcml bench allreduce -n $$n $(SUMS) --json $(RESULTS)-allreduce-$$n.json \
	  || exit 1; done
	$(BIN)/sparcml bench allreduce -n 4 --sizes 16M --density 1 --runs 10 \
	  --algorithms $(DENSE),native --json $(RESULTS)-dense-4.json

# The same on links of 1 Gbit/s, emulated by `sparcml run --network` (docs/network.md).
SPARSE := gloo_allreduce,ssar_recursive_double,ssar_split_allgather,dsar_split_allgather,ssar_ring,auto
LINK := 1gbit
ON_CLUSTER = $(BIN)/sparcml run --network $(LINK)
bench-cluster: $(VENV)/.dev
	$(ON_CLUSTER) -n 8 -m sparcml bench allreduce $(SUMS) --runs 10 --link $(LINK) \
	  --algorithms $(SPARSE) --quantize none,qsgd:8 --json $(RESULTS)-cluster-8.json
	$(ON_CLUSTER) -n 4 -m sparcml bench allreduce --sizes 16M --density 1 --runs 10 --link $(LINK) \
	  --algorithms $(DENSE) --json $(RESULTS)-cluster-4.json
	$(BIN)/sparcml run -n 8 --network 100mbit benchmarks/run_link.py --link 100mbit --json $(RESULTS)-link-100mbit.json
	$(ON_CLUSTER) -n 2 benchmarks/run_overlap.py --json $(RESULTS)-overlap.json

# The paper's micro-benchmarks on the same links: time by density, and by ranks at 4 of 512, for
# claims 11, 13 and 14. About fifteen minutes.
MICRO = benchmarks/run_micro.py --network $(LINK) --json $(RESULTS)-micro-gige.json
ALSO_DENSE := --dense ring,gloo_allreduce,mpi_allreduce
bench-micro: $(VENV)/.dev
	$(ON_CLUSTER) -n 8 $(MICRO) $(ALSO_DENSE) --density 0.0001,0.001,4/512,0.03,0.1
	$(ON_CLUSTER) -n 8 $(MICRO) --density 0.3 --algorithms ssar_split_allgather,dsar_split_allgather
	for n in 2 4 16; do $(ON_CLUSTER) -n $$n $(MICRO) $(ALSO_DENSE) --density 4/512 || exit 1; done

# Linear models on the same links, as in the paper's Table 2, and coordinate descent, for claims
# 15 and 16 and docs/linear.md. About ten minutes.
bench-linear: $(VENV)/.dev
	$(ON_CLUSTER) -n 8 benchmarks/run_table2.py --link $(LINK) --json $(RESULTS)-table2.json
	$(BIN)/sparcml run -n 8 --network 100mbit benchmarks/run_table2.py --link 100mbit \
	  --sums sparse --json $(RESULTS)-table2-100mbit.json
	$(ON_CLUSTER) -n 8 benchmarks/run_scd.py --link $(LINK) --json $(RESULTS)-scd.json
	$(BIN)/python benchmarks/run_claims.py 15 16

# Linear models compared with other programs, which it installs. More than half an hour.
bench-peers: $(VENV)/.dev
	$(PIP) --requirement benchmarks/peers/requirements.txt
	$(BIN)/python benchmarks/run_linear_peers.py --json $(RESULTS)-linear-peers.json

# Steps of networks under DDP on links of 1 Gbit/s and 100 Mbit/s, for claims 6 and 18. About an
# hour; it resumes after an interruption.
bench-training: $(VENV)/.dev
	$(BIN)/python benchmarks/all_training.py
	$(BIN)/python benchmarks/run_claims.py 6 18

# Accuracy of all methods on five networks, three seeds each, for claims 6, 9, 18 and 19. Many hours;
# it resumes after an interruption.
bench-accuracy: $(VENV)/.dev
	$(BIN)/python benchmarks/run_accuracy.py
	$(BIN)/python benchmarks/run_claims.py 6 9 18 19

# Run the experiments behind docs/claims.md and docs/methods.md and save their rows. About 45
# minutes, most of it for claims 7 and 29, which train networks (data: ../shared/data), and for 13
# and 24, which simulate many ranks. Emulated rows come from `make bench-micro`.
claims: $(VENV)/.dev
	$(BIN)/python benchmarks/run_claims.py

# Cost of auto where it gains little, and sparse rows of embedding tables.
TORCH = $(BIN)/sparcml run --engine torch
bench-torch: $(VENV)/.dev
	$(BIN)/python benchmarks/run_large_tensor.py --json $(RESULTS)-large-tensor.json
	$(BIN)/python benchmarks/run_torch_latency.py --json $(RESULTS)-torch-latency.json
	$(TORCH) -n 2 benchmarks/run_auto.py --json $(RESULTS)-auto.json
	$(TORCH) -n 4 --network 100mbit benchmarks/run_auto.py --networks fashion-mnist --steps 30 --json $(RESULTS)-auto-100mbit.json
	$(TORCH) -n 2 --network 100mbit benchmarks/run_auto.py --networks gpt --json $(RESULTS)-auto-gpt.json
	$(TORCH) -n 4 --network 1gbit benchmarks/run_embedding.py --link 1gbit --json $(RESULTS)-embedding.json

# Decentralized training on simulated nodes, for docs/decentralized.md and claims 30 and 31. A few
# minutes; it resumes after an interruption.
bench-decentralized: $(VENV)/.dev
	$(BIN)/python benchmarks/run_decentralized.py
	$(BIN)/python benchmarks/run_claims.py 30 31

# Loss of local training at equal tokens, its messages, and its speed on slow links, for docs/local.md.
# More than an hour; the first part resumes after an interruption.
bench-local: $(VENV)/.dev
	$(BIN)/python benchmarks/run_local.py
	$(BIN)/python benchmarks/run_local_encode.py --json $(RESULTS)-local-encode.json
	$(TORCH) -n 4 --network 100mbit benchmarks/run_local_speed.py --network 100mbit --json $(RESULTS)-local-speed.json

# Generated pages: algorithms from docstrings, figures from traces, tables and claims from the
# newest results.
docs: $(VENV)/.dev
	$(BIN)/python docs/collect.py
	$(BIN)/python docs/diagrams.py
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/claims_page.py
	$(BIN)/python benchmarks/methods_page.py
	$(BIN)/python benchmarks/training_page.py
	$(BIN)/python benchmarks/decentralized_page.py
	$(BIN)/python benchmarks/local_page.py

clean:
	rm -rf $(VENV) build

# The package, editable, with its own MPI. Rebuilt when the C++ or the metadata change.
$(VENV)/.demo: pyproject.toml constraints.txt $(NATIVE) | $(VENV)/bin/python
	@echo "setting up $(VENV): the package, MPI and matplotlib"
	$(PIP) --upgrade pip
	$(PIP) --group build
	@echo "compiling the C++ kernels, in 2 to 3 minutes"
	@$(PIP) -vv --no-build-isolation --editable '.[mpich,plot]' 2>&1 | tee $(VENV)/build.log \
	| sed -nu 's|^ *\(\[[0-9/]*\]\) Building.*/\(cpp/.*\)\.o$$|\1 \2|p' \
	|| { tail -n 60 $(VENV)/build.log; exit 1; }
	@$(BIN)/python -m compileall -q src
	@touch $@

# Requirements of linters and of the quick tests. Importing them compiles what the tests use, which
# is a fraction of what pip would compile.
$(VENV)/.quick: $(VENV)/.demo
	@echo "setting up $(VENV): tests and linters"
	$(PIP) --group lint --group test
	@$(BIN)/python -c "import sklearn.linear_model, matplotlib.figure"
	@touch $@

# Torch, and what the tests use with it.
$(VENV)/.dev: $(VENV)/.quick
	@echo "setting up $(VENV): torch (200 MB for processors only, several GB with CUDA: see README.md)"
	$(PIP) --group torch
	@$(BIN)/python -c "import torch._dynamo, torch.distributed.run, transformers.trainer"
	@touch $@

# Chromium, for the tests of the planner's page. Root on Debian gets the small package (some 90 MB);
# without one the tests are skipped.
APT := timeout 200 apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=10
BROWSER := DEBIAN_FRONTEND=noninteractive $(APT) install -y --no-install-recommends
$(VENV)/.browser: | $(VENV)/bin/python
	@$(BIN)/python tests/cli/browser.py \
	|| { test "$$(id -u)" = 0 && echo "installing Chromium for the tests of the planner's page" \
	  && { $(APT) update; $(BROWSER) chromium-headless-shell || $(BROWSER) chromium; } \
	  >$(VENV)/browser.log 2>&1; } \
	|| echo "no Chromium: tests of the planner's page are skipped; try: apt-get install chromium"
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
