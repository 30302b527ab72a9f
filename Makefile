# SPDX-License-Identifier: GPL-2.0-only
# Verbs only: each calls scripts, which do the work and explain themselves (scripts/NAME --help).

ARCH    ?= arm64
FLAVOUR ?= normal
S       := ./scripts

# The scripts get ARCH and FLAVOUR as arguments. In the environment or in MAKEFLAGS they would
# reach the kernel's own make, where ARCH means something else.
MAKEOVERRIDES :=
unexport ARCH FLAVOUR STEPS MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run check check-series lint test build objects mutants model bench guest apply export regress clean

help:
	@echo 'Usage: make VERB [VARIABLE=VALUE]...'
	@echo ''
	@echo 'Run it'
	@echo '  run           install what is missing, get the kernel, apply the series, build, boot, test, report'
	@echo '  check         every test there is, on every architecture; last line: N passed, N failed, N skipped'
	@echo '  guest         a shell in a booted guest with the selftests in it (/kselftest)'
	@echo '  bench         the benchmarks, in guest instructions; writes results/bench-ARCH.json'
	@echo '  regress       the plan on the unpatched kernel, then on the patched one'
	@echo ''
	@echo 'Parts of check'
	@echo '  lint          shellcheck, pyflakes, checkpatch, licence lines, stray paths'
	@echo '  test          golden tests of the scripts'
	@echo '  check-series  the quilt: files, order, round trip, checkpatch, sign-offs (no build)'
	@echo '  mutants       breaks PV TLB flush of loongarch64 in each place; a test must fail each time'
	@echo '  model         the memory ordering of PV TLB flush, in Promela, and its mutants'
	@echo '  objects       compiles KVM for the architectures that are not run: s390, powerpc, mips'
	@echo ''
	@echo 'Work on the series'
	@echo '  apply         the series as commits on branch "series" in kernel/; then make -C kernel ... works'
	@echo '  export        the commits of that branch back to patches/ and selftests/kvm/'
	@echo '  build         kernel, selftests and guest image, without running them'
	@echo '  clean         remove build/ and the results that are not kept in git'
	@echo ''
	@echo 'Variables'
	@echo '  ARCH=$(ARCH)       arm64, x86_64, riscv64, loongarch64 or all (run, build, regress)'
	@echo '  FLAVOUR=$(FLAVOUR)   normal, debug, bench; base, bench-base (the unpatched kernel);'
	@echo '                 scripted (loongarch64: KVM without hardware for it)'
	@echo '  JOBS=N           parallel compile jobs (default: the number of processors)'
	@echo '  STEPS="..."      some steps of check only (scripts/check-all --list)'
	@echo '  KERNEL_SRC=DIR   a 7.3.y git tree to take the kernel from, instead of downloading it'
	@echo '  KVM_SERIES_CACHE=DIR   downloads and ccache (default: ~/.cache/kvm-series)'
	@echo '  ACCEL=kvm        run guests on /dev/kvm if the host can nest (default: tcg)'

run:
	@$(S)/run-series $(ARCH) $(FLAVOUR)

check:
	@$(S)/check-all $(STEPS)

check-series:
	@$(S)/install-deps series
	@$(S)/fetch-kernel
	@$(S)/check-series

lint:
	@$(S)/install-deps lint
	@$(S)/lint

test:
	@$(S)/install-deps series build guest lint
	@$(S)/test-scripts

build:
	@$(S)/run-series --only build $(ARCH) $(FLAVOUR)

objects:
	@$(S)/install-deps series build
	@$(S)/fetch-kernel
	@$(S)/apply-series
	@$(S)/build-objects

mutants:
	@$(S)/run-series --only build loongarch64 scripted
	@$(S)/check-mutants

model:
	@$(S)/install-deps model
	@$(S)/check-model

bench:
	@$(S)/run-bench $(ARCH)

guest:
	@$(S)/shell-guest $(ARCH) $(FLAVOUR)

apply:
	@$(S)/install-deps series
	@$(S)/fetch-kernel
	@$(S)/apply-series

export:
	@$(S)/install-deps series
	@$(S)/export-series

regress:
	@$(S)/run-series $(ARCH) base normal

clean:
	@$(S)/clean-build
