// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure what it costs to make a vCPU return from KVM_RUN.
 *
 * Prints one line a measurement, "BENCH " and a JSON object.  The unit is what
 * CLOCK_MONOTONIC counts: nanoseconds, or guest instructions under QEMU's
 * "-icount shift=0", see -u.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/utsname.h>

#include <linux/sizes.h>

#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"

#define MMIO_GPA	(4ull * SZ_1G)

static unsigned int nr_rounds = 10000;
static const char *unit = "ns";
static const char *kernel_way = "all";
static struct kvm_run *signal_run;

/* The cheapest exit that needs nothing but KVM_RUN to be completed. */
static void guest_mmio_write(void)
{
	for (;;)
		WRITE_ONCE(*(u32 *)MMIO_GPA, 0);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void report(const char *name, const char *way, double total)
{
	struct utsname uts;
	const char *arch;

	uname(&uts);
	arch = strcmp(uts.machine, "aarch64") ? uts.machine : "arm64";

	printf("BENCH {\"name\": \"%s\", \"arch\": \"%s\", \"vcpus\": 1, ", name, arch);
	printf("\"way\": \"%s\", \"unit\": \"%s\", ", way, unit);
	printf("\"value\": %.2f, \"per\": \"round\"}\n", total / nr_rounds);
	fflush(stdout);
}

static void run_expect(struct kvm_vcpu *vcpu, u32 exit_reason)
{
	int ret = __vcpu_run(vcpu);

	if (exit_reason == KVM_EXIT_INTR) {
		TEST_ASSERT(ret == -1 && errno == EINTR,
			    "Expected EINTR, got ret = %d, errno = %d", ret, errno);
		return;
	}
	TEST_ASSERT(!ret, KVM_IOCTL_ERROR(KVM_RUN, ret));
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, exit_reason);
}

/* An exit that the guest causes, i.e. nobody requests one. */
static void round_unused(struct kvm_vcpu *vcpu)
{
	run_expect(vcpu, KVM_EXIT_MMIO);
}

static void round_ioctl(struct kvm_vcpu *vcpu)
{
	vcpu_ioctl(vcpu, KVM_USER_EXIT, NULL);
	run_expect(vcpu, KVM_EXIT_REQUEST);
}

static void kick_handler(int sig)
{
	signal_run->immediate_exit = 1;
}

/* What VMMs do today: a signal, whose handler sets immediate_exit. */
static void round_signal(struct kvm_vcpu *vcpu)
{
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	run_expect(vcpu, KVM_EXIT_INTR);
	vcpu->run->immediate_exit = 0;
}

static void measure(struct kvm_vcpu *vcpu, const char *name, const char *way,
		    void (*fn)(struct kvm_vcpu *vcpu))
{
	unsigned int i;
	double start;

	/* Warm up, e.g. have the guest's memory faulted in. */
	for (i = 0; i < nr_rounds / 10 + 1; i++)
		fn(vcpu);

	start = now();
	for (i = 0; i < nr_rounds; i++)
		fn(vcpu);
	report(name, way, now() - start);
}

static void help(const char *name)
{
	printf("usage: %s [-h] [-n rounds] [-u insn|ns] [-w way]\n", name);
	printf(" -n: rounds to measure, at least 1 (default: %u)\n", nr_rounds);
	printf(" -u: unit that CLOCK_MONOTONIC counts in (default: %s)\n", unit);
	printf(" -w: name for the kernel in user_exit.unused_exit (default: %s)\n",
	       kernel_way);
	exit(0);
}

int main(int argc, char *argv[])
{
	struct sigaction sa = { .sa_handler = kick_handler };
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	int opt;

	while ((opt = getopt(argc, argv, "hn:u:w:")) != -1) {
		switch (opt) {
		case 'n':
			nr_rounds = atoi_positive("Number of rounds", optarg);
			break;
		case 'u':
			unit = optarg;
			TEST_ASSERT(!strcmp(unit, "insn") || !strcmp(unit, "ns"),
				    "Unit must be insn or ns, not '%s'", unit);
			break;
		case 'w':
			kernel_way = optarg;
			break;
		case 'h':
		default:
			help(argv[0]);
		}
	}

	vm = vm_create_with_one_vcpu(&vcpu, guest_mmio_write);
	virt_map(vm, MMIO_GPA, MMIO_GPA, 1);
	signal_run = vcpu->run;
	sigaction(SIGUSR1, &sa, NULL);

	measure(vcpu, "user_exit.unused_exit", kernel_way, round_unused);
	measure(vcpu, "user_exit.self", "signal", round_signal);
	if (kvm_has_cap(KVM_CAP_USER_EXIT))
		measure(vcpu, "user_exit.self", "ioctl", round_ioctl);

	kvm_vm_free(vm);
	return 0;
}
