// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure what it costs to make vCPUs return from KVM_RUN, with a signal, whose
 * handler sets immediate_exit through a thread-local pointer, and with
 * KVM_USER_EXIT on the vCPU and on the VM.
 *
 * Prints one line a measurement, "BENCH " and a JSON object.  The unit is what
 * CLOCK_MONOTONIC counts: nanoseconds, or guest instructions under QEMU's
 * "-icount shift=0", see -u.
 *
 * user_exit.unused_exit    an exit that the guest causes, i.e. what the feature
 *                          costs when it isn't used; "base" without it
 * user_exit.self           a thread makes its own next KVM_RUN return, and calls it
 * user_exit.kick_spinning  from the kick of a vCPU that executes guest code until
 *                          the kicker has been told
 * user_exit.pause          from the first kick until the last of many halted vCPUs
 *                          has told the kicker
 * user_exit.kick_halted    the kicker's part of that
 * user_exit.kick_runnable  the same for vCPUs that execute guest code, or would if
 *                          they had a CPU
 *
 * The kicker runs at real-time priority, so that on one CPU none of the threads
 * that it wakes gets between its kicks.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
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
#include "user_exit.h"

#define MMIO_GPA	(4ull * SZ_1G)
#define MAX_VCPUS	160
#define MAX_ROUNDS	1000u

enum way {
	WAY_SIGNAL,
	WAY_IOCTL,
	WAY_VM_IOCTL,
	NR_WAYS,
};

static const char * const way_names[] = {
	[WAY_SIGNAL]	= "signal",
	[WAY_IOCTL]	= "ioctl",
	[WAY_VM_IOCTL]	= "vm_ioctl",
};

/* What a VMM has for each of its vCPUs. */
struct vcpu_thread {
	struct kvm_vcpu *vcpu;
	pthread_t thread;
	pid_t tid;
	sem_t resume;
};

static unsigned int nr_rounds = 10000;
static const char *unit = "ns";

static struct vcpu_thread threads[MAX_VCPUS];
static int nr_vcpus;
static atomic_int nr_acks;
static atomic_bool quit;
static sem_t all_acked;

static __thread struct kvm_run *this_run;

/* The cheapest exit that needs nothing but KVM_RUN to be completed. */
static void guest_mmio_write(void)
{
	for (;;)
		WRITE_ONCE(*(u32 *)MMIO_GPA, 0);
}

static void guest_spin(void)
{
	for (;;)
		barrier();
}

static void guest_halt(void)
{
	for (;;) {
#if defined(__x86_64__)
		asm volatile("sti; hlt; cli");
#elif defined(__aarch64__) || defined(__riscv)
		asm volatile("wfi");
#endif
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void report(const char *name, int vcpus, const char *way, double value,
		   const char *per)
{
	struct utsname uts;
	const char *arch;

	uname(&uts);
	arch = strcmp(uts.machine, "aarch64") ? uts.machine : "arm64";

	printf("BENCH {\"name\": \"%s\", \"arch\": \"%s\", \"vcpus\": %d, ", name, arch, vcpus);
	printf("\"way\": \"%s\", \"unit\": \"%s\", ", way, unit);
	printf("\"value\": %.2f, \"per\": \"%s\"}\n", value, per);
	fflush(stdout);
}

static void kick_handler(int sig)
{
	this_run->immediate_exit = 1;
}

static void kick_self(struct kvm_vcpu *vcpu, enum way way)
{
	if (way == WAY_SIGNAL)
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	else
		vcpu_user_exit(vcpu);
}

/* KVM_RUN returns as it does for the way in question, and the VMM notices. */
static void run_until_kicked(struct kvm_vcpu *vcpu)
{
	int ret = __vcpu_run(vcpu);

	if (ret == -1 && errno == EINTR) {
		vcpu->run->immediate_exit = 0;
		return;
	}
	TEST_ASSERT(!ret, KVM_IOCTL_ERROR(KVM_RUN, ret));
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_REQUEST);
}

static double measure_unused_exit(struct kvm_vcpu *vcpu, unsigned int rounds)
{
	double start = now();
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		vcpu_run(vcpu);
		TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_MMIO);
	}
	return (now() - start) / rounds;
}

static double measure_self(struct kvm_vcpu *vcpu, enum way way, unsigned int rounds)
{
	double start = now();
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		kick_self(vcpu, way);
		run_until_kicked(vcpu);
	}
	return (now() - start) / rounds;
}

static void one_vcpu(bool has_user_exit)
{
	const char *way = has_user_exit ? "all" : "base";
	const unsigned int warm_up = nr_rounds / 10 + 1;
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	int i;

	vm = vm_create_with_one_vcpu(&vcpu, guest_mmio_write);
	virt_map(vm, MMIO_GPA, MMIO_GPA, 1);
	this_run = vcpu->run;

	/* Have the guest's memory faulted in, for example. */
	measure_unused_exit(vcpu, warm_up);
	report("user_exit.unused_exit", 1, way,
	       measure_unused_exit(vcpu, nr_rounds), "round");

	if (has_user_exit) {
		for (i = 0; i <= WAY_IOCTL; i++) {
			measure_self(vcpu, i, warm_up);
			report("user_exit.self", 1, way_names[i],
			       measure_self(vcpu, i, nr_rounds), "round");
		}
	}

	kvm_vm_free(vm);
}

static void *vcpu_thread_fn(void *arg)
{
	struct vcpu_thread *thread = arg;

	thread->tid = syscall(SYS_gettid);
	this_run = thread->vcpu->run;

	for (;;) {
		/* The first time, this tells that the thread is there. */
		if (atomic_fetch_add(&nr_acks, 1) + 1 == nr_vcpus)
			sem_post(&all_acked);
		sem_wait(&thread->resume);
		if (atomic_load(&quit))
			return NULL;
		run_until_kicked(thread->vcpu);
	}
}

static void kick_all(struct kvm_vm *vm, enum way way)
{
	pid_t pid = getpid();
	int i;

	switch (way) {
	case WAY_SIGNAL:
		for (i = 0; i < nr_vcpus; i++)
			syscall(SYS_tgkill, pid, threads[i].tid, SIGUSR1);
		break;
	case WAY_IOCTL:
		for (i = 0; i < nr_vcpus; i++)
			vcpu_user_exit(threads[i].vcpu);
		break;
	default:
		vm_user_exit(vm);
		break;
	}
}

struct pause {
	double kick;
	double whole;
};

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, unsigned int n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

/*
 * The median of the rounds: in some of them, the scheduler lets threads preempt
 * each other, or the timer ticks.
 */
static struct pause measure_pause(struct kvm_vm *vm, enum way way, unsigned int rounds)
{
	static double kick[MAX_ROUNDS], whole[MAX_ROUNDS];
	double start, kicked;
	unsigned int i;
	int j;

	for (i = 0; i < rounds; i++) {
		atomic_store(&nr_acks, 0);
		for (j = 0; j < nr_vcpus; j++)
			sem_post(&threads[j].resume);

		/* Have all vCPUs enter the guest, or halt. */
		usleep(1000 + nr_vcpus * 100);

		start = now();
		kick_all(vm, way);
		kicked = now();
		sem_wait(&all_acked);
		whole[i] = now() - start;
		kick[i] = kicked - start;
	}

	return (struct pause) {
		.kick = median(kick, rounds) / nr_vcpus,
		.whole = median(whole, rounds) / nr_vcpus,
	};
}

/* Measures with as many vCPUs that halt, or spin. */
static void many_vcpus(int vcpus, bool halt)
{
	const struct sched_param kicker = { .sched_priority = 1 };
	const struct sched_param normal = { .sched_priority = 0 };
	struct kvm_vcpu *vcpu_array[MAX_VCPUS];
	unsigned int rounds = min(nr_rounds / (10 * vcpus) + 30, MAX_ROUNDS);
	struct kvm_vm *vm;
	struct pause pause;
	int i, way;

	nr_vcpus = vcpus;
	atomic_store(&quit, false);
	atomic_store(&nr_acks, 0);
	vm = vm_create_with_vcpus(vcpus, halt ? guest_halt : guest_spin, vcpu_array);
	for (i = 0; i < vcpus; i++) {
		threads[i].vcpu = vcpu_array[i];
		sem_init(&threads[i].resume, 0, 0);
		kvm_pthread_create(&threads[i].thread, NULL, vcpu_thread_fn, &threads[i]);
	}
	sem_wait(&all_acked);
	TEST_ASSERT(!sched_setscheduler(0, SCHED_FIFO, &kicker),
		    "Can't get real-time priority, errno = %d", errno);

	for (way = 0; way < NR_WAYS; way++) {
		if (vcpus == 1 && way == WAY_VM_IOCTL)
			continue;

		measure_pause(vm, way, 2);
		pause = measure_pause(vm, way, rounds);
		if (vcpus == 1) {
			report("user_exit.kick_spinning", vcpus, way_names[way],
			       pause.whole, "round");
		} else if (halt) {
			report("user_exit.pause", vcpus, way_names[way], pause.whole, "vcpu");
			report("user_exit.kick_halted", vcpus, way_names[way],
			       pause.kick, "vcpu");
		} else {
			report("user_exit.kick_runnable", vcpus, way_names[way],
			       pause.kick, "vcpu");
		}
	}

	sched_setscheduler(0, SCHED_OTHER, &normal);
	atomic_store(&quit, true);
	for (i = 0; i < vcpus; i++) {
		sem_post(&threads[i].resume);
		kvm_pthread_join(threads[i].thread, NULL);
		sem_destroy(&threads[i].resume);
	}
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
	static const int vcpus[] = { 8, 64, MAX_VCPUS };
	struct sigaction sa = { .sa_handler = kick_handler };
	bool has_user_exit;
	int i, opt;

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

	has_user_exit = kvm_has_cap(KVM_CAP_USER_EXIT);
	sigaction(SIGUSR1, &sa, NULL);
	sem_init(&all_acked, 0, 0);

	one_vcpu(has_user_exit);
	if (!has_user_exit)
		return 0;

	many_vcpus(1, false);
	for (i = 0; i < ARRAY_SIZE(vcpus); i++) {
		many_vcpus(vcpus[i], true);
		many_vcpus(vcpus[i], false);
	}
	return 0;
}
