// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test KVM_USER_EXIT, which makes a vCPU return from KVM_RUN without a signal.
 *
 * A vCPU that doesn't honour a request never returns from KVM_RUN in most of
 * these tests; the harness' timeout reports that.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/wait.h>

#include <linux/sizes.h>

#include "kvm_test_harness.h"
#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"
#include "ucall_common.h"
#include "user_exit.h"

/* Not backed by a memslot, mapped 1:1 in the guest. */
#define MMIO_GPA	(4ull * SZ_1G)
#define MMIO_PAGES	2

/* Seconds, for a guest in an emulator with a debug kernel. */
#define SLOW_TIMEOUT	180

/* On s390 there's no MMIO, and loongarch's idle has not been tried. */
#if defined(__x86_64__) || defined(__aarch64__) || defined(__riscv)
#define HAS_MMIO	true
#define HAS_HALT	true
#else
#define HAS_MMIO	false
#define HAS_HALT	false
#endif

#define NR_STORM_THREADS	8
#define NR_STORM_KICKS		10000
#define NR_STORM_SYNCS		500
#define NR_KICKS		2000

static u64 guest_counter;
static u32 guest_round;

/* Execute guest code, forever, without any exit that userspace can see. */
static void guest_spin(void)
{
	for (;;)
		WRITE_ONCE(guest_counter, READ_ONCE(guest_counter) + 1);
}

static void guest_sync(void)
{
	int i;

	for (i = 0; ; i++)
		GUEST_SYNC(i);
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

static void guest_mmio_read(void)
{
	for (;;)
		GUEST_SYNC(READ_ONCE(*(u32 *)MMIO_GPA));
}

/* Exit a few times in each round, and then spin until the next one. */
static void guest_exit_and_spin(void)
{
	u32 i, round;

	for (;;) {
		round = READ_ONCE(guest_round);
		for (i = 0; i < round % 4; i++)
			WRITE_ONCE(*(u32 *)MMIO_GPA, i);
		while (READ_ONCE(guest_round) == round)
			barrier();
	}
}

FIXTURE(user_exit) {
	struct kvm_vm *vm;
	struct kvm_vcpu *vcpu;
	u64 *counter;
};

FIXTURE_SETUP(user_exit)
{
	self->vm = vm_create_with_one_vcpu(&self->vcpu, NULL);
	virt_map(self->vm, MMIO_GPA, MMIO_GPA, MMIO_PAGES);
	self->counter = addr_gva2hva(self->vm, (gva_t)&guest_counter);
}

FIXTURE_TEARDOWN(user_exit)
{
	kvm_vm_free(self->vm);
}

TEST_F(user_exit, capability)
{
	TEST_ASSERT_EQ(kvm_check_cap(KVM_CAP_USER_EXIT), 1);
	TEST_ASSERT_EQ(vm_check_cap(self->vm, KVM_CAP_USER_EXIT), 1);
}

static void test_error(struct kvm_vcpu *vcpu, unsigned long flags, int err)
{
	int ret;

	ret = __vcpu_user_exit(vcpu, flags);
	TEST_ASSERT(ret == -1 && errno == err,
		    "vCPU, flags 0x%lx: expected errno %d, got ret = %d, errno = %d",
		    flags, err, ret, errno);

	ret = __vm_user_exit(vcpu->vm, flags);
	TEST_ASSERT(ret == -1 && errno == err,
		    "VM, flags 0x%lx: expected errno %d, got ret = %d, errno = %d",
		    flags, err, ret, errno);
}

TEST_F(user_exit, bad_flags)
{
	static const unsigned long flags[] = { 1, 2, 1ul << 31, 1ul << (BITS_PER_LONG - 1), -1ul };
	int i;

	vcpu_arch_set_entry_point(self->vcpu, guest_sync);

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		test_error(self->vcpu, flags[i], EINVAL);

	/* And nothing was requested. */
	run_expect_sync(self->vcpu, 0);
}

/* The fds belong to the process that created the VM. */
TEST_F(user_exit, other_process)
{
	int status;
	pid_t pid;

	vcpu_arch_set_entry_point(self->vcpu, guest_sync);

	pid = fork();
	TEST_ASSERT(pid >= 0, "fork() failed, errno = %d", errno);
	if (!pid) {
		test_error(self->vcpu, 0, EIO);
		_exit(0);
	}

	TEST_ASSERT_EQ(waitpid(pid, &status, 0), pid);
	TEST_ASSERT(WIFEXITED(status) && !WEXITSTATUS(status),
		    "The other process failed, status = 0x%x", status);

	run_expect_sync(self->vcpu, 0);
}

/* A request that is made while the vCPU isn't in KVM_RUN stays pending. */
TEST_F(user_exit, sticky)
{
	vcpu_arch_set_entry_point(self->vcpu, guest_spin);

	vcpu_user_exit(self->vcpu);
	run_expect_request(self->vcpu);
	TEST_ASSERT(!READ_ONCE(*self->counter), "Guest code was executed");
}

TEST_F(user_exit, consumed_once)
{
	int i;

	vcpu_arch_set_entry_point(self->vcpu, guest_sync);

	for (i = 0; i < 10; i++) {
		vcpu_user_exit(self->vcpu);
		vcpu_user_exit(self->vcpu);
		vcpu_user_exit(self->vcpu);
		run_expect_request(self->vcpu);
		run_expect_sync(self->vcpu, i);
	}
}

/* Neither a request nor its consumption is tied to the thread. */
TEST_F(user_exit, other_thread)
{
	struct run_thread rt;

	vcpu_arch_set_entry_point(self->vcpu, guest_sync);

	run_expect_sync(self->vcpu, 0);
	vcpu_user_exit(self->vcpu);
	run_thread_start(&rt, self->vcpu);
	run_thread_expect_request(&rt);

	run_expect_sync(self->vcpu, 1);
	vcpu_user_exit(self->vcpu);
	run_expect_request(self->vcpu);

	run_thread_start(&rt, self->vcpu);
	kvm_pthread_join(rt.thread, NULL);
	TEST_ASSERT(!rt.ret, "KVM_RUN failed, ret = %d, errno = %d", rt.ret, rt.err);
	TEST_ASSERT(self->vcpu->run->exit_reason != KVM_EXIT_REQUEST,
		    "A consumed request made another thread's KVM_RUN return");
}

TEST_F(user_exit, consumed_by_immediate_exit)
{
	vcpu_arch_set_entry_point(self->vcpu, guest_sync);

	vcpu_user_exit(self->vcpu);
	self->vcpu->run->immediate_exit = 1;
	run_expect_errno(self->vcpu, EINTR);
	self->vcpu->run->immediate_exit = 0;

	run_expect_sync(self->vcpu, 0);
}

TEST_F(user_exit, consumed_by_signal)
{
	const size_t mask_len = 8;	/* the kernel's sigset_t */
	struct kvm_signal_mask *mask;
	sigset_t set;

	vcpu_arch_set_entry_point(self->vcpu, guest_sync);

	/* Pending, blocked in userspace, unblocked while in KVM_RUN. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	TEST_ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	TEST_ASSERT_EQ(raise(SIGUSR1), 0);

	mask = calloc(1, sizeof(*mask) + mask_len);
	mask->len = mask_len;
	vcpu_ioctl(self->vcpu, KVM_SET_SIGNAL_MASK, mask);
	free(mask);

	vcpu_user_exit(self->vcpu);
	run_expect_errno(self->vcpu, EINTR);
	TEST_ASSERT_KVM_EXIT_REASON(self->vcpu, KVM_EXIT_INTR);

	TEST_ASSERT_EQ(sigwaitinfo(&set, NULL), SIGUSR1);
	run_expect_sync(self->vcpu, 0);
}

/* An incomplete MMIO read is finished, with the data of the time, first. */
TEST_F(user_exit, completes_mmio)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	u32 data = 0x12345678;

	if (!HAS_MMIO)
		SKIP(return, "No MMIO");

	vcpu_arch_set_entry_point(vcpu, guest_mmio_read);

	vcpu_run(vcpu);
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_MMIO);
	TEST_ASSERT_EQ(vcpu->run->mmio.phys_addr, MMIO_GPA);
	TEST_ASSERT_EQ(vcpu->run->mmio.len, sizeof(data));
	TEST_ASSERT(!vcpu->run->mmio.is_write, "Expected a read");
	memcpy(vcpu->run->mmio.data, &data, sizeof(data));

	vcpu_user_exit(vcpu);
	run_expect_request(vcpu);

	memset(vcpu->run->mmio.data, 0xff, sizeof(vcpu->run->mmio.data));
	run_expect_sync(vcpu, data);
}

/*
 * KVM_USER_EXIT must not wait for the vCPU, which must leave the guest.  If only
 * the IPI were missing, then the next timer tick of the host would do its work.
 */
TEST_F_TIMEOUT(user_exit, spinning, SLOW_TIMEOUT)
{
	struct run_thread rt;
	u64 count = 0;
	int i;

	vcpu_arch_set_entry_point(self->vcpu, guest_spin);

	for (i = 0; i < 50; i++) {
		run_thread_start(&rt, self->vcpu);
		wait_for_progress(self->counter, count);
		vcpu_user_exit(self->vcpu);
		run_thread_expect_request(&rt);
		count = READ_ONCE(*self->counter);
	}
}

TEST_F_TIMEOUT(user_exit, halted, SLOW_TIMEOUT)
{
	struct run_thread rt;
	bool asleep;
	int i;

	if (!HAS_HALT)
		SKIP(return, "No halt");

	vcpu_arch_set_entry_point(self->vcpu, guest_halt);

	for (i = 0; i < 10; i++) {
		run_thread_start(&rt, self->vcpu);
		asleep = run_thread_wait_asleep(&rt);
		vcpu_user_exit(self->vcpu);
		run_thread_expect_request(&rt);
		if (!asleep)
			SKIP(return, "The guest's halt doesn't block the vCPU");
	}
}

/*
 * A vCPU that polls before it blocks must notice the request too.  KVM doubles
 * the time that it polls for whenever a halt takes longer than that.
 */
TEST_F_TIMEOUT(user_exit, halt_poll, SLOW_TIMEOUT)
{
	struct run_thread rt;
	u64 before, polls;
	int i;

	if (!HAS_HALT || !kvm_has_cap(KVM_CAP_HALT_POLL))
		SKIP(return, "No halt, or no polling");

	/* Nanoseconds. */
	vm_enable_cap(self->vm, KVM_CAP_HALT_POLL, 1000000000);
	vcpu_arch_set_entry_point(self->vcpu, guest_halt);

	before = vcpu_get_stat(self->vcpu, halt_successful_poll);
	for (i = 0; i < 200; i++) {
		run_thread_start(&rt, self->vcpu);
		usleep(2000);
		vcpu_user_exit(self->vcpu);
		run_thread_expect_request(&rt);

		polls = vcpu_get_stat(self->vcpu, halt_successful_poll) - before;
		if (polls >= 10)
			return;
	}

	/* E.g. arm64 doesn't trap WFI if told so, or if there's nothing else to run. */
	if (!vcpu_get_stat(self->vcpu, halt_attempted_poll))
		SKIP(return, "The guest's halt doesn't block the vCPU");

	TEST_FAIL("Only %lu of %d requests ended a poll", (unsigned long)polls, i);
}

/* A vCPU that isn't allowed to run leaves KVM_RUN, and stays what it is. */
static void test_mp_state(struct kvm_vcpu *vcpu, u32 state)
{
	struct kvm_mp_state mp_state = { .mp_state = state };
	struct run_thread rt;
	int i;

	vcpu_mp_state_set(vcpu, &mp_state);

	for (i = 0; i < 5; i++) {
		vcpu_user_exit(vcpu);
		run_expect_request(vcpu);

		run_thread_start(&rt, vcpu);
		TEST_ASSERT(run_thread_wait_asleep(&rt), "The vCPU doesn't block");
		vcpu_user_exit(vcpu);
		run_thread_expect_request(&rt);

		vcpu_mp_state_get(vcpu, &mp_state);
		TEST_ASSERT_EQ(mp_state.mp_state, state);
	}

	mp_state.mp_state = KVM_MP_STATE_RUNNABLE;
	vcpu_mp_state_set(vcpu, &mp_state);
}

TEST_F_TIMEOUT(user_exit, not_runnable, SLOW_TIMEOUT)
{
	vcpu_arch_set_entry_point(self->vcpu, guest_sync);

#if defined(__x86_64__)
	test_mp_state(self->vcpu, KVM_MP_STATE_UNINITIALIZED);
	test_mp_state(self->vcpu, KVM_MP_STATE_INIT_RECEIVED);
	test_mp_state(self->vcpu, KVM_MP_STATE_HALTED);
	test_mp_state(self->vcpu, KVM_MP_STATE_AP_RESET_HOLD);
#elif defined(__aarch64__)
	vm_enable_cap(self->vm, KVM_CAP_ARM_SYSTEM_SUSPEND, 0);
	test_mp_state(self->vcpu, KVM_MP_STATE_STOPPED);
	test_mp_state(self->vcpu, KVM_MP_STATE_SUSPENDED);
#elif defined(__riscv)
	test_mp_state(self->vcpu, KVM_MP_STATE_STOPPED);
#else
	SKIP(return, "No state known in which a vCPU can't run");
#endif

	/* The guest has neither been entered nor reset. */
	run_expect_sync(self->vcpu, 0);
}

TEST_F(user_exit, request_exits_stat)
{
	u64 before, after;
	int i;

	vcpu_arch_set_entry_point(self->vcpu, guest_sync);

	before = vcpu_get_stat(self->vcpu, request_exits);
	for (i = 0; i < 7; i++) {
		vcpu_user_exit(self->vcpu);
		run_expect_request(self->vcpu);
	}

	/* Neither another reason to return, nor a request alone, is counted. */
	vcpu_user_exit(self->vcpu);
	self->vcpu->run->immediate_exit = 1;
	run_expect_errno(self->vcpu, EINTR);
	self->vcpu->run->immediate_exit = 0;
	run_expect_sync(self->vcpu, 0);
	vcpu_user_exit(self->vcpu);

	after = vcpu_get_stat(self->vcpu, request_exits);
	TEST_ASSERT_EQ(after - before, 7);
}

FIXTURE(user_exit_vm) {
	struct kvm_vm *vm;
};

FIXTURE_SETUP(user_exit_vm)
{
}

FIXTURE_TEARDOWN(user_exit_vm)
{
	if (self->vm)
		kvm_vm_free(self->vm);
}

#define NR_VCPUS	8

static u64 guest_counters[NR_VCPUS];

static void guest_spin_indexed(u64 index)
{
	for (;;)
		WRITE_ONCE(guest_counters[index], READ_ONCE(guest_counters[index]) + 1);
}

/*
 * One ioctl on the VM makes every vCPU return, once: those that execute guest
 * code, those that are halted, and those that aren't in KVM_RUN.
 */
TEST_F_TIMEOUT(user_exit_vm, all_vcpus, SLOW_TIMEOUT)
{
	struct kvm_vcpu *vcpus[NR_VCPUS];
	struct run_thread rt[NR_VCPUS];
	struct kvm_vm *vm;
	u64 count, *counters;
	int i, round;

	vm = vm_create_with_vcpus(NR_VCPUS, guest_spin_indexed, vcpus);
	self->vm = vm;
	counters = addr_gva2hva(vm, (gva_t)guest_counters);
	for (i = 0; i < NR_VCPUS; i++) {
		if (i % 4 == 3)
			vcpu_arch_set_entry_point(vcpus[i], guest_halt);
		vcpu_args_set(vcpus[i], 1, i);
	}

	for (round = 0; round < 5; round++) {
		/* The last two aren't running when the request is made. */
		for (i = 0; i < NR_VCPUS - 2; i++) {
			count = READ_ONCE(counters[i]);
			run_thread_start(&rt[i], vcpus[i]);
			if (HAS_HALT && i % 4 == 3)
				run_thread_wait_asleep(&rt[i]);
			else if (i % 4 != 3)
				wait_for_progress(&counters[i], count);
		}

		vm_user_exit(vm);

		for (i = 0; i < NR_VCPUS - 2; i++)
			run_thread_expect_request(&rt[i]);
		for (; i < NR_VCPUS; i++)
			run_expect_request(vcpus[i]);
	}

	/* Nothing is left: vCPUs that run again don't return. */
	for (i = 0; i < NR_VCPUS; i++) {
		if (i % 4 == 3)
			continue;
		count = READ_ONCE(counters[i]);
		run_thread_start(&rt[i], vcpus[i]);
		wait_for_progress(&counters[i], count);
		vcpu_user_exit(vcpus[i]);
		run_thread_expect_request(&rt[i]);
	}
}

/* There's nothing to do, and nothing that a vCPU created later would inherit. */
TEST_F(user_exit_vm, no_vcpu)
{
	struct kvm_vcpu *vcpu;

	self->vm = vm_create(1);
	vm_user_exit(self->vm);

	vcpu = vm_vcpu_add(self->vm, 0, guest_sync);
	kvm_arch_vm_finalize_vcpus(self->vm);
	run_expect_sync(vcpu, 0);
}

struct creation {
	struct kvm_vm *vm;
	atomic_int stop;
	atomic_int started;
};

static void *create_and_run_fn(void *arg)
{
	struct creation *creation = arg;
	struct kvm_vcpu *vcpu;
	int ret;

	atomic_store(&creation->started, 1);
	vcpu = vm_vcpu_add(creation->vm, 0, guest_spin);
	kvm_arch_vm_finalize_vcpus(creation->vm);

	/* A relaxed load, to not add a barrier that KVM has to provide. */
	while (!atomic_load_explicit(&creation->stop, memory_order_relaxed)) {
		ret = __vcpu_run(vcpu);
		TEST_ASSERT(!ret, KVM_IOCTL_ERROR(KVM_RUN, ret));
		TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_REQUEST);
	}
	return NULL;
}

/*
 * A vCPU that is being created either gets the request, or its creator sees what
 * was stored before the request was made, and doesn't run it.
 */
TEST_F_TIMEOUT(user_exit_vm, vcpu_creation, SLOW_TIMEOUT)
{
	struct creation creation;
	pthread_t thread;
	int i, j;

	for (i = 0; i < 100; i++) {
		memset(&creation, 0, sizeof(creation));
		creation.vm = vm_create(1);

		kvm_pthread_create(&thread, NULL, create_and_run_fn, &creation);
		while (!atomic_load(&creation.started))
			sched_yield();
		for (j = 0; j < i * 1000; j++)
			barrier();

		atomic_store_explicit(&creation.stop, 1, memory_order_relaxed);
		vm_user_exit(creation.vm);
		kvm_pthread_join(thread, NULL);

		kvm_vm_free(creation.vm);
	}
}

struct storm {
	struct kvm_vcpu *vcpu;
	atomic_int stop;
};

static void *storm_fn(void *arg)
{
	struct storm *storm = arg;
	u32 i, n, delay = 0;

	/* Limited, so that a guest that never gets to run does so in the end. */
	for (n = 0; n < NR_STORM_KICKS && !atomic_load(&storm->stop); n++) {
		if (n % 2)
			vcpu_user_exit(storm->vcpu);
		else
			vm_user_exit(storm->vcpu->vm);

		/* Let the guest run now and then. */
		delay = (delay + 997) % 20000;
		for (i = 0; i < delay; i++)
			barrier();
	}
	return NULL;
}

/*
 * With requests coming in at any moment, the guest's state must stay intact,
 * every exit of the guest must be seen, and nothing must be left at the end.
 */
TEST_F_TIMEOUT(user_exit, storm, SLOW_TIMEOUT)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	struct storm storm = { .vcpu = vcpu };
	pthread_t threads[NR_STORM_THREADS];
	struct ucall uc;
	int i, ret;

	vcpu_arch_set_entry_point(vcpu, guest_sync);

	for (i = 0; i < NR_STORM_THREADS; i++)
		kvm_pthread_create(&threads[i], NULL, storm_fn, &storm);

	for (i = 0; i < NR_STORM_SYNCS; ) {
		ret = __vcpu_run(vcpu);
		TEST_ASSERT(!ret, KVM_IOCTL_ERROR(KVM_RUN, ret));
		if (vcpu->run->exit_reason == KVM_EXIT_REQUEST)
			continue;

		TEST_ASSERT_EQ(get_ucall(vcpu, &uc), UCALL_SYNC);
		TEST_ASSERT_EQ(uc.args[1], i);
		i++;
	}

	atomic_store(&storm.stop, 1);
	for (i = 0; i < NR_STORM_THREADS; i++)
		kvm_pthread_join(threads[i], NULL);

	vcpu_user_exit(vcpu);
	run_expect_request(vcpu);
	run_expect_sync(vcpu, NR_STORM_SYNCS);
}

struct kicks {
	struct kvm_vcpu *vcpu;
	/* Written by the kicker, before the kick. */
	atomic_uint wanted;
	/* Written by the vCPU's thread, after KVM_RUN. */
	atomic_uint seen;
};

static void *kicked_fn(void *arg)
{
	struct kicks *kicks = arg;
	u32 i;

	for (i = 1; i <= NR_KICKS; i++) {
		/*
		 * The guest never exits by itself, i.e. it's a kick that makes
		 * KVM_RUN return, and what was stored before must be visible.
		 * A relaxed load, to not add a barrier that KVM has to provide.
		 */
		run_expect_request(kicks->vcpu);
		TEST_ASSERT_EQ(atomic_load_explicit(&kicks->wanted, memory_order_relaxed), i);
		atomic_store(&kicks->seen, i);
	}
	return NULL;
}

/* One return for each kick, no kick lost, and the reason for it is visible. */
TEST_F_TIMEOUT(user_exit, no_lost_kick, SLOW_TIMEOUT)
{
	struct kicks kicks = { .vcpu = self->vcpu };
	pthread_t thread;
	u32 i, j;

	vcpu_arch_set_entry_point(self->vcpu, guest_spin);
	kvm_pthread_create(&thread, NULL, kicked_fn, &kicks);

	for (i = 1; i <= NR_KICKS; i++) {
		/* Kick at all stages of the thread's way into the guest. */
		for (j = 0; j < (i * 37) % 1000; j++)
			barrier();

		atomic_store_explicit(&kicks.wanted, i, memory_order_relaxed);
		vcpu_user_exit(self->vcpu);
		while (atomic_load(&kicks.seen) != i)
			sched_yield();
	}

	kvm_pthread_join(thread, NULL);
}

static void *kicked_on_exit_fn(void *arg)
{
	struct kicks *kicks = arg;
	u32 i;
	int ret;

	for (i = 1; i <= NR_KICKS; i++) {
		do {
			ret = __vcpu_run(kicks->vcpu);
			TEST_ASSERT(!ret, KVM_IOCTL_ERROR(KVM_RUN, ret));
			TEST_ASSERT(kicks->vcpu->run->exit_reason == KVM_EXIT_REQUEST ||
				    kicks->vcpu->run->exit_reason == KVM_EXIT_MMIO,
				    "Unexpected exit reason: %s",
				    exit_reason_str(kicks->vcpu->run->exit_reason));
		} while (atomic_load_explicit(&kicks->wanted, memory_order_relaxed) != i);
		atomic_store(&kicks->seen, i);
	}
	return NULL;
}

/*
 * A kick may arrive when KVM_RUN is about to return for another reason.  Either
 * that return shows what was stored before the kick, or there's another return.
 */
TEST_F_TIMEOUT(user_exit, no_lost_kick_on_exit, SLOW_TIMEOUT)
{
	struct kicks kicks = { .vcpu = self->vcpu };
	u32 *round = addr_gva2hva(self->vm, (gva_t)&guest_round);
	pthread_t thread;
	u32 i, j;

	if (!HAS_MMIO)
		SKIP(return, "No MMIO");

	vcpu_arch_set_entry_point(self->vcpu, guest_exit_and_spin);
	kvm_pthread_create(&thread, NULL, kicked_on_exit_fn, &kicks);

	for (i = 1; i <= NR_KICKS; i++) {
		WRITE_ONCE(*round, i);
		for (j = 0; j < (i * 37) % 5000; j++)
			barrier();

		atomic_store_explicit(&kicks.wanted, i, memory_order_relaxed);
		vcpu_user_exit(self->vcpu);
		while (atomic_load(&kicks.seen) != i)
			sched_yield();
	}

	kvm_pthread_join(thread, NULL);
}

int main(int argc, char *argv[])
{
	TEST_REQUIRE(kvm_has_cap(KVM_CAP_USER_EXIT));

	return test_harness_run(argc, argv);
}
