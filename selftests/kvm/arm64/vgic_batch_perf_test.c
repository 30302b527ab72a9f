// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure what it costs to get and set the registers of a whole GICv3, with one
 * ioctl for each and with one for all (KVM_DEV_ARM_VGIC_GRP_BATCH_REGS).
 *
 * Prints one line a measurement, "BENCH " and a JSON object.  The unit is what
 * CLOCK_MONOTONIC counts: nanoseconds, or guest instructions under QEMU's
 * "-icount shift=0", see -u.
 *
 * vgic.get   all registers, per register.  "base" is one by one on a kernel
 *            without the feature, to compare "single" with
 * vgic.set   the same, in a VM that hasn't run, as at the end of a migration
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"
#include "ucall_common.h"
#include "vgic.h"
#include "vgic_batch.h"

#define MAX_VCPUS	512
#define NR_IRQS		256

#define MAX_ROUNDS	5u

/* Single accesses take a time that is quadratic in the vCPUs: above this, one round. */
#define MANY_VCPUS	160

static unsigned int nr_rounds = 3;
static const char *unit = "ns";
static struct kvm_vcpu *vcpus[MAX_VCPUS];
static int nr_vcpus;

static void guest_code(void)
{
	GUEST_DONE();
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median: in some rounds, the timer ticks. */
static void measure(int fd, bool set, struct gic_regs *regs, const char *way,
		    void (*access)(int fd, bool set, struct gic_regs *regs))
{
	unsigned int i, rounds = nr_vcpus > MANY_VCPUS ? 1 : nr_rounds;
	double values[MAX_ROUNDS], start;

	/* Caches, and faults of the first call. */
	if (rounds > 1 || access == gic_batch)
		access(fd, set, regs);
	for (i = 0; i < rounds; i++) {
		start = now();
		access(fd, set, regs);
		values[i] = now() - start;
	}
	qsort(values, rounds, sizeof(*values), compare);

	printf("BENCH {\"name\": \"vgic.%s\", \"arch\": \"arm64\", \"vcpus\": %d, ",
	       set ? "set" : "get", nr_vcpus);
	printf("\"way\": \"%s\", \"unit\": \"%s\", ", way, unit);
	printf("\"value\": %.2f, \"per\": \"register\"}\n", values[rounds / 2] / regs->nr);
	fflush(stdout);
}

static void measure_vm(int n, bool set)
{
	struct gic_regs saved = {}, restore = {}, *regs;
	struct kvm_vm *vm;
	int fd, i;

	nr_vcpus = n;
	vm = vm_create(n);
	for (i = 0; i < n; i++)
		vcpus[i] = vm_vcpu_add(vm, i, guest_code);
	fd = vgic_v3_setup(vm, n, NR_IRQS);

	/* Interrupts are spread over all vCPUs. */
	for (i = MIN_SPI; i < NR_IRQS; i++) {
		struct kvm_arm_vgic_batch_entry irouter = {
			.group = KVM_DEV_ARM_VGIC_GRP_DIST_REGS,
			.attr = GICD_IROUTER + i * 8,
			.val = gic_attr_mpidr(vcpus[i * n / NR_IRQS]) >>
			       KVM_DEV_ARM_VGIC_V3_MPIDR_SHIFT,
		};

		TEST_ASSERT(!__gic_single(fd, true, &irouter), "IROUTER of %d: errno = %d",
			    i, errno);
	}

	/* What is saved has run, what is restored hasn't. */
	if (!set)
		vcpu_run(vcpus[0]);

	gic_v3_regs(&saved, fd, vcpus, n, NR_IRQS);
	if (gic_has_batch(fd))
		gic_batch(fd, false, &saved);
	else
		gic_single(fd, false, &saved);
	if (set)
		gic_v3_restore_regs(&restore, &saved);
	regs = set ? &restore : &saved;
	printf("%s: %d vCPUs, %u registers: %u ioctls, or 1\n", set ? "set" : "get", n,
	       regs->nr, regs->nr);

	if (!gic_has_batch(fd)) {
		measure(fd, set, regs, "base", gic_single);
	} else {
		measure(fd, set, regs, "single", gic_single);
		measure(fd, set, regs, "batch", gic_batch);
	}

	gic_regs_free(&saved);
	gic_regs_free(&restore);
	close(fd);
	kvm_vm_free(vm);
}

static void help(const char *name)
{
	printf("usage: %s [-h] [-n rounds] [-u insn|ns] [-v vcpus]\n", name);
	printf(" -n: rounds to measure, 1 to %u, 1 with more than %u vCPUs (default: %u)\n",
	       MAX_ROUNDS, MANY_VCPUS, nr_rounds);
	printf(" -u: unit that CLOCK_MONOTONIC counts in (default: %s)\n", unit);
	printf(" -v: vCPUs of the VM, 1 to %u (default: 8, 64, 160 and 512)\n", MAX_VCPUS);
	exit(0);
}

int main(int argc, char *argv[])
{
	static int sizes[] = { 8, 64, 160, 512 };
	int opt, max_vcpus, only = 0;
	u32 i;

	while ((opt = getopt(argc, argv, "hn:u:v:")) != -1) {
		switch (opt) {
		case 'n':
			nr_rounds = atoi_positive("Number of rounds", optarg);
			TEST_ASSERT(nr_rounds <= MAX_ROUNDS, "at most %u rounds", MAX_ROUNDS);
			break;
		case 'u':
			unit = optarg;
			TEST_ASSERT(!strcmp(unit, "insn") || !strcmp(unit, "ns"),
				    "Unit must be insn or ns, not '%s'", unit);
			break;
		case 'v':
			only = atoi_positive("Number of vCPUs", optarg);
			TEST_ASSERT(only <= MAX_VCPUS, "at most %u vCPUs", MAX_VCPUS);
			break;
		case 'h':
		default:
			help(argv[0]);
		}
	}

	TEST_REQUIRE(kvm_supports_vgic_v3());
	test_disable_default_vgic();
	max_vcpus = kvm_check_cap(KVM_CAP_MAX_VCPUS);

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		int n = only ?: sizes[i];

		if (n > max_vcpus)
			break;
		measure_vm(n, false);
		measure_vm(n, true);
		if (only)
			break;
	}
	return 0;
}
