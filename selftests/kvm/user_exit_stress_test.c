// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stress test for the ordering guarantee of KVM_USER_EXIT: userspace stores a
 * flag and makes a request, and the vCPU's thread sees the flag when KVM_RUN
 * returns.  No guest exits by itself, so each round is one request, one return,
 * and one flag.
 *
 * A return that doesn't show the flag, e.g. because a stale request caused it,
 * fails the test at once.  A request that is lost leaves the vCPU in the guest,
 * or halted, and fails the test after LOST_TIMEOUT.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"
#include "user_exit.h"

/* Seconds. */
#define LOST_TIMEOUT	30

#define MAX_VCPUS	64
#define MAX_DELAY	5000

static unsigned int nr_vcpus = 4;
static unsigned int nr_rounds = 20000;

struct victim {
	struct kvm_vcpu *vcpu;
	pthread_t thread;
	pthread_t kicker;
	/* The last round that was announced, written before the request. */
	atomic_uint wanted;
	/* Posted after each KVM_RUN. */
	sem_t seen;
};

static u32 next_random(u32 seed)
{
	return seed * 1664525 + 1013904223;
}

static struct kvm_vm *vm;
static struct victim victims[MAX_VCPUS];

/* Execute code for a while, then halt, so that requests hit all of it. */
static void guest_code(u32 seed)
{
	u32 i;

	for (;;) {
		seed = next_random(seed);
		for (i = 0; i < seed % MAX_DELAY; i++)
			barrier();
#if defined(__x86_64__)
		asm volatile("sti; hlt; cli");
#elif defined(__aarch64__) || defined(__riscv)
		asm volatile("wfi");
#endif
	}
}

/* Nothing but the VMM ends a halt, and only x86 goes on with it after an exit. */
static void end_halt(struct kvm_vcpu *vcpu)
{
#ifdef __x86_64__
	struct kvm_mp_state mp_state = { .mp_state = KVM_MP_STATE_RUNNABLE };

	vcpu_mp_state_set(vcpu, &mp_state);
#endif
}

static void *victim_fn(void *arg)
{
	struct victim *victim = arg;
	u32 i, wanted;

	for (i = 1; i <= nr_rounds; i++) {
		run_expect_request(victim->vcpu);

		/* A relaxed load, to not add a barrier that KVM has to provide. */
		wanted = atomic_load_explicit(&victim->wanted, memory_order_relaxed);
		TEST_ASSERT(wanted == i,
			    "vCPU %u, round %u: KVM_RUN returned, the flag says %u",
			    victim->vcpu->id, i, wanted);
		sem_post(&victim->seen);
		end_halt(victim->vcpu);
	}
	return NULL;
}

/* Kick at all stages of the thread's way into the guest. */
static void delay(u32 *seed)
{
	u32 i;

	*seed = next_random(*seed);
	for (i = 0; i < *seed % MAX_DELAY; i++)
		barrier();
}

static void announce(struct victim *victim, u32 round)
{
	atomic_store_explicit(&victim->wanted, round, memory_order_relaxed);
}

static void wait_seen(struct victim *victim, u32 round)
{
	struct timespec end;
	int ret;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LOST_TIMEOUT;
	do {
		ret = sem_timedwait(&victim->seen, &end);
	} while (ret && errno == EINTR);
	TEST_ASSERT(!ret, "vCPU %u, round %u: the request is lost, KVM_RUN didn't return",
		    victim->vcpu->id, round);
}

static void *kicker_fn(void *arg)
{
	struct victim *victim = arg;
	u32 i, seed = victim->vcpu->id;

	for (i = 1; i <= nr_rounds; i++) {
		delay(&seed);
		announce(victim, i);
		vcpu_user_exit(victim->vcpu);
		wait_seen(victim, i);
	}
	return NULL;
}

static void start(struct victim *victim)
{
	atomic_store(&victim->wanted, 0);
	kvm_pthread_create(&victim->thread, NULL, victim_fn, victim);
}

/* Each vCPU has a thread that kicks it, and nothing else. */
static void stress_vcpu_ioctl(void)
{
	int i;

	for (i = 0; i < nr_vcpus; i++) {
		start(&victims[i]);
		kvm_pthread_create(&victims[i].kicker, NULL, kicker_fn, &victims[i]);
	}

	for (i = 0; i < nr_vcpus; i++) {
		kvm_pthread_join(victims[i].kicker, NULL);
		kvm_pthread_join(victims[i].thread, NULL);
	}
}

/* One thread kicks all vCPUs at once. */
static void stress_vm_ioctl(void)
{
	u32 i, round, seed = nr_vcpus;

	for (i = 0; i < nr_vcpus; i++)
		start(&victims[i]);

	for (round = 1; round <= nr_rounds; round++) {
		delay(&seed);
		for (i = 0; i < nr_vcpus; i++)
			announce(&victims[i], round);
		vm_user_exit(vm);
		for (i = 0; i < nr_vcpus; i++)
			wait_seen(&victims[i], round);
	}

	for (i = 0; i < nr_vcpus; i++)
		kvm_pthread_join(victims[i].thread, NULL);
}

static void stress(const char *name, void (*fn)(void))
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	fn();
	pr_info("%s: %u vCPUs, %lu requests, none lost, %.1f s\n", name, nr_vcpus,
		(unsigned long)nr_vcpus * nr_rounds,
		timespec_to_ns(timespec_elapsed(start)) / 1e9);
}

static void help(const char *name)
{
	printf("usage: %s [-h] [-n rounds] [-v vcpus]\n", name);
	printf(" -n: requests to each vCPU, with each of the two ioctls (default: %u)\n",
	       nr_rounds);
	printf(" -v: number of vCPUs, at most %u (default: %u)\n",
	       MAX_VCPUS, nr_vcpus);
	exit(0);
}

int main(int argc, char *argv[])
{
	struct kvm_vcpu *vcpus[MAX_VCPUS];
	int i, opt;

	while ((opt = getopt(argc, argv, "hn:v:")) != -1) {
		switch (opt) {
		case 'n':
			nr_rounds = atoi_positive("Number of rounds", optarg);
			break;
		case 'v':
			nr_vcpus = atoi_positive("Number of vCPUs", optarg);
			TEST_ASSERT(nr_vcpus <= MAX_VCPUS, "At most %u vCPUs", MAX_VCPUS);
			break;
		case 'h':
		default:
			help(argv[0]);
		}
	}

	TEST_REQUIRE(kvm_has_cap(KVM_CAP_USER_EXIT));

	vm = vm_create_with_vcpus(nr_vcpus, guest_code, vcpus);
	for (i = 0; i < nr_vcpus; i++) {
		victims[i].vcpu = vcpus[i];
		sem_init(&victims[i].seen, 0, 0);
		vcpu_args_set(vcpus[i], 1, i);
	}

	stress("vCPU ioctl", stress_vcpu_ioctl);
	stress("VM ioctl", stress_vm_ioctl);

	kvm_vm_free(vm);
	return 0;
}
