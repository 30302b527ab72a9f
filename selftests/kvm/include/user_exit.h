/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of KVM_USER_EXIT share: requests, KVM_RUNs whose outcome is
 * known, and threads that call KVM_RUN.
 */
#ifndef SELFTEST_KVM_USER_EXIT_H
#define SELFTEST_KVM_USER_EXIT_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "kvm_util.h"
#include "test_util.h"
#include "ucall_common.h"

static inline int __vcpu_user_exit(struct kvm_vcpu *vcpu, unsigned long flags)
{
	return __vcpu_ioctl(vcpu, KVM_USER_EXIT, (void *)flags);
}

static inline void vcpu_user_exit(struct kvm_vcpu *vcpu)
{
	vcpu_ioctl(vcpu, KVM_USER_EXIT, NULL);
}

static inline int __vm_user_exit(struct kvm_vm *vm, unsigned long flags)
{
	return __vm_ioctl(vm, KVM_USER_EXIT, (void *)flags);
}

static inline void vm_user_exit(struct kvm_vm *vm)
{
	vm_ioctl(vm, KVM_USER_EXIT, NULL);
}

/* KVM_RUN must return because of the request, and of nothing else. */
static inline void run_expect_request(struct kvm_vcpu *vcpu)
{
	int ret = __vcpu_run(vcpu);

	TEST_ASSERT(!ret, KVM_IOCTL_ERROR(KVM_RUN, ret));
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_REQUEST);
}

/* KVM_RUN must not return before the guest has called userspace. */
static inline void run_expect_sync(struct kvm_vcpu *vcpu, u64 val)
{
	struct ucall uc;
	int ret;

	ret = __vcpu_run(vcpu);
	TEST_ASSERT(!ret, KVM_IOCTL_ERROR(KVM_RUN, ret));
	TEST_ASSERT(vcpu->run->exit_reason != KVM_EXIT_REQUEST,
		    "A consumed request made KVM_RUN return again");
	TEST_ASSERT_EQ(get_ucall(vcpu, &uc), UCALL_SYNC);
	TEST_ASSERT_EQ(uc.args[1], val);
}

static inline void run_expect_errno(struct kvm_vcpu *vcpu, int err)
{
	int ret = __vcpu_run(vcpu);

	TEST_ASSERT(ret == -1 && errno == err,
		    "Expected errno %d, got ret = %d, errno = %d, exit reason %s",
		    err, ret, errno, exit_reason_str(vcpu->run->exit_reason));
}

struct run_thread {
	struct kvm_vcpu *vcpu;
	pthread_t thread;
	atomic_int tid;
	int ret;
	int err;
};

static void *run_thread_fn(void *arg)
{
	struct run_thread *rt = arg;

	atomic_store(&rt->tid, syscall(SYS_gettid));
	rt->ret = __vcpu_run(rt->vcpu);
	rt->err = errno;
	return NULL;
}

static inline void run_thread_start(struct run_thread *rt, struct kvm_vcpu *vcpu)
{
	memset(rt, 0, sizeof(*rt));
	rt->vcpu = vcpu;
	kvm_pthread_create(&rt->thread, NULL, run_thread_fn, rt);
}

static inline void run_thread_expect_request(struct run_thread *rt)
{
	kvm_pthread_join(rt->thread, NULL);
	TEST_ASSERT(!rt->ret, "KVM_RUN failed, ret = %d, errno = %d", rt->ret, rt->err);
	TEST_ASSERT_KVM_EXIT_REASON(rt->vcpu, KVM_EXIT_REQUEST);
}

/*
 * The thread has nothing to sleep on but the vCPU that doesn't run.  Returns
 * false if it doesn't sleep within ten seconds, e.g. because the guest executes
 * WFI without a trap.
 */
static inline bool run_thread_wait_asleep(struct run_thread *rt)
{
	time_t end = time(NULL) + 10;
	char path[64], state;
	FILE *f;

	while (!atomic_load(&rt->tid))
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", rt->tid);

	do {
		sched_yield();
		f = fopen(path, "r");
		TEST_ASSERT(f, "Can't open %s, the thread is gone", path);
		TEST_ASSERT_EQ(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
	} while (state != 'S' && time(NULL) < end);

	return state == 'S';
}

static inline void wait_for_progress(u64 *counter, u64 old)
{
	while (READ_ONCE(*counter) == old)
		sched_yield();
}

#endif /* SELFTEST_KVM_USER_EXIT_H */
