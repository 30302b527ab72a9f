// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure what it costs to get and set all registers of vCPUs, one by one with
 * KVM_{GET,SET}_ONE_REG, in one call with KVM_{GET,SET}_MANY_REGS, and on x86
 * with KVM_{GET,SET}_MSRS.
 *
 * Prints one line a measurement, "BENCH " and a JSON object.  The unit is what
 * CLOCK_MONOTONIC counts: nanoseconds, or guest instructions under QEMU's
 * "-icount shift=0", see -u.
 *
 * many_regs.get   all registers of one vCPU, per register; and of 160 vCPUs, one
 *                 after the other, per VM.  "base" is one by one on a kernel
 *                 without the feature, to compare "one_reg" with
 * many_regs.set   the same for all that can be set to the value they have
 * many_regs.trap  a guest's read of a system register that KVM emulates (arm64),
 *                 per round; "base" without the feature
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/utsname.h>

#include "kvm_util.h"
#include "many_regs.h"
#include "processor.h"
#include "test_util.h"
#include "ucall_common.h"

#define MAX_VCPUS	160
#define NR_TRAPS	1000
#define MIN_ROUNDS	5u

static unsigned int nr_rounds = 100;
static const char *unit = "ns";
static bool has_many_regs;

static struct kvm_vcpu *vcpus[MAX_VCPUS];
static int nr_vcpus;

static struct many_regs *regs;
static u8 *data;

static void guest_code(void)
{
	int i;

	for (;;) {
		GUEST_SYNC(0);
		for (i = 0; i < NR_TRAPS; i++) {
#ifdef __aarch64__
			read_sysreg(id_aa64isar0_el1);
#else
			barrier();
#endif
		}
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void report(const char *name, const char *way, double value, const char *per)
{
	struct utsname uts;
	const char *arch;

	uname(&uts);
	arch = strcmp(uts.machine, "aarch64") ? uts.machine : "arm64";

	printf("BENCH {\"name\": \"%s\", \"arch\": \"%s\", \"vcpus\": %d, ", name, arch, nr_vcpus);
	printf("\"way\": \"%s\", \"unit\": \"%s\", ", way, unit);
	printf("\"value\": %.2f, \"per\": \"%s\"}\n", value, per);
	fflush(stdout);
}

static void one_by_one(bool set)
{
	int i, ret;
	u8 *val;
	u64 j;

	for (i = 0; i < nr_vcpus; i++) {
		val = data;
		for (j = 0; j < regs->nr; j++) {
			ret = __one_reg(vcpus[i], set, regs->ids[j], val);
			TEST_ASSERT(!ret, "0x%lx: errno = %d", (unsigned long)regs->ids[j], errno);
			val += reg_slot(regs->ids[j]);
		}
	}
}

static void in_one_call(bool set)
{
	int i;

	for (i = 0; i < nr_vcpus; i++) {
		if (set)
			set_many_regs(vcpus[i], regs, data);
		else
			get_many_regs(vcpus[i], regs, data);
	}
}

#ifdef __x86_64__
static struct kvm_msrs *msrs;

static void msrs_init(void)
{
	u64 i;

	msrs = calloc(1, sizeof(*msrs) + regs->nr * sizeof(msrs->entries[0]));
	msrs->nmsrs = regs->nr;
	for (i = 0; i < regs->nr; i++)
		msrs->entries[i].index = regs->ids[i];
}

static void as_msrs(bool set)
{
	int i, ret;

	for (i = 0; i < nr_vcpus; i++) {
		if (set)
			ret = __vcpu_ioctl(vcpus[i], KVM_SET_MSRS, msrs);
		else
			ret = __vcpu_ioctl(vcpus[i], KVM_GET_MSRS, msrs);
		TEST_ASSERT(ret == regs->nr, "MSRs: ret = %d, errno = %d", ret, errno);
	}
}
#endif

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median: in some rounds, the timer ticks. */
static double per_call(void (*way)(bool set), bool set)
{
	unsigned int rounds = max(nr_rounds / nr_vcpus, MIN_ROUNDS), i;
	double *values = calloc(rounds, sizeof(*values));
	double start, value;

	/* Caches, and faults of the first call. */
	way(set);
	for (i = 0; i < rounds; i++) {
		start = now();
		way(set);
		values[i] = now() - start;
	}
	qsort(values, rounds, sizeof(*values), compare);
	value = values[rounds / 2];
	free(values);
	return value;
}

static void measure(bool set, bool whole)
{
	const char *name = set ? "many_regs.set" : "many_regs.get";
	const char *per = whole ? "vm" : "register";
	double div = whole ? 1 : regs->nr;

	report(name, has_many_regs ? "one_reg" : "base", per_call(one_by_one, set) / div, per);
	if (!has_many_regs)
		return;
	report(name, "many_regs", per_call(in_one_call, set) / div, per);
#ifdef __x86_64__
	report(name, set ? "set_msrs" : "get_msrs", per_call(as_msrs, set) / div, per);
#endif
}

static void measure_trap(struct kvm_vcpu *vcpu)
{
#ifdef __aarch64__
	double start;
	unsigned int i;

	vcpu_run(vcpu);
	vcpu_run(vcpu);
	start = now();
	for (i = 0; i < nr_rounds; i++)
		vcpu_run(vcpu);
	report("many_regs.trap", has_many_regs ? "all" : "base",
	       (now() - start) / nr_rounds / NR_TRAPS, "round");
#endif
}

static void measure_vm(int n, bool set)
{
	bool whole = n > 1;
	struct kvm_vm *vm;

	nr_vcpus = n;
	vm = vm_create_with_vcpus(n, guest_code, vcpus);
	/* What is saved has run, what is restored hasn't. */
	if (!set)
		vcpu_run(vcpus[0]);

	regs = usable_regs(vcpus[0], set);
#ifdef __x86_64__
	/* KVM_GET_MSRS doesn't take more. */
	regs->nr = min_t(u64, regs->nr, 255);
	regs->size = regs_size(regs->ids, regs->nr);
	msrs_init();
	as_msrs(false);
#endif
	data = aligned_alloc(8, regs->size);
	memset(data, 0, regs->size);
	one_by_one(false);
	if (!whole)
		printf("%s: %lu registers, %lu bytes\n", set ? "set" : "get",
		       (unsigned long)regs->nr, (unsigned long)regs->size);

	measure(set, whole);
	if (!whole && !set)
		measure_trap(vcpus[0]);

#ifdef __x86_64__
	free(msrs);
#endif
	free(data);
	regs_free(regs);
	kvm_vm_free(vm);
}

static void help(const char *name)
{
	printf("usage: %s [-h] [-n rounds] [-u insn|ns]\n", name);
	printf(" -n: rounds to measure with one vCPU, at least 1; fewer with many (default: %u)\n",
	       nr_rounds);
	printf(" -u: unit that CLOCK_MONOTONIC counts in (default: %s)\n", unit);
	exit(0);
}

int main(int argc, char *argv[])
{
	int opt, max_vcpus;

	while ((opt = getopt(argc, argv, "hn:u:")) != -1) {
		switch (opt) {
		case 'n':
			nr_rounds = atoi_positive("Number of rounds", optarg);
			break;
		case 'u':
			unit = optarg;
			TEST_ASSERT(!strcmp(unit, "insn") || !strcmp(unit, "ns"),
				    "Unit must be insn or ns, not '%s'", unit);
			break;
		case 'h':
		default:
			help(argv[0]);
		}
	}

	has_many_regs = kvm_has_cap(KVM_CAP_MANY_REGS);
	max_vcpus = min(MAX_VCPUS, kvm_check_cap(KVM_CAP_MAX_VCPUS));
	measure_vm(1, false);
	measure_vm(1, true);
	measure_vm(max_vcpus, false);
	measure_vm(max_vcpus, true);
	return 0;
}
