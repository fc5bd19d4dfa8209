# Two commands do everything: `make demo` and `make test`. Each sets up its own virtual environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find src native -type f -not -name '*.pyc' -not -name '*.pyi')
NATIVE := $(shell find native -name '*.cpp' -o -name '*.hpp')
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo paper test test-page test-long fuzz mutants test-lowest test-models test-cluster test-arm test-clang coverage coverage-native wheel wheel-smoke lint lint-ruff lint-types lint-native lint-imports lint-stubs lint-spelling lint-release audit format stubs docs linkcheck bench bench-all bench-recall bench-embeddings bench-smoke sanitize tsan clean help

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/' | column -t -s:

demo: demo-says $(VENV)/with-demo  ## in two minutes: the 2011 paper's figures and claims, an index of sentences, and a page for each
	$(BIN)/antisparse paper --only figures,h,two-stage,path --out out/demo
	rm -rf out/demo/sample
	$(BIN)/antisparse sample -o out/demo/sample
	$(BIN)/antisparse explore out/demo/sample/sentences.index --vectors out/demo/sample/sentences.npy --bytes 4,8,16,32 -o out/demo/explorer.html
	@echo
	@echo "Look at these pages in a browser, first at the second:"
	@echo "  out/demo/index.html     the figures of the paper, drawn anew, and which of its claims hold"
	@echo "  out/demo/explorer.html  pick a sentence, move the slider of bytes, and see which true neighbours the codes find and miss"

.PHONY: demo-says
demo-says:
	@echo "1. The experiments of the 2011 paper on synthetic data, to out/demo/index.html: one to two minutes."
	@echo "2. An index of some thousand sentences that are on this machine, and a page to explore it: seconds."
	@[ -e $(VENV)/with-demo ] || echo "First, and once, antisparse is compiled and installed into $(VENV): some minutes, with a C++17 compiler."
	@echo

paper: $(VENV)/with-plot  ## every experiment of the paper; DATA=sift1m, siftsmall or a folder of SIFT vectors
	$(BIN)/antisparse paper --data $(or $(DATA),sift1m)

test: $(VENV)/with-test  ## the whole test suite
	$(BIN)/python -m pytest -n auto

test-page: $(VENV)/with-page  ## the explorer and the paper's page in Chromium, by Playwright
	tests/browser $(BIN)/python
	ANTISPARSE_PAGE=1 $(BIN)/python -m pytest tests/explore tests/paper/test_reproduce.py

test-long: $(VENV)/with-test  ## the index killed 1,000 and interrupted 50,000 times, every bit flipped, 1,000,000 files mutated (half an hour)
	ANTISPARSE_CRASHES=1000 ANTISPARSE_FLIPS=1 ANTISPARSE_MUTATIONS=500000 ANTISPARSE_FUZZ=500000 ANTISPARSE_INTERRUPTS=50000 \
	  $(BIN)/python -m pytest -n auto tests/index/test_crash.py tests/index/test_damage.py tests/index/test_interrupts.py tests/index/test_staging.py tests/fuzz

# Led by coverage, ten minutes a reader, then mutations that were never drawn before.
fuzz: $(VENV)/with-fuzz  ## every reader of files fuzzed for hours; MINUTES=10 a reader, FILES=5000000 mutated
	for reader in $$(PYTHONPATH=tests/fuzz $(BIN)/python -c 'import readers; print(*readers.READERS)'); do \
	  PYTHONPATH=tests $(BIN)/python tests/fuzz/guided.py $$reader out/fuzz $$((60 * $(or $(MINUTES),10))) || exit 1; \
	done
	ANTISPARSE_FUZZ=$(or $(FILES),5000000) ANTISPARSE_FUZZ_SEED=$$(date +%s) $(BIN)/python -m pytest -n auto tests/fuzz

mutants: $(VENV)/with-test  ## faults put into the code that keeps an index, which a test must notice; FILES="...", SAMPLE=20 a file (hours)
	$(BIN)/python tools/mutants.py $(FILES) --sample $(or $(SAMPLE),20) --seed $(or $(SEED),0)

test-lowest: $(VENV)-lowest/with-test  ## the whole test suite on the lowest versions of all dependencies
	$(VENV)-lowest/bin/python -m pytest -n auto

# A virtual environment of its own: torch is large, and langchain-tests brings plugins of pytest that warn of their settings.
test-models: $(VENV)-models/with-models  ## torch, jax, sentence-transformers, mteb, FAISS and LangChain themselves, and a model that comes as a package
	HF_HUB_OFFLINE=1 $(VENV)-models/bin/python -m pytest -rs -n auto -p no:benchmark \
	  -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function tests/test_containers.py tests/test_real_model.py \
	  tests/connect/test_sentence_transformers.py tests/connect/test_mteb.py tests/connect/test_langchain.py tests/connect/test_langchain_standard.py \
	  tests/connect/test_faiss.py

# Ray, Dask, an S3 server: of three nodes on this machine, whose workers, drivers and shards are killed.
test-cluster: $(VENV)/with-cluster  ## many machines: builds and shards on Ray, Dask, an S3 server (three minutes)
	ANTISPARSE_CLUSTER=1 ANTISPARSE_RACES=200 RAY_USAGE_STATS_ENABLED=0 \
	  $(BIN)/python -m pytest --durations=5 tests/cluster tests/index/test_objects.py

# Cross-compiled, in an emulator; its answers are compared with this machine's.
test-arm: $(VENV)/with-test  ## the kernels on 64-bit ARM (NEON): Debian's cross-compiler and qemu-user, which it installs (minutes)
	tests/arm/tools
	PYTHON=$(PYTHON) tests/arm/prepare $(VENV)-arm
	tests/arm/run $(VENV)-arm $(BIN)/python

lint: lint-ruff lint-types lint-native lint-imports lint-stubs lint-spelling lint-release  ## ruff, mypy, clang-format, the import direction, the native module's stub, spelling, the version

lint-ruff: $(VENV)/with-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: $(VENV)/with-lint
	$(BIN)/mypy

lint-native: $(VENV)/with-lint
	$(BIN)/clang-format --dry-run -Werror $(NATIVE)

lint-imports: $(VENV)/with-lint
	$(BIN)/lint-imports

lint-stubs: $(VENV)/with-lint
	$(BIN)/python -m nanobind.stubgen -q -m antisparse._core -o $(VENV)/_core.pyi
	diff -u src/antisparse/_core.pyi $(VENV)/_core.pyi

lint-spelling: $(VENV)/with-lint
	$(BIN)/codespell

lint-release: $(VENV)/with-lint
	$(BIN)/python tools/release.py

audit: $(VENV)/with-test  ## known vulnerabilities of what is installed (asks an advisory service)
	$(PIP) install --quiet "pip-audit>=2.10"
	$(BIN)/python -m pip_audit --skip-editable

format: $(VENV)/with-lint  ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE)

stubs: $(VENV)/with-lint  ## regenerate src/antisparse/_core.pyi from the native module
	$(BIN)/python -m nanobind.stubgen -q -m antisparse._core -o src/antisparse/_core.pyi

# Warnings are errors. No network is needed; the checks of the built pages are tests/site.
docs: $(VENV)/with-docs  ## the site in out/site, its links, headings, pictures, contrast and reference checked (a minute)
	rm -rf out/site docs/api/modules
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/site
	ANTISPARSE_SITE=$(CURDIR)/out/site $(BIN)/python -m pytest -q tests/site
	@echo "the site: out/site/index.html"

linkcheck: $(VENV)/with-docs  ## the external links of the site, which needs a network
	$(BIN)/python -m sphinx -q -b linkcheck docs out/linkcheck

NAMED = $(or $(DATA),$(error name the sets: make $@ DATA="FOLDER ..."))

bench-recall: $(VENV)/with-bench  ## recall at equal bytes against FAISS; DATA="FOLDER ..." names the sets (an hour)
	$(BIN)/python benchmarks/recall.py $(NAMED) --slow \
	  --json out/recall.json --plot out/recall.png

bench-embeddings: $(VENV)/with-peers  ## recall and cost at a quarter to four bits a dimension; DATA="FOLDER ..." names the sets (hours)
	$(BIN)/python benchmarks/recall.py $(NAMED) --bits 0.25 0.5 1 2 4 --seeds $(or $(SEEDS),5) \
	  --json out/embeddings.json --plot out/embeddings.png
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/embeddings.py --json out/embeddings-cost.json --plot out/embeddings-cost.png
	$(BIN)/python benchmarks/embeddings.py --large --json out/embeddings-large.json

# To keep what it writes, at a commit: python benchmarks/history.py keep out/bench-all.json.
bench-all: $(VENV)/with-bench  ## the ratios of all benchmarks in one file, out/bench-all.json; SMALL=1, DATA="FOLDER ..."
	$(BIN)/python benchmarks/history.py run $(if $(SMALL),--smoke) $(if $(DATA),--data $(DATA)) --json out/bench-all.json

bench bench-smoke: export OMP_NUM_THREADS = 1
bench: $(VENV)/with-bench  ## every benchmark, peers in the same run (minutes)
	$(BIN)/python benchmarks/solver.py --json out/solver.json
	$(BIN)/python benchmarks/search.py --json out/search.json
	$(BIN)/python benchmarks/encoding.py --json out/encoding.json

bench-smoke: $(VENV)/with-bench  ## the same on small sizes: does it run?
	$(BIN)/python benchmarks/solver.py --smoke --json out/solver-smoke.json
	$(BIN)/python benchmarks/search.py --smoke --json out/search-smoke.json
	$(BIN)/python benchmarks/encoding.py --smoke --json out/encoding-smoke.json
	$(BIN)/python benchmarks/one_query.py --smoke --json out/one_query-smoke.json
	$(BIN)/python benchmarks/recall.py --smoke --json out/recall-smoke.json --plot out/recall-smoke.png
	$(BIN)/python benchmarks/beginner.py --smoke --json out/beginner-smoke.json
	$(BIN)/python benchmarks/embeddings.py --smoke --json out/embeddings-smoke.json --plot out/embeddings-smoke.png
	$(BIN)/python benchmarks/effort.py --smoke --json out/effort-smoke.json
	$(BIN)/python benchmarks/index.py --smoke --json out/index-smoke.json --plot out/index-smoke.png
	$(BIN)/python benchmarks/tables.py --smoke --json out/tables-smoke.json
	$(BIN)/python benchmarks/staging.py --smoke --json out/staging-smoke.json
	$(BIN)/python benchmarks/scale.py --smoke --json out/scale-smoke.json
	$(BIN)/python benchmarks/serve.py --smoke --json out/serve-smoke.json
	$(BIN)/python benchmarks/ids.py --smoke --json out/ids-smoke.json
	$(BIN)/python benchmarks/cells.py --smoke --json out/cells-smoke.json
	$(BIN)/python benchmarks/databases.py --smoke --json out/databases-smoke.json
	$(BIN)/python benchmarks/retrieval.py --smoke --json out/retrieval-smoke.json
	$(BIN)/python benchmarks/from_faiss.py --smoke --json out/from_faiss-smoke.json
	$(BIN)/python benchmarks/features.py --json out/features.json

NATIVE_TESTS := tests/spread tests/test_scan.py tests/test_tables.py tests/test_nearest_points.py tests/test_codebooks.py tests/test_search.py tests/test_layout.py tests/test_id_lists.py

test-clang: $(VENV)-clang/with-test  ## the native code built by clang++ with every warning an error, and its tests
	$(VENV)-clang/bin/python -m pytest -q -n auto $(NATIVE_TESTS)

# Without the test whose signals interrupt coverage itself, which then waits for its own lock for ever.
coverage: $(VENV)/with-coverage  ## the whole suite, and which lines and branches of Python it runs: at least 95 %
	$(BIN)/python -m pytest -q -n auto --cov --cov-report=term --cov-report=html:out/coverage \
	  --deselect tests/index/test_interrupts.py::test_signals_that_come_at_any_time

coverage-native: $(VENV)-gcov/with-coverage  ## which lines of C++ its tests run, by gcov
	find build/gcov -name '*.gcda' -delete
	$(VENV)-gcov/bin/python -m pytest -q -n auto $(NATIVE_TESTS) tests/codec tests/test_refine.py tests/test_threads.py
	mkdir -p out/coverage-native
	$(VENV)-gcov/bin/gcovr --root . --filter native/ --gcov-ignore-parse-errors=negative_hits.warn --html-details out/coverage-native/index.html --txt --print-summary build/gcov

# Wheels for the Pythons in PYTHONS, and the sdist, whose whole suite runs; wheel-smoke runs a few of the tests alone.
PYTHONS ?= $(PYTHON)
wheel: ## wheels and sdist built and tested in clean environments; PYTHONS="python3.11 python3.12 python3.13"
	PYTHONS="$(PYTHONS)" PYTHON=$(PYTHON) tools/wheel whole

wheel-smoke: ## the same with a few tests
	PYTHONS="$(PYTHONS)" PYTHON=$(PYTHON) tools/wheel smoke

# The kernels' tests under the address and undefined-behaviour sanitizers (Linux, GCC).
sanitize: $(VENV)-sanitize/with-test  ## the native tests under sanitizers
	LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	  $(VENV)-sanitize/bin/python -m pytest -q -n auto -p no:cacheprovider $(NATIVE_TESTS) \
	  -k "not 10000 and not 1000_problems"

# The tests of threads under the thread sanitizer (Linux, GCC). It needs addresses where it expects them (setarch -R), and
# BLAS, which is not built with it, to have no threads.
tsan: $(VENV)-tsan/with-test  ## the tests of threads under the thread sanitizer
	LD_PRELOAD="$$(c++ -print-file-name=libtsan.so) $$(c++ -print-file-name=libstdc++.so)" OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
	  TSAN_OPTIONS="suppressions=$(CURDIR)/native/tsan.supp exitcode=66" \
	  setarch -R $(VENV)-tsan/bin/python -m pytest -q --capture=sys -p no:xdist -p no:cacheprovider tests/test_threads.py

clean:  ## remove everything that was made
	rm -rf .venv .venv-clang .venv-gcov .venv-wheel .venv-models .venv-sanitize .venv-tsan .venv-lowest .venv-arm build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python $(VENV)-models/bin/python $(VENV)-sanitize/bin/python $(VENV)-tsan/bin/python $(VENV)-lowest/bin/python $(VENV)-clang/bin/python $(VENV)-gcov/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "antisparse needs Python 3.11 or later; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(@D)/..

# The wheel of these sources: compiled once for all that install it.
$(VENV)/wheel/built: $(SOURCES) | $(VENV)/bin/python
	rm -rf $(@D)
	$(PIP) wheel --quiet --no-deps --wheel-dir $(@D) .
	$(PIP) install --quiet --no-deps --force-reinstall $(@D)/*.whl
	@touch $@

# with-X: that, and the dependencies of its extra X.
$(VENV)/with-%: $(VENV)/wheel/built
	$(PIP) install --quiet "$$(echo $(<D)/*.whl)[$*]"
	@touch $@

# torch first, and this version of it: another may bring gigabytes for graphics cards.
$(VENV)-models/with-models: $(VENV)/wheel/built | $(VENV)-models/bin/python
	$(VENV)-models/bin/python -m pip --disable-pip-version-check install --quiet torch==2.13.0
	$(VENV)-models/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --force-reinstall $(<D)/*.whl
	$(VENV)-models/bin/python -m pip --disable-pip-version-check install --quiet "$$(echo $(<D)/*.whl)[models]"
	@touch $@

$(VENV)-sanitize/with-test: SANITIZERS = address,undefined
$(VENV)-tsan/with-test: SANITIZERS = thread
$(VENV)-sanitize/with-test $(VENV)-tsan/with-test: $(VENV)-%/with-test: $(SOURCES) | $(VENV)-%/bin/python
	$(VENV)-$*/bin/python -m pip --disable-pip-version-check install --quiet \
	  -C cmake.define.ANTISPARSE_SANITIZE=$(SANITIZERS) ".[test]"
	@touch $@

$(VENV)-clang/with-test: $(SOURCES) | $(VENV)-clang/bin/python
	CXX=$(or $(CLANG),clang++) $(VENV)-clang/bin/python -m pip --disable-pip-version-check install --quiet \
	  -C cmake.define.ANTISPARSE_STRICT=ON ".[test]"
	@touch $@

$(VENV)-gcov/with-coverage: $(SOURCES) | $(VENV)-gcov/bin/python
	$(VENV)-gcov/bin/python -m pip --disable-pip-version-check install --quiet \
	  -C build-dir=build/gcov -C cmake.define.ANTISPARSE_COVERAGE=ON ".[coverage]"
	@touch $@

# The pyparsing of its time: with a newer one matplotlib's oldest warns, and warnings are errors.
$(VENV)-lowest/with-test: $(SOURCES) | $(VENV)-lowest/bin/python
	$(VENV)-lowest/bin/python -m pip --disable-pip-version-check install --quiet "uv>=0.5"
	echo "pyparsing<3.3" | $(VENV)-lowest/bin/python -m uv pip install --quiet --python $(VENV)-lowest/bin/python \
	  --resolution lowest-direct --constraint - --refresh-package antisparse --reinstall-package antisparse ".[test]"
	@touch $@
