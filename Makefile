# Two commands do everything on a fresh Debian or Ubuntu machine: `make demo` and `make test`.

export PATH := $(HOME)/.cargo/bin:$(PATH)
PREFIX ?= /usr/local
# Cargo's; packages have one of their own.
PROFILE = release
# Build scripts that call make must not install anything.
MAKEOVERRIDES =
unexport DESTDIR PREFIX PROFILE
# Where cargo builds to, whatever its own configuration says.
TARGET := $(or $(CARGO_TARGET_DIR),target)
export CARGO_TARGET_DIR := $(abspath $(TARGET))
# The shell asks, after setup has installed what was missing: make expands a recipe before it runs the first line.
FEATURES = $$(scripts/features)

.PHONY: help setup build demo test test-kernels test-package torture lint bench bench-tune install uninstall deb wheel \
	check-prefix

# Paths that `make install` writes and `make uninstall` removes.
BIN = $(DESTDIR)$(PREFIX)/bin/bowwave
UNITS = $(addprefix $(DESTDIR)$(PREFIX)/lib/systemd/system/,bowwave.service bowwave-metrics.service)
RULE = $(DESTDIR)$(PREFIX)/lib/udev/rules.d/60-bowwave.rules
SHARE = $(DESTDIR)$(PREFIX)/share
DOC = $(SHARE)/doc/bowwave
CONFIG = $(DESTDIR)/etc/bowwave/config.toml
# What `bowwave generate` writes.
GENERATED = $(SHARE)/man/man1/bowwave.1 $(SHARE)/man/man1/bowwave-*.1 $(SHARE)/bash-completion/completions/bowwave \
	$(SHARE)/fish/vendor_completions.d/bowwave.fish $(SHARE)/zsh/site-functions/_bowwave
TO_READ = README.md ARCHITECTURE.md CONTRIBUTING.md LICENSE-APACHE LICENSE-MIT
# The docs name them.
EXAMPLES = scripts/strace-to-trace crates/device/devices/hdd.toml

help:
	@echo "make demo     install what is missing, build, show the effect (a minute after the build, two on a busy machine; root)"
	@echo "make test     install what is missing, run all tests (live ones need root), count them"
	@echo "make test-kernels  boot Debian's kernels in QEMU, test each feature (KERNELS=\"6.1 newest\"; docs/kernels.md)"
	@echo "make test-package  install, use, upgrade and purge the package in Debian 12 and 13, in QEMU (root; docs/install.md)"
	@echo "make torture  long tests: hostile users, kills, little memory, random operations, other suites, a soak (two hours; root; docs/trust.md)"
	@echo "make lint     formatting, clippy, dependencies, file sizes"
	@echo "make bench    the cost of a decision, a cached read, bowwave run and top; the speed of the simulator"
	@echo "make bench-tune  how exact bowwave tune is on lab devices (RUNS=5: twenty minutes; root)"
	@echo "make install  install the binary, its man pages, completions and docs, the systemd units and the udev rule, below PREFIX=$(PREFIX)"
	@echo "make uninstall  remove these"
	@echo "make deb      build a Debian package in $(TARGET)/deb"
	@echo "make wheel    build the Python package in $(TARGET)/wheels (docs/python.md)"

setup:
	@scripts/setup

build: setup
	cargo build --profile $(PROFILE) --locked -p bowwave $(FEATURES)

demo: build
	$(TARGET)/release/bowwave demo

test:
	@scripts/setup tests
	@scripts/test $(FEATURES)

# By default 6.1, 6.12, 6.18 and the newest.
test-kernels:
	@scripts/test-kernels $(KERNELS)

# By default Debian 12 and 13.
test-package: deb
	@scripts/test-package $(SUITES)

# Seconds of each hostile program; schedules of little memory (seeds 1 to this number), and of faults; kills of bowwave;
# an administrator's writes of a window; operations on each file system; minutes of the soak.
SECONDS ?= 120
SCHEDULES ?= 200
FAULTS ?= 1000
KILLS ?= 200
WRITES ?= 2000
OPERATIONS ?= 1000000
MINUTES ?= 20
# crates/bowwave/tests/NAME.
TORTURES ?= strangers failpoints fetch reload kills recorder_kills administrator thrash faults fsx suites soak

torture:
	@scripts/setup torture
	@scripts/fetch-suites
	BOWWAVE_REQUIRE_LIVE=1 BOWWAVE_TORTURE=1 BOWWAVE_TORTURE_SECONDS=$(SECONDS) BOWWAVE_SCHEDULES=$(SCHEDULES) \
		BOWWAVE_FAULTS=$(FAULTS) BOWWAVE_KILLS=$(KILLS) BOWWAVE_WRITES=$(WRITES) \
		BOWWAVE_OPERATIONS=$(OPERATIONS) BOWWAVE_SOAK_SECONDS=$$(($(MINUTES) * 60)) \
		cargo test --locked $(FEATURES) -p bowwave $(addprefix --test ,$(TORTURES)) --no-fail-fast \
		-- --nocapture --test-threads 1

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked $(FEATURES) -- -D warnings
	cargo clippy --locked -p bowwave -p bowwave-live -p bowwave-ebpf --all-targets --no-default-features -- -D warnings
	scripts/check-dependencies
	scripts/check-purity
	scripts/check-sizes

bench: build
	cargo run --release --locked -p bowwave-historical --example decision-cost
	cargo run --release --locked -p bowwave-sim --example sim-speed
	cargo run --release --locked -p bowwave-ebpf --example cached-read-cost $(FEATURES)
	cargo run --release --locked -p bowwave --example run-cost $(FEATURES) -- $(TARGET)/release/bowwave
	cargo run --release --locked -p bowwave --example top-cost $(FEATURES) -- $(TARGET)/release/bowwave

bench-tune: build
	cargo run --release --locked -p bowwave-tune --example lab-devices -- $(TARGET)/release/bowwave $(or $(RUNS),1)

# Make divides lists of files at blanks, and the units need whole paths.
check-prefix:
	@case '$(PREFIX)' in /*) ;; *) false ;; esac && case '$(PREFIX)' in *[!A-Za-z0-9/._+~-]*) false ;; esac || \
		{ echo "make: PREFIX must begin with / and have only letters, digits and /._+~- in it" >&2; exit 1; }

# Root may have no toolchain: then what a user has built is installed.
install: check-prefix $(if $(shell PATH='$(PATH)' command -v cargo),build)
	install -D -m 755 $(TARGET)/$(PROFILE)/bowwave $(BIN)
	install -d $(sort $(dir $(UNITS))) $(dir $(RULE)) $(DOC)/docs $(DOC)/examples
	for unit in $(UNITS); do sed 's|/usr/local/|$(PREFIX)/|' etc/$${unit##*/} > $$unit || exit 1; done
	sed 's|/usr/local/|$(PREFIX)/|' etc/60-bowwave.rules > $(RULE)
	install -m 644 $(TO_READ) $(DOC)
	install -m 644 docs/*.md $(DOC)/docs
	install -m 755 $(filter scripts/%,$(EXAMPLES)) $(DOC)/examples
	install -m 644 $(filter %.toml,$(EXAMPLES)) $(DOC)/examples
	$(BIN) generate $(SHARE)
	test -e $(CONFIG) || install -D -m 644 etc/config.toml $(CONFIG)
	if test -z '$(DESTDIR)' && test -d /run/systemd/system; then systemctl daemon-reload; fi
	@if test -z '$(DESTDIR)'; then scripts/after-install '$(PREFIX)'; fi

uninstall: check-prefix
	rm -f $(BIN) $(UNITS) $(RULE) $(addprefix $(DOC)/,$(TO_READ)) $(addprefix $(DOC)/,$(wildcard docs/*.md))
	rm -f $(GENERATED) $(addprefix $(DOC)/examples/,$(notdir $(EXAMPLES)))
	-rmdir $(DOC)/docs $(DOC)/examples $(DOC)
	@# An administrator's own settings stay.
	! cmp -s etc/config.toml $(CONFIG) || rm $(CONFIG)
	-rmdir $(dir $(CONFIG))
	if test -z '$(DESTDIR)' && test -d /run/systemd/system; then systemctl daemon-reload; fi

deb:
	@scripts/setup deb
	mkdir -p $(TARGET)/deb
	debian/rules clean binary
	debian/rules clean
	! command -v lintian >/dev/null || lintian --fail-on error,warning $(TARGET)/deb/*.deb

wheel:
	@scripts/setup wheel
	@scripts/wheel --release
	@echo "Next: python3 -m venv ~/bowwave && ~/bowwave/bin/pip install $(TARGET)/wheels/bowwave-*.whl pyarrow (docs/python.md)"
