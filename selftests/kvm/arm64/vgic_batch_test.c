// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test KVM_DEV_ARM_VGIC_GRP_BATCH_REGS: exactly what one access after the other
 * would do, and where it stops; and that nobody waits for the caller's memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <linux/userfaultfd.h>

#include "kvm_test_harness.h"
#include "kvm_util.h"
#include "gic_v3_its.h"
#include "processor.h"
#include "test_util.h"
#include "ucall_common.h"
#include "vgic.h"
#include "vgic_batch.h"

#define MAX_VCPUS	512
#define NR_IRQS		256

/* Seconds, for a guest in an emulator with a debug kernel. */
#define SLOW_TIMEOUT	300

/* An affinity that no vCPU has. */
#define NO_MPIDR	(0x7f00ull << KVM_DEV_ARM_VGIC_V3_MPIDR_SHIFT)

#define POISON		0x5a5a5a5a5a5a5a5aull

struct gic_vm {
	struct kvm_vm *vm;
	struct kvm_vcpu *vcpus[MAX_VCPUS];
	int nr_vcpus;
	int fd;
};

static void guest_sync(void)
{
	for (;;)
		GUEST_SYNC(0);
}

static u64 guest_counter;

static void guest_spin(void)
{
	for (;;)
		WRITE_ONCE(guest_counter, READ_ONCE(guest_counter) + 1);
}

static void gic_vm_create_uninit(struct gic_vm *v, int nr_vcpus, void *guest_code)
{
	int i;

	TEST_REQUIRE(kvm_supports_vgic_v3());

	v->vm = vm_create(nr_vcpus);
	v->nr_vcpus = nr_vcpus;
	for (i = 0; i < nr_vcpus; i++)
		v->vcpus[i] = vm_vcpu_add(v->vm, i, guest_code);
	v->fd = __vgic_v3_setup(v->vm, nr_vcpus, NR_IRQS);
	TEST_ASSERT(v->fd >= 0, "no GIC: errno = %d", errno);
}

static void gic_vm_create(struct gic_vm *v, int nr_vcpus, void *guest_code)
{
	gic_vm_create_uninit(v, nr_vcpus, guest_code);
	__vgic_v3_init(v->fd);
}

static void gic_vm_free(struct gic_vm *v)
{
	close(v->fd);
	kvm_vm_free(v->vm);
}

static u64 redist_attr(struct gic_vm *v, int vcpu, u64 offset)
{
	return gic_attr_mpidr(v->vcpus[vcpu]) | offset;
}

static u64 get_single(struct gic_vm *v, u32 group, u64 attr)
{
	struct kvm_arm_vgic_batch_entry entry = { .group = group, .attr = attr };

	TEST_ASSERT(!__gic_single(v->fd, false, &entry), "group %u, 0x%lx: errno = %d",
		    group, (unsigned long)attr, errno);
	return entry.val;
}

static void set_single(struct gic_vm *v, u32 group, u64 attr, u64 val)
{
	struct kvm_arm_vgic_batch_entry entry = { .group = group, .attr = attr, .val = val };

	TEST_ASSERT(!__gic_single(v->fd, true, &entry), "group %u, 0x%lx: errno = %d",
		    group, (unsigned long)attr, errno);
}

static u64 random64(void)
{
	static u64 state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Give every register that can have many values one of them, in @way. */
static void randomize(struct gic_vm *v, struct gic_regs *regs,
		      void (*way)(int fd, bool set, struct gic_regs *regs))
{
	struct gic_regs new = {};
	u64 offset, val;
	u32 i;

	for (i = 0; i < regs->nr; i++) {
		struct kvm_arm_vgic_batch_entry *e = &regs->entries[i];

		offset = e->attr & KVM_DEV_ARM_VGIC_OFFSET_MASK;
		val = (u32)random64();

		switch (e->group) {
		case KVM_DEV_ARM_VGIC_GRP_DIST_REGS:
			if (offset == GICD_CTLR)
				val = GICD_CTLR_ENABLE_SS_G1;
			else if (offset >= GICD_IROUTER)
				val = offset & 4 ? 0 :
				      gic_attr_mpidr(v->vcpus[val % v->nr_vcpus]) >>
				      KVM_DEV_ARM_VGIC_V3_MPIDR_SHIFT;
			break;
		case KVM_DEV_ARM_VGIC_GRP_REDIST_REGS:
			/* Tables have to be in memory, save_and_restore() has them. */
			if (offset < SZ_64K)
				val = 0;
			break;
		case KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO:
			break;
		case KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS:
			switch (offset) {
			case 0xc230: /* ICC_PMR_EL1 */
				val &= 0xf8;
				break;
			default:
				val = e->val;
			}
			break;
		}
		gic_regs_add(&new, e->group, e->attr, val);
	}
	way(v->fd, true, &new);
	gic_regs_free(&new);
}

static void expect_equal(struct gic_regs *a, struct gic_regs *b, u32 step)
{
	u32 i;

	TEST_ASSERT_EQ(a->nr, b->nr);
	for (i = 0; i < a->nr; i += step)
		TEST_ASSERT(a->entries[i].val == b->entries[i].val,
			    "group %u, 0x%lx: 0x%lx and 0x%lx", a->entries[i].group,
			    (unsigned long)a->entries[i].attr,
			    (unsigned long)a->entries[i].val, (unsigned long)b->entries[i].val);
}

static void copy_regs(struct gic_regs *to, struct gic_regs *from)
{
	u32 i;

	for (i = 0; i < from->nr; i++)
		gic_regs_add(to, from->entries[i].group, from->entries[i].attr,
			     from->entries[i].val);
}

/* The registers of @regs, but with what other values leave behind. */
static void spoil(struct gic_regs *regs)
{
	u32 i;

	for (i = 0; i < regs->nr; i++) {
		regs->entries[i].val = POISON;
		regs->entries[i].error = -1;
	}
}

static void shuffle(struct gic_regs *regs)
{
	struct kvm_arm_vgic_batch_entry tmp;
	u32 i, j;

	for (i = regs->nr - 1; i; i--) {
		j = random64() % (i + 1);
		tmp = regs->entries[i];
		regs->entries[i] = regs->entries[j];
		regs->entries[j] = tmp;
	}
}

/* Each @step'th register, one by one. */
static void get_some(int fd, struct gic_regs *regs, u32 step)
{
	u32 i;

	for (i = 0; i < regs->nr; i += step)
		TEST_ASSERT(!__gic_single(fd, false, &regs->entries[i]),
			    "group %u, 0x%lx: errno = %d", regs->entries[i].group,
			    (unsigned long)regs->entries[i].attr, errno);
}

FIXTURE(vgic_batch) {
	struct gic_vm v;
	struct gic_vm other;
};

FIXTURE_SETUP(vgic_batch)
{
}

FIXTURE_TEARDOWN(vgic_batch)
{
	if (self->v.vm)
		gic_vm_free(&self->v);
	if (self->other.vm)
		gic_vm_free(&self->other);
}

/* Everything that is saved, got and set in both ways. */
static void equals_single(struct gic_vm *v, struct gic_vm *other, int nr_vcpus)
{
	struct gic_regs single = {}, batch = {}, shuffled = {}, restore = {};
	/* Single accesses take a time that is quadratic in the vCPUs. */
	u32 i, step = nr_vcpus > 160 ? 16 : 1;
	struct rlimit limit;

	if (nr_vcpus > kvm_check_cap(KVM_CAP_MAX_VCPUS)) {
		ksft_print_msg("no %d vCPUs\n", nr_vcpus);
		return;
	}

	/* For the vCPUs of two VMs. */
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = max(limit.rlim_cur, 5ul * nr_vcpus + 64);
	limit.rlim_max = max(limit.rlim_max, limit.rlim_cur);
	TEST_ASSERT(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit: errno = %d", errno);

	gic_vm_create(v, nr_vcpus, guest_sync);
	gic_v3_regs(&single, v->fd, v->vcpus, nr_vcpus, NR_IRQS);
	copy_regs(&batch, &single);
	copy_regs(&shuffled, &single);
	gic_batch(v->fd, false, &single);
	randomize(v, &single, step == 1 ? gic_single : gic_batch);

	/* Get. */
	get_some(v->fd, &single, step);
	spoil(&batch);
	gic_batch(v->fd, false, &batch);
	expect_equal(&single, &batch, step);
	for (i = 0; i < batch.nr; i++)
		TEST_ASSERT_EQ(batch.entries[i].error, 0);

	/* The order makes no difference. */
	shuffle(&shuffled);
	spoil(&shuffled);
	gic_batch(v->fd, false, &shuffled);
	gic_regs_free(&batch);
	copy_regs(&batch, &shuffled);
	spoil(&batch);
	get_some(v->fd, &batch, step);
	expect_equal(&batch, &shuffled, step);

	/* Set. */
	gic_vm_create(other, nr_vcpus, guest_sync);
	gic_batch(v->fd, false, &single);
	gic_v3_restore_regs(&restore, &single);
	gic_batch(other->fd, true, &restore);
	gic_regs_free(&batch);
	copy_regs(&batch, &single);
	spoil(&batch);
	get_some(other->fd, &batch, step);
	expect_equal(&single, &batch, step);

	gic_regs_free(&single);
	gic_regs_free(&batch);
	gic_regs_free(&shuffled);
	gic_regs_free(&restore);
}

TEST_F_TIMEOUT(vgic_batch, equals_single_1, SLOW_TIMEOUT)
{
	equals_single(&self->v, &self->other, 1);
}

TEST_F_TIMEOUT(vgic_batch, equals_single_8, SLOW_TIMEOUT)
{
	equals_single(&self->v, &self->other, 8);
}

TEST_F_TIMEOUT(vgic_batch, equals_single_64, SLOW_TIMEOUT)
{
	equals_single(&self->v, &self->other, 64);
}

TEST_F_TIMEOUT(vgic_batch, equals_single_160, SLOW_TIMEOUT)
{
	equals_single(&self->v, &self->other, 160);
}

TEST_F_TIMEOUT(vgic_batch, equals_single_512, SLOW_TIMEOUT)
{
	equals_single(&self->v, &self->other, 512);
}

/* A register that can hold any value, per vCPU. */
#define PRIO(n)		(SZ_64K + GICR_IPRIORITYR0 + (n) * 4)

static struct kvm_arm_vgic_batch_entry prio_entry(struct gic_vm *v, int vcpu, int n, u64 val)
{
	return (struct kvm_arm_vgic_batch_entry) {
		.group = KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
		.attr = redist_attr(v, vcpu, PRIO(n)),
		.val = val,
		.error = 1,
	};
}

TEST_F(vgic_batch, group)
{
	struct kvm_arm_vgic_batch batch = {};
	u64 attrs[] = { 1, 1ull << 32, ~0ull };
	u32 i;

	gic_vm_create(&self->v, 1, guest_sync);
	TEST_ASSERT_EQ(KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 10);
	TEST_ASSERT_EQ(sizeof(struct kvm_arm_vgic_batch), 16);
	TEST_ASSERT_EQ(sizeof(struct kvm_arm_vgic_batch_entry), 24);

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		TEST_ASSERT(__kvm_has_device_attr(self->v.fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS,
						  attrs[i]) && errno == ENXIO, "has");
		TEST_ASSERT(__kvm_device_attr_get(self->v.fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS,
						  attrs[i], &batch) && errno == ENXIO, "get");
		TEST_ASSERT(__kvm_device_attr_set(self->v.fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS,
						  attrs[i], &batch) && errno == ENXIO, "set");
	}
}

/* Expect @err of a call with @flags and @nr_in entries, and that none is completed. */
static void expect_rejected(struct gic_vm *v, bool set, u32 nr, u32 attr_flags, u32 flags,
			    void *entries, int err)
{
	struct kvm_arm_vgic_batch batch = {
		.nr = nr,
		.flags = flags,
		.entries = (u64)(unsigned long)entries,
	};
	struct kvm_device_attr attr = {
		.flags = attr_flags,
		.group = KVM_DEV_ARM_VGIC_GRP_BATCH_REGS,
		.addr = (u64)(unsigned long)&batch,
	};
	int ret = ioctl(v->fd, set ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR, &attr);

	TEST_ASSERT(ret == -1 && errno == err && !batch.nr,
		    "%s, nr %u, flags 0x%x: ret = %d, errno = %d, %u done", set ? "set" : "get",
		    nr, flags | attr_flags, ret, errno, batch.nr);
}

TEST_F_TIMEOUT(vgic_batch, numbers, SLOW_TIMEOUT)
{
	const u32 max = KVM_DEV_ARM_VGIC_BATCH_MAX;
	struct kvm_arm_vgic_batch_entry *entries, entry;
	u32 done, i, set;

	gic_vm_create(&self->v, 1, guest_sync);
	entries = calloc(max + 1, sizeof(*entries));
	for (i = 0; i <= max; i++)
		entries[i] = prio_entry(&self->v, 0, 2, 0);

	for (set = 0; set < 2; set++) {
		/* As after a call that failed, if nr isn't set again. */
		expect_rejected(&self->v, set, 0, 0, 0, entries, EINVAL);
		expect_rejected(&self->v, set, max + 1, 0, 0, entries, E2BIG);
		expect_rejected(&self->v, set, 0xffffffff, 0, 0, entries, E2BIG);
		expect_rejected(&self->v, set, 0x80000001, 0, 0, entries, E2BIG);
		for (i = 0; i < 32; i++) {
			expect_rejected(&self->v, set, 1, 0, 1u << i, entries, EINVAL);
			expect_rejected(&self->v, set, 1, 1u << i, 0, entries, EINVAL);
		}
		TEST_ASSERT(entries[0].error == 1, "a rejected call wrote to an entry");
	}

	for (i = 0; i < max; i++)
		entries[i].val = i & 0xf8f8f8f8;
	TEST_ASSERT(!__gic_batch(self->v.fd, true, entries, max, &done) && done == max,
		    "set of %u: errno = %d, %u done", max, errno, done);
	TEST_ASSERT_EQ(get_single(&self->v, entries[0].group, entries[0].attr),
		       (max - 1) & 0xf8f8f8f8);
	TEST_ASSERT(!__gic_batch(self->v.fd, false, entries, max, &done) && done == max,
		    "get of %u: errno = %d, %u done", max, errno, done);
	entry = prio_entry(&self->v, 0, 2, (max - 1) & 0xf8f8f8f8);
	entry.error = 0;
	for (i = 0; i < max; i++)
		TEST_ASSERT(!memcmp(&entries[i], &entry, sizeof(entry)), "entry %u", i);
	entry.error = 1;
	TEST_ASSERT(entries[max].error == 1, "wrote behind the last entry");
	free(entries);
}

/* The third of four entries is @bad: the first two are completed, the last isn't touched. */
static void expect_stop(struct gic_vm *v, bool set, struct kvm_arm_vgic_batch_entry bad, int err)
{
	struct kvm_arm_vgic_batch_entry entries[4], expected[4];
	u32 done, i;
	int ret;

	for (i = 0; i < 4; i++)
		set_single(v, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, redist_attr(v, 0, PRIO(i)),
			   0x10101010 * (i + 1));

	for (i = 0; i < 4; i++)
		entries[i] = prio_entry(v, 0, i, set ? 0x80808080 : POISON);
	bad.error = 1;
	entries[2] = bad;
	memcpy(expected, entries, sizeof(entries));
	for (i = 0; i < 2; i++) {
		expected[i].error = 0;
		if (!set)
			expected[i].val = 0x10101010 * (i + 1);
	}
	expected[2].error = -err;

	ret = __gic_batch(v->fd, set, entries, 4, &done);
	TEST_ASSERT(ret == -1 && errno == err && done == 2,
		    "%s: group %u, attr 0x%lx, val 0x%lx: expected errno %d after 2, got ret = %d, errno = %d after %u",
		    set ? "set" : "get", bad.group, (unsigned long)bad.attr,
		    (unsigned long)bad.val, err, ret, errno, done);
	TEST_ASSERT(!memcmp(entries, expected, sizeof(entries)),
		    "%s: group %u, attr 0x%lx: entries are not as they should be",
		    set ? "set" : "get", bad.group, (unsigned long)bad.attr);

	for (i = 0; i < 4; i++)
		TEST_ASSERT_EQ(get_single(v, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
					  redist_attr(v, 0, PRIO(i))),
			       set && i < 2 ? 0x80808080 : 0x10101010 * (i + 1));
}

TEST_F(vgic_batch, bad_entries)
{
	u32 groups[] = {
		KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_DEV_ARM_VGIC_GRP_CPU_REGS,
		KVM_DEV_ARM_VGIC_GRP_NR_IRQS, KVM_DEV_ARM_VGIC_GRP_CTRL,
		KVM_DEV_ARM_VGIC_GRP_ITS_REGS, KVM_DEV_ARM_VGIC_GRP_MAINT_IRQ,
		KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 11, 0xffffffff,
	};
	struct gic_vm *v = &self->v;
	struct {
		u32 group;
		u64 attr;
		int err;
	} bad[] = {
		{ KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, NO_MPIDR | PRIO(2), EINVAL },
		{ KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
		  NO_MPIDR | gic_attr_sysreg(SYS_ICC_PMR_EL1), EINVAL },
		{ KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO, NO_MPIDR | 32, EINVAL },
		/* Not a multiple of 32, and another kind of information. */
		{ KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO, 33, EINVAL },
		{ KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO,
		  1 << KVM_DEV_ARM_VGIC_LINE_LEVEL_INFO_SHIFT | 32, EINVAL },
		{ KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS, gic_attr_sysreg(SYS_SCTLR_EL1), ENOENT },
		/* Of a guest that has EL2, which this one hasn't. */
		{ KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS, gic_attr_sysreg(SYS_ICH_HCR_EL2), ENOENT },
	};
	struct kvm_arm_vgic_batch_entry entry;
	u32 i, set;

	gic_vm_create(v, 4, guest_sync);

	for (set = 0; set < 2; set++) {
		for (i = 0; i < ARRAY_SIZE(groups); i++) {
			entry = prio_entry(v, 0, 2, 0);
			entry.group = groups[i];
			expect_stop(v, set, entry, ENXIO);
		}
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			entry = (struct kvm_arm_vgic_batch_entry) {
				.group = bad[i].group,
				.attr = bad[i].attr,
			};
			/* As a single access. */
			TEST_ASSERT(__gic_single(v->fd, set, &entry) && errno == bad[i].err,
				    "entry %u: errno = %d", i, errno);
			expect_stop(v, set, entry, bad[i].err);
		}
	}

	/* All registers of the [re]distributor and line levels have 32 bits. */
	for (i = 32; i < 64; i++) {
		expect_stop(v, true, prio_entry(v, 0, 2, 1ull << i), EINVAL);
		entry = (struct kvm_arm_vgic_batch_entry) {
			.group = KVM_DEV_ARM_VGIC_GRP_DIST_REGS,
			.attr = GICD_IPRIORITYR + 32,
			.val = 1ull << i,
		};
		expect_stop(v, true, entry, EINVAL);
		entry.group = KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO;
		entry.attr = 32;
		expect_stop(v, true, entry, EINVAL);
	}

	/* A value that the register refuses. */
	entry.group = KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS;
	entry.attr = gic_attr_mpidr(v->vcpus[1]) | gic_attr_sysreg(SYS_ICC_SRE_EL1);
	entry.val = 0;
	expect_stop(v, true, entry, EINVAL);
}

/* System registers have 64 bits, and the upper half arrives. */
TEST_F(vgic_batch, sysreg_64bit)
{
	struct kvm_arm_vgic_batch_entry entry = {
		.group = KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
		.attr = gic_attr_sysreg(SYS_ICC_SRE_EL1),
		.val = 1ull << 63 | 7,
	};
	u32 done;

	gic_vm_create(&self->v, 1, guest_sync);
	entry.attr |= gic_attr_mpidr(self->v.vcpus[0]);
	TEST_ASSERT_EQ(__gic_batch(self->v.fd, true, &entry, 1, &done), 0);
	TEST_ASSERT_EQ(__gic_batch(self->v.fd, false, &entry, 1, &done), 0);
	TEST_ASSERT_EQ(entry.val, get_single(&self->v, entry.group, entry.attr));
}

TEST_F(vgic_batch, before_init)
{
	struct gic_vm *v = &self->v;
	struct kvm_arm_vgic_batch_entry entries[3];
	u32 done;
	int ret;

	gic_vm_create_uninit(v, 2, guest_sync);

	entries[0] = (struct kvm_arm_vgic_batch_entry) {
		.group = KVM_DEV_ARM_VGIC_GRP_DIST_REGS, .attr = GICD_IIDR, .error = 1,
	};
	entries[1] = prio_entry(v, 0, 0, POISON);
	entries[2] = prio_entry(v, 0, 1, POISON);

	ret = __gic_batch(v->fd, false, entries, 3, &done);
	TEST_ASSERT(ret == -1 && errno == EBUSY && done == 1, "errno = %d after %u", errno, done);
	TEST_ASSERT_EQ(entries[0].error, 0);
	TEST_ASSERT_EQ(entries[0].val, get_single(v, entries[0].group, GICD_IIDR));
	TEST_ASSERT_EQ(entries[1].error, -EBUSY);
	TEST_ASSERT_EQ(entries[2].error, 1);

	/* It can be set, too. */
	TEST_ASSERT(!__gic_batch(v->fd, true, entries, 1, &done) && done == 1, "set of IIDR");

	__vgic_v3_init(v->fd);
	TEST_ASSERT_EQ(__gic_batch(v->fd, false, entries, 3, &done), 0);
}

struct spin_thread {
	struct kvm_vcpu *vcpu;
	pthread_t thread;
	atomic_bool stop;
};

static void nop_handler(int sig)
{
}

static void *spin_thread_main(void *arg)
{
	struct spin_thread *st = arg;

	while (!st->stop)
		TEST_ASSERT(!__vcpu_run(st->vcpu) || errno == EINTR, "errno = %d", errno);
	return NULL;
}

static void spin_thread_start(struct spin_thread *st, struct gic_vm *v, int vcpu)
{
	u64 *counter = addr_gva2hva(v->vm, (gva_t)&guest_counter);
	struct sigaction sa = { .sa_handler = nop_handler };
	u64 start = READ_ONCE(*counter);

	sigaction(SIGUSR1, &sa, NULL);
	st->vcpu = v->vcpus[vcpu];
	st->stop = false;
	TEST_ASSERT_EQ(pthread_create(&st->thread, NULL, spin_thread_main, st), 0);
	while (READ_ONCE(*counter) == start)
		usleep(100);
}

static void spin_thread_stop(struct spin_thread *st)
{
	st->stop = true;
	st->vcpu->run->immediate_exit = 1;
	pthread_kill(st->thread, SIGUSR1);
	TEST_ASSERT_EQ(pthread_join(st->thread, NULL), 0);
	st->vcpu->run->immediate_exit = 0;
}

/* A vCPU that runs is in the way, whatever flags userspace sets. */
TEST_F_TIMEOUT(vgic_batch, running, SLOW_TIMEOUT)
{
	struct gic_vm *v = &self->v;
	struct kvm_arm_vgic_batch_entry entries[2], expected[2];
	struct kvm_device_attr attr = {};
	struct spin_thread st;
	u32 done, set, val, i;

	gic_vm_create(v, 2, guest_spin);
	entries[0] = prio_entry(v, 0, 0, 0x80808080);
	entries[1] = prio_entry(v, 1, 0, 0x80808080);
	memcpy(expected, entries, sizeof(entries));

	spin_thread_start(&st, v, 1);
	for (set = 0; set < 2; set++) {
		int ret = __gic_batch(v->fd, set, entries, 2, &done);

		TEST_ASSERT(ret == -1 && errno == EBUSY && !done, "ret = %d, errno = %d after %u",
			    ret, errno, done);
		TEST_ASSERT(!memcmp(entries, expected, sizeof(entries)), "entries were touched");

		for (i = 0; i < 32; i++) {
			attr.flags = 1u << i;
			attr.group = KVM_DEV_ARM_VGIC_GRP_REDIST_REGS;
			attr.attr = entries[0].attr;
			attr.addr = (u64)(unsigned long)&val;
			ret = ioctl(v->fd, set ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR, &attr);
			TEST_ASSERT(ret == -1 && errno == EBUSY, "flags 0x%x: ret = %d, errno = %d",
				    attr.flags, ret, errno);
		}
		attr.flags = 12;
		ret = ioctl(v->fd, set ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR, &attr);
		TEST_ASSERT(ret == -1 && errno == EBUSY, "flags 12: ret = %d, errno = %d",
			    ret, errno);
	}
	spin_thread_stop(&st);

	/* Nobody is left locked, or locked out. */
	TEST_ASSERT(!__gic_batch(v->fd, true, entries, 2, &done) && done == 2,
		    "errno = %d after %u", errno, done);
	TEST_ASSERT_EQ(get_single(v, entries[1].group, entries[1].attr), 0x80808080);
	spin_thread_start(&st, v, 0);
	spin_thread_stop(&st);
}

static void *map_pages(int nr)
{
	void *mem = mmap(NULL, nr * getpagesize(), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT(mem != MAP_FAILED, "mmap: errno = %d", errno);
	return mem;
}

static void expect_efault(struct gic_vm *v, bool set, void *entries, u32 nr)
{
	u64 before[2] = {
		get_single(v, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, redist_attr(v, 0, PRIO(0))),
		get_single(v, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, redist_attr(v, 1, PRIO(0))),
	};
	u32 done;
	int ret = __gic_batch(v->fd, set, entries, nr, &done);

	TEST_ASSERT(ret == -1 && errno == EFAULT && !done, "%s: ret = %d, errno = %d after %u",
		    set ? "set" : "get", ret, errno, done);
	TEST_ASSERT_EQ(get_single(v, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, redist_attr(v, 0, PRIO(0))),
		       before[0]);
	TEST_ASSERT_EQ(get_single(v, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, redist_attr(v, 1, PRIO(0))),
		       before[1]);
}

static void expect_bad_header(struct gic_vm *v, bool set, void *header)
{
	int ret;

	if (set)
		ret = __kvm_device_attr_set(v->fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0, header);
	else
		ret = __kvm_device_attr_get(v->fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0, header);
	TEST_ASSERT(ret == -1 && errno == EFAULT, "ret = %d, errno = %d", ret, errno);
}

/* Memory that can't be read and written: an error, and no register is changed. */
TEST_F(vgic_batch, bad_memory)
{
	struct kvm_arm_vgic_batch_entry *entries;
	struct gic_vm *v = &self->v;
	struct kvm_arm_vgic_batch *header;
	size_t page = getpagesize();
	u8 *mem = map_pages(2);
	u32 set, last;

	gic_vm_create(v, 2, guest_sync);

	for (set = 0; set < 2; set++) {
		expect_efault(v, set, NULL, 1);
		expect_efault(v, set, (void *)-4096ul, 2);
		expect_efault(v, set, (void *)0xffff800080000000ul, 2);

		/* The second entry is in the page that goes away, all of it or its last byte. */
		for (last = 0; last <= 23; last += 23) {
			memset(mem, 0, 2 * page);
			entries = (void *)(mem + page - 24 - last);
			entries[0] = prio_entry(v, 0, 0, 0x40404040);
			entries[1] = prio_entry(v, 1, 0, 0x40404040);
			mprotect(mem + page, page, PROT_NONE);
			expect_efault(v, set, entries, 2);
			mprotect(mem + page, page, PROT_READ);
			expect_efault(v, set, entries, 2);
			mprotect(mem + page, page, PROT_READ | PROT_WRITE);
		}

		/* Only to be read: userspace couldn't be told. */
		entries = (void *)mem;
		entries[0] = prio_entry(v, 0, 0, 0x40404040);
		entries[1] = prio_entry(v, 1, 0, 0x40404040);
		mprotect(mem, page, PROT_READ);
		expect_efault(v, set, entries, 2);
		TEST_ASSERT_EQ(entries[0].error, 1);
		mprotect(mem, page, PROT_READ | PROT_WRITE);

		/* The header. */
		header = (void *)(mem + page);
		header->nr = 2;
		header->entries = (u64)(unsigned long)entries;
		mprotect(header, page, PROT_READ);
		expect_bad_header(v, set, header);
		TEST_ASSERT_EQ(entries[0].error, 1);
		mprotect(header, page, PROT_NONE);
		expect_bad_header(v, set, header);
		mprotect(header, page, PROT_READ | PROT_WRITE);
		TEST_ASSERT_EQ(get_single(v, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
					  redist_attr(v, 0, PRIO(0))), 0);
	}
	munmap(mem, 2 * page);
}

/* Entries needn't be aligned. */
TEST_F(vgic_batch, unaligned)
{
	u8 mem[3 * sizeof(struct kvm_arm_vgic_batch_entry)];
	struct kvm_arm_vgic_batch_entry entries[2];
	struct gic_vm *v = &self->v;
	u32 done;

	gic_vm_create(v, 2, guest_sync);
	entries[0] = prio_entry(v, 0, 0, 0x20202020);
	entries[1] = prio_entry(v, 1, 0, 0x30303030);
	memcpy(mem + 1, entries, sizeof(entries));
	TEST_ASSERT(!__gic_batch(v->fd, true, (void *)(mem + 1), 2, &done) && done == 2,
		    "set: errno = %d", errno);
	TEST_ASSERT_EQ(get_single(v, entries[1].group, entries[1].attr), 0x30303030);
	TEST_ASSERT(!__gic_batch(v->fd, false, (void *)(mem + 1), 2, &done) && done == 2,
		    "get: errno = %d", errno);
	memcpy(entries, mem + 1, sizeof(entries));
	TEST_ASSERT_EQ(entries[0].val, 0x20202020);
	TEST_ASSERT_EQ(entries[1].error, 0);
}

/* Each vCPU's GICR_TYPER says which one it is. */
static void expect_typers(struct gic_vm *v)
{
	struct gic_regs regs = {};
	u32 i;

	for (i = 0; i < v->nr_vcpus; i++) {
		gic_regs_add(&regs, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
			     redist_attr(v, i, GICR_TYPER), 0);
		gic_regs_add(&regs, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
			     redist_attr(v, i, GICR_TYPER + 4), 0);
	}
	gic_batch(v->fd, false, &regs);
	for (i = 0; i < v->nr_vcpus; i++) {
		TEST_ASSERT_EQ((regs.entries[2 * i].val >> 8) & 0xffff, i);
		TEST_ASSERT_EQ(regs.entries[2 * i + 1].val,
			       (redist_attr(v, i, 0) >> 32) & 0xffffff);
	}
	gic_regs_free(&regs);
}

static void set_mpidr(struct kvm_vcpu *vcpu, u64 val)
{
	vcpu_set_reg(vcpu, KVM_ARM64_SYS_REG(SYS_MPIDR_EL1), val);
}

/* MPIDRs that change between two calls, before and after the first KVM_RUN. */
TEST_F(vgic_batch, mpidrs)
{
	struct kvm_arm_vgic_batch_entry entry;
	struct gic_vm *v = &self->v;
	u64 old[4];
	u32 i, run, done;

	gic_vm_create(v, 4, guest_sync);
	for (i = 0; i < 4; i++)
		old[i] = vcpu_get_reg(v->vcpus[i], KVM_ARM64_SYS_REG(SYS_MPIDR_EL1));

	for (run = 0; run < 2; run++) {
		expect_typers(v);

		/* Swapped, so each is where another one was. */
		for (i = 0; i < 4; i++)
			set_mpidr(v->vcpus[i], old[3 - i]);
		expect_typers(v);

		/* Far away, with holes. */
		for (i = 0; i < 4; i++)
			set_mpidr(v->vcpus[i], 1ull << 31 | (u64)(4 - i) << 32 | i << 16 | 200);
		expect_typers(v);
		entry = prio_entry(v, 0, 0, 0);
		entry.attr = NO_MPIDR | PRIO(0);
		TEST_ASSERT(__gic_batch(v->fd, false, &entry, 1, &done) && errno == EINVAL,
			    "errno = %d", errno);

		for (i = 0; i < 4; i++)
			set_mpidr(v->vcpus[i], old[i]);
		expect_typers(v);

		vcpu_run(v->vcpus[0]);
	}
}

/* With the same MPIDR twice, both ways find the same vCPU, whatever was found before. */
TEST_F(vgic_batch, duplicate_mpidrs)
{
	struct gic_vm *v = &self->v;
	struct gic_regs regs = {};
	u64 old[3], single, run;
	int i;

	gic_vm_create(v, 3, guest_sync);
	for (i = 0; i < 3; i++)
		old[i] = vcpu_get_reg(v->vcpus[i], KVM_ARM64_SYS_REG(SYS_MPIDR_EL1));
	for (i = 1; i >= 0; i--)
		gic_regs_add(&regs, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
			     redist_attr(v, i, GICR_TYPER), 0);

	for (run = 0; run < 2; run++) {
		set_mpidr(v->vcpus[2], old[0]);
		single = get_single(v, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, regs.entries[1].attr);
		gic_batch(v->fd, false, &regs);
		TEST_ASSERT_EQ(regs.entries[1].val, single);
		set_mpidr(v->vcpus[2], old[2]);
		vcpu_run(v->vcpus[0]);
	}
	gic_regs_free(&regs);
}

struct create_thread {
	struct gic_vm *v;
	atomic_bool stop;
	u64 calls;
};

static void *create_thread_main(void *arg)
{
	struct create_thread *ct = arg;
	struct kvm_arm_vgic_batch_entry entry = {
		.group = KVM_DEV_ARM_VGIC_GRP_DIST_REGS,
		.attr = GICD_IIDR,
	};
	u32 done;

	while (!ct->stop) {
		/* A new vCPU may be in an ioctl of its own. */
		if (!__gic_batch(ct->v->fd, false, &entry, 1, &done))
			ct->calls++;
		else
			TEST_ASSERT_EQ(errno, EBUSY);
	}
	return NULL;
}

/* vCPUs that are created while another thread is in the call. */
TEST_F(vgic_batch, vcpu_creation)
{
	struct gic_vm *v = &self->v;
	struct create_thread ct = { .v = v };
	pthread_t thread;
	u32 nr_irqs = NR_IRQS;
	int i;

	TEST_REQUIRE(kvm_supports_vgic_v3());
	v->vm = vm_create(32);
	v->vcpus[0] = vm_vcpu_add(v->vm, 0, guest_sync);
	v->fd = __vgic_v3_setup(v->vm, 32, nr_irqs);

	TEST_ASSERT_EQ(pthread_create(&thread, NULL, create_thread_main, &ct), 0);
	for (i = 1; i < 32; i++)
		v->vcpus[i] = vm_vcpu_add(v->vm, i, guest_sync);
	ct.stop = true;
	TEST_ASSERT_EQ(pthread_join(thread, NULL), 0);
	TEST_ASSERT(ct.calls, "no call succeeded");
	v->nr_vcpus = 32;
	__vgic_v3_init(v->fd);
	expect_typers(v);
}

/* A thread whose call waits for its memory. */
struct fault_thread {
	pthread_t thread;
	int fd;
	u32 group;
	bool set;
	void *addr;
	u64 attr;
	int ret;
	atomic_bool ended;
};

static void *fault_thread_main(void *arg)
{
	struct fault_thread *ft = arg;

	if (ft->set)
		ft->ret = __kvm_device_attr_set(ft->fd, ft->group, ft->attr, ft->addr);
	else
		ft->ret = __kvm_device_attr_get(ft->fd, ft->group, ft->attr, ft->addr);
	ft->ended = true;
	return NULL;
}

static int uffd_open(void *mem, size_t size, u64 mode)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = mode == UFFDIO_REGISTER_MODE_WP ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0,
	};
	struct uffdio_register reg = {
		.range = { .start = (u64)(unsigned long)mem, .len = size },
		.mode = mode,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	TEST_ASSERT(uffd >= 0, "userfaultfd: errno = %d", errno);
	TEST_ASSERT(!ioctl(uffd, UFFDIO_API, &api), "UFFDIO_API: errno = %d", errno);
	TEST_ASSERT(!ioctl(uffd, UFFDIO_REGISTER, &reg), "UFFDIO_REGISTER: errno = %d", errno);
	return uffd;
}

/* What others do with the VM while a thread is in a fault.  None may wait for it. */
static void use_vm(struct gic_vm *v)
{
	struct kvm_arm_vgic_batch_entry entry = prio_entry(v, 0, 1, 0x18181818);
	struct kvm_enable_cap cap = { .cap = KVM_CAP_ARM_NISV_TO_USER };
	u32 done;

	/* kvm->lock, all vCPUs, config_lock */
	TEST_ASSERT(!__gic_batch(v->fd, true, &entry, 1, &done), "errno = %d", errno);
	TEST_ASSERT_EQ(get_single(v, entry.group, entry.attr), entry.val);
	vm_ioctl(v->vm, KVM_ENABLE_CAP, &cap);
	TEST_ASSERT(__vm_ioctl(v->vm, KVM_CREATE_VCPU, (void *)0ul) == -1, "vCPU 0 twice");

	/* Each vCPU, and interrupts */
	vcpu_run(v->vcpus[0]);
	vcpu_run(v->vcpus[1]);
	kvm_arm_irq_line(v->vm, 40, 1);
	kvm_arm_irq_line(v->vm, 40, 0);
	vcpu_get_reg(v->vcpus[1], KVM_ARM64_SYS_REG(SYS_MPIDR_EL1));
}

/*
 * @ft's call touches @mem, a page that userfaultfd waits for.  Hold the fault for
 * @rounds of what others do, then let it continue.
 */
static void hold_fault(struct gic_vm *v, struct fault_thread *ft, int uffd, void *mem,
		       void *content, int rounds)
{
	struct pollfd pfd = { .fd = uffd, .events = POLLIN };
	struct uffd_msg msg;
	int i;

	TEST_ASSERT_EQ(pthread_create(&ft->thread, NULL, fault_thread_main, ft), 0);
	TEST_ASSERT_EQ(poll(&pfd, 1, -1), 1);
	TEST_ASSERT_EQ(read(uffd, &msg, sizeof(msg)), sizeof(msg));
	TEST_ASSERT_EQ(msg.event, UFFD_EVENT_PAGEFAULT);
	TEST_ASSERT_EQ(msg.arg.pagefault.address & ~(getpagesize() - 1ull),
		       (u64)(unsigned long)mem);

	for (i = 0; i < rounds; i++) {
		use_vm(v);
		usleep(100000);
	}
	TEST_ASSERT(!ft->ended, "the call didn't wait");

	if (content) {
		struct uffdio_copy copy = {
			.dst = (u64)(unsigned long)mem,
			.src = (u64)(unsigned long)content,
			.len = getpagesize(),
		};

		TEST_ASSERT(!ioctl(uffd, UFFDIO_COPY, &copy), "UFFDIO_COPY: errno = %d", errno);
	} else {
		struct uffdio_writeprotect wp = {
			.range = { .start = (u64)(unsigned long)mem, .len = getpagesize() },
		};

		TEST_ASSERT(!ioctl(uffd, UFFDIO_WRITEPROTECT, &wp), "errno = %d", errno);
	}
	TEST_ASSERT_EQ(pthread_join(ft->thread, NULL), 0);
}

#define HOLD_ROUNDS	20	/* two seconds, and what they take */

/* The memory with the entries, to be read. */
TEST_F_TIMEOUT(vgic_batch, fault_on_entries, SLOW_TIMEOUT)
{
	struct kvm_arm_vgic_batch_entry *entries;
	struct kvm_arm_vgic_batch batch = {};
	struct gic_vm *v = &self->v;
	void *content, *mem;
	struct fault_thread ft;
	int uffd, set;

	gic_vm_create(v, 2, guest_sync);
	content = map_pages(1);
	entries = content;
	entries[0] = prio_entry(v, 0, 0, 0x28282828);
	entries[1] = prio_entry(v, 1, 0, 0x38383838);

	for (set = 1; set >= 0; set--) {
		mem = map_pages(1);
		uffd = uffd_open(mem, getpagesize(), UFFDIO_REGISTER_MODE_MISSING);
		batch.nr = 2;
		batch.entries = (u64)(unsigned long)mem;
		ft = (struct fault_thread) {
			.fd = v->fd, .group = KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, .set = set,
			.addr = &batch,
		};
		hold_fault(v, &ft, uffd, mem, content, HOLD_ROUNDS);
		TEST_ASSERT(!ft.ret && batch.nr == 2, "ret = %d, %u done", ft.ret, batch.nr);
		close(uffd);
		munmap(mem, getpagesize());
	}
	TEST_ASSERT_EQ(get_single(v, entries[1].group, entries[1].attr), 0x38383838);
}

/* The memory with the entries, to be written. */
TEST_F_TIMEOUT(vgic_batch, fault_on_results, SLOW_TIMEOUT)
{
	struct kvm_arm_vgic_batch_entry *entries;
	struct kvm_arm_vgic_batch batch = {};
	struct gic_vm *v = &self->v;
	struct uffdio_writeprotect wp = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	struct fault_thread ft;
	int uffd, set;

	gic_vm_create(v, 2, guest_sync);
	for (set = 1; set >= 0; set--) {
		entries = map_pages(1);
		entries[0] = prio_entry(v, 0, 0, 0x28282828);
		entries[1] = prio_entry(v, 1, 0, 0x38383838);
		uffd = uffd_open(entries, getpagesize(), UFFDIO_REGISTER_MODE_WP);
		wp.range.start = (u64)(unsigned long)entries;
		wp.range.len = getpagesize();
		TEST_ASSERT(!ioctl(uffd, UFFDIO_WRITEPROTECT, &wp), "errno = %d", errno);
		batch.nr = 2;
		batch.entries = (u64)(unsigned long)entries;
		ft = (struct fault_thread) {
			.fd = v->fd, .group = KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, .set = set,
			.addr = &batch,
		};
		hold_fault(v, &ft, uffd, entries, NULL, HOLD_ROUNDS);
		TEST_ASSERT(!ft.ret && batch.nr == 2, "ret = %d, %u done", ft.ret, batch.nr);
		TEST_ASSERT_EQ(entries[1].val, 0x38383838);
		close(uffd);
		munmap(entries, getpagesize());
	}
}

/* The memory of a single system register. */
TEST_F_TIMEOUT(vgic_batch, fault_on_sysreg, SLOW_TIMEOUT)
{
	struct gic_vm *v = &self->v;
	struct fault_thread ft;
	u64 *content, *mem;
	int uffd, set;

	gic_vm_create(v, 2, guest_sync);
	content = map_pages(1);
	*content = 0xf0;
	for (set = 1; set >= 0; set--) {
		mem = map_pages(1);
		uffd = uffd_open(mem, getpagesize(), UFFDIO_REGISTER_MODE_MISSING);
		ft = (struct fault_thread) {
			.fd = v->fd, .group = KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS, .set = set,
			.attr = gic_attr_mpidr(v->vcpus[0]) | gic_attr_sysreg(SYS_ICC_PMR_EL1),
			.addr = mem,
		};
		hold_fault(v, &ft, uffd, mem, content, HOLD_ROUNDS);
		TEST_ASSERT_EQ(ft.ret, 0);
		TEST_ASSERT_EQ(*mem, 0xf0);
		close(uffd);
		munmap(mem, getpagesize());
	}
}

/*
 * A guest with interrupts in every state: the first VM is saved when
 *  - ACTIVE_SPI is active: acknowledged, and not completed
 *  - EDGE_SPI, LEVEL_SPI, PPI, SGI and LPI are pending on vCPU 0, with a priority
 *    that the active one masks, and REMOTE_SGI on vCPU 1
 *  - MASKED_SPI is pending and disabled
 */
#define EDGE_SPI	40
#define LEVEL_SPI	41
#define ACTIVE_SPI	42
#define MASKED_SPI	43
#define PPI		20
#define SGI		3
#define REMOTE_SGI	5
#define LPI		8192

#define LPI_PRIO	0xa0

/* The ITS' memory is in a slot of its own, one table behind the other. */
#define TABLES_SLOT	1
#define NR_TABLES	7
#define TABLE(n)	(tables + (n) * SZ_64K)
#define DEVICE_TABLE	TABLE(0)
#define COLL_TABLE	TABLE(1)
#define CMDQ		TABLE(2)
#define ITT		TABLE(3)
#define PROP_TABLE	TABLE(4)
#define PEND_TABLE(cpu)	TABLE(5 + (cpu))

static gpa_t tables;
static u64 stage[2];
static u64 irq_count[2][LPI + 1];

static void guest_irq_handler(struct ex_regs *regs)
{
	unsigned int intid = gic_get_and_ack_irq();
	u32 cpu = guest_get_vcpuid();

	if (intid == IAR_SPURIOUS || intid > LPI)
		return;

	WRITE_ONCE(irq_count[cpu][intid], irq_count[cpu][intid] + 1);

	/* The line stays high. */
	if (intid == LEVEL_SPI || intid == PPI)
		gic_irq_disable(intid);
	gic_set_eoi(intid);
}

static void guest_stage(int cpu, u64 val)
{
	WRITE_ONCE(stage[cpu], val);
	GUEST_SYNC(val);
}

static void guest_wait(int cpu, unsigned int intid)
{
	while (!READ_ONCE(irq_count[cpu][intid]))
		cpu_relax();
}

static void guest_vcpu0(void)
{
	static const unsigned int intids[] = { EDGE_SPI, LEVEL_SPI, ACTIVE_SPI, PPI, SGI };
	int i;

	gic_init(GIC_V3, 2);
	gic_rdist_enable_lpis(PROP_TABLE, SZ_64K, PEND_TABLE(0));
	its_init(COLL_TABLE, SZ_64K, DEVICE_TABLE, SZ_64K, CMDQ, SZ_64K);
	its_send_mapd_cmd((void *)CMDQ, 0, ITT, SZ_64K, true);
	its_send_mapc_cmd((void *)CMDQ, 0, 0, true);
	its_send_mapti_cmd((void *)CMDQ, 0, 0, 0, LPI);
	its_send_invall_cmd((void *)CMDQ, 0);

	gic_irq_set_config(EDGE_SPI, true);
	gic_irq_set_config(LEVEL_SPI, false);
	gic_irq_set_config(ACTIVE_SPI, true);
	gic_irq_set_config(MASKED_SPI, true);
	for (i = 0; i < ARRAY_SIZE(intids); i++)
		gic_irq_enable(intids[i]);
	guest_stage(0, 1);

	/* The host has made this one pending. */
	GUEST_ASSERT_EQ(gic_get_and_ack_irq(), ACTIVE_SPI);
	write_sysreg_s((u64)SGI << 24 | 1, SYS_ICC_SGI1R_EL1);
	write_sysreg_s((u64)REMOTE_SGI << 24 | 2, SYS_ICC_SGI1R_EL1);
	isb();
	guest_stage(0, 2);

	/* In the second VM.  Nothing comes before the active one is completed. */
	local_irq_enable();
	for (i = 0; i < 1000; i++)
		isb();
	GUEST_ASSERT_EQ(irq_count[0][EDGE_SPI] + irq_count[0][SGI] + irq_count[0][LPI], 0);
	guest_stage(0, 3);

	gic_set_eoi(ACTIVE_SPI);
	for (i = 0; i < ARRAY_SIZE(intids); i++)
		if (intids[i] != ACTIVE_SPI)
			guest_wait(0, intids[i]);
	guest_wait(0, LPI);
	guest_stage(0, 4);

	/* The host has lowered the lines: only the disabled one is left. */
	gic_irq_enable(LEVEL_SPI);
	gic_irq_enable(PPI);
	GUEST_ASSERT_EQ(irq_count[0][MASKED_SPI], 0);
	gic_irq_enable(MASKED_SPI);
	guest_wait(0, MASKED_SPI);
	for (i = 0; i < 1000; i++)
		isb();
	guest_stage(0, 5);
}

static void guest_vcpu1(void)
{
	int i;

	gic_init(GIC_V3, 2);
	gic_irq_enable(REMOTE_SGI);
	guest_stage(1, 1);

	local_irq_enable();
	guest_wait(1, REMOTE_SGI);
	for (i = 0; i < 1000; i++)
		isb();
	guest_stage(1, 2);
}

static const u64 its_regs[] = {
	/* In the order of Documentation/virt/kvm/devices/arm-vgic-its.rst */
	GITS_CBASER, GITS_CREADR, GITS_CWRITER,
	GITS_BASER, GITS_BASER + 8, GITS_BASER + 16, GITS_BASER + 24,
	GITS_BASER + 32, GITS_BASER + 40, GITS_BASER + 48, GITS_BASER + 56,
};

static void its_ctrl(int its_fd, u64 attr)
{
	kvm_device_attr_set(its_fd, KVM_DEV_ARM_VGIC_GRP_CTRL, attr, NULL);
}

static void its_vm_create(struct gic_vm *v, int *its_fd)
{
	size_t pages = NR_TABLES * SZ_64K / getpagesize();
	u8 *prop;

	TEST_REQUIRE(kvm_supports_vgic_v3());
	v->vm = vm_create(2);
	v->nr_vcpus = 2;
	v->vcpus[0] = vm_vcpu_add(v->vm, 0, guest_vcpu0);
	v->vcpus[1] = vm_vcpu_add(v->vm, 1, guest_vcpu1);

	tables = (vm_compute_max_gfn(v->vm) + 1) * getpagesize() - NR_TABLES * SZ_64K;
	vm_userspace_mem_region_add(v->vm, VM_MEM_SRC_ANONYMOUS, tables, TABLES_SLOT, pages, 0);
	virt_map(v->vm, tables, tables, pages);
	sync_global_to_guest(v->vm, tables);
	prop = addr_gpa2hva(v->vm, PROP_TABLE);
	*prop = LPI_PRIO | LPI_PROP_GROUP1 | LPI_PROP_ENABLED;

	vm_init_descriptor_tables(v->vm);
	vcpu_init_descriptor_tables(v->vcpus[0]);
	vcpu_init_descriptor_tables(v->vcpus[1]);
	vm_install_exception_handler(v->vm, VECTOR_IRQ_CURRENT, guest_irq_handler);

	v->fd = vgic_v3_setup(v->vm, 2, NR_IRQS);
	*its_fd = vgic_its_setup(v->vm);
}

/* Run until the guest says that it has reached @val; its ucalls have addresses of one VM. */
static void run_to_stage(struct gic_vm *v, int vcpu, u64 val)
{
	u64 *at = addr_gva2hva(v->vm, (gva_t)&stage[vcpu]);

	vcpu_run(v->vcpus[vcpu]);
	TEST_ASSERT_KVM_EXIT_REASON(v->vcpus[vcpu], UCALL_EXIT_REASON);
	TEST_ASSERT(READ_ONCE(*at) == val, "vCPU %d is at stage %lu, not %lu: a guest assertion",
		    vcpu, (unsigned long)*at, (unsigned long)val);
	vcpu_run_complete_io(v->vcpus[vcpu]);
}

static void copy_slot(struct kvm_vm *to, struct kvm_vm *from, u32 slot)
{
	struct userspace_mem_region *a = memslot2region(to, slot), *b = memslot2region(from, slot);

	TEST_ASSERT_EQ(a->region.memory_size, b->region.memory_size);
	memcpy(a->host_mem, b->host_mem, a->region.memory_size);
}

static void copy_vcpu(struct kvm_vcpu *to, struct kvm_vcpu *from)
{
	struct kvm_reg_list *list = vcpu_get_reg_list(from);
	static u8 val[2048] __aligned(16);
	u64 i;

	for (i = 0; i < list->n; i++) {
		TEST_ASSERT(!__vcpu_get_reg(from, list->reg[i], val), "get 0x%lx",
			    (unsigned long)list->reg[i]);
		/* Some are what they are. */
		__vcpu_set_reg(to, list->reg[i], *(u64 *)val);
	}
	free(list);
}

static void pulse(struct gic_vm *v, u32 intid)
{
	kvm_arm_irq_line(v->vm, intid, 1);
	kvm_arm_irq_line(v->vm, intid, 0);
}

static u64 count(struct gic_vm *v, int vcpu, u32 intid)
{
	return *(u64 *)addr_gva2hva(v->vm, (gva_t)&irq_count[vcpu][intid]);
}

static void save_and_restore(struct gic_vm *v, struct gic_vm *to,
			     void (*get)(int fd, bool set, struct gic_regs *regs),
			     void (*set)(int fd, bool set, struct gic_regs *regs))
{
	static const u32 once[] = { EDGE_SPI, LEVEL_SPI, MASKED_SPI, PPI, SGI, LPI };
	struct kvm_msi msi = {
		.address_lo = GITS_BASE_GPA + GITS_TRANSLATER,
		.flags = KVM_MSI_VALID_DEVID,
	};
	struct gic_regs regs = {}, restore = {}, check = {};
	u64 its[ARRAY_SIZE(its_regs)], ctlr;
	int its_fd[2];
	u32 i;

	its_vm_create(v, &its_fd[0]);
	run_to_stage(v, 0, 1);
	run_to_stage(v, 1, 1);
	pulse(v, ACTIVE_SPI);
	run_to_stage(v, 0, 2);
	pulse(v, EDGE_SPI);
	pulse(v, MASKED_SPI);
	kvm_arm_irq_line(v->vm, LEVEL_SPI, 1);
	kvm_arm_irq_line(v->vm, PPI, 1);
	TEST_ASSERT_EQ(__vm_ioctl(v->vm, KVM_SIGNAL_MSI, &msi), 1);

	/* Save */
	kvm_device_attr_set(v->fd, KVM_DEV_ARM_VGIC_GRP_CTRL,
			    KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES, NULL);
	its_ctrl(its_fd[0], KVM_DEV_ARM_ITS_SAVE_TABLES);
	for (i = 0; i < ARRAY_SIZE(its_regs); i++)
		kvm_device_attr_get(its_fd[0], KVM_DEV_ARM_VGIC_GRP_ITS_REGS, its_regs[i], &its[i]);
	kvm_device_attr_get(its_fd[0], KVM_DEV_ARM_VGIC_GRP_ITS_REGS, GITS_CTLR, &ctlr);
	gic_v3_regs(&regs, v->fd, v->vcpus, 2, NR_IRQS);
	get(v->fd, false, &regs);

	/* Restore */
	its_vm_create(to, &its_fd[1]);
	copy_slot(to->vm, v->vm, 0);
	copy_slot(to->vm, v->vm, TABLES_SLOT);
	copy_vcpu(to->vcpus[0], v->vcpus[0]);
	copy_vcpu(to->vcpus[1], v->vcpus[1]);
	gic_v3_restore_regs(&restore, &regs);
	set(to->fd, true, &restore);
	for (i = 0; i < ARRAY_SIZE(its_regs); i++)
		kvm_device_attr_set(its_fd[1], KVM_DEV_ARM_VGIC_GRP_ITS_REGS, its_regs[i], &its[i]);
	its_ctrl(its_fd[1], KVM_DEV_ARM_ITS_RESTORE_TABLES);
	kvm_device_attr_set(its_fd[1], KVM_DEV_ARM_VGIC_GRP_ITS_REGS, GITS_CTLR, &ctlr);

	/* The same state, in both VMs and in both ways. */
	copy_regs(&check, &regs);
	spoil(&check);
	gic_single(to->fd, false, &check);
	expect_equal(&regs, &check, 1);
	spoil(&check);
	gic_batch(v->fd, false, &check);
	expect_equal(&regs, &check, 1);

	/* No interrupt is lost, and none comes twice. */
	run_to_stage(to, 0, 3);
	run_to_stage(to, 0, 4);
	kvm_arm_irq_line(to->vm, LEVEL_SPI, 0);
	kvm_arm_irq_line(to->vm, PPI, 0);
	run_to_stage(to, 0, 5);
	run_to_stage(to, 1, 2);
	for (i = 0; i < ARRAY_SIZE(once); i++)
		TEST_ASSERT(count(to, 0, once[i]) == 1, "interrupt %u came %lu times", once[i],
			    (unsigned long)count(to, 0, once[i]));
	TEST_ASSERT_EQ(count(to, 1, REMOTE_SGI), 1);
	TEST_ASSERT_EQ(count(to, 0, ACTIVE_SPI), 0);

	gic_regs_free(&regs);
	gic_regs_free(&restore);
	gic_regs_free(&check);
	close(its_fd[0]);
	close(its_fd[1]);
}

TEST_F_TIMEOUT(vgic_batch, batch_to_batch, SLOW_TIMEOUT)
{
	save_and_restore(&self->v, &self->other, gic_batch, gic_batch);
}

TEST_F_TIMEOUT(vgic_batch, batch_to_single, SLOW_TIMEOUT)
{
	save_and_restore(&self->v, &self->other, gic_batch, gic_single);
}

TEST_F_TIMEOUT(vgic_batch, single_to_batch, SLOW_TIMEOUT)
{
	save_and_restore(&self->v, &self->other, gic_single, gic_batch);
}

/* VGICv2 has groups and registers of its own. */
#define GICV2_DIST_GPA	0x8000000ull
#define GICV2_CPU_GPA	0x8010000ull
#define GICV2_VCPUS	8

static u64 v2_attr(int vcpu, u64 offset)
{
	return (u64)vcpu << KVM_DEV_ARM_VGIC_CPUID_SHIFT | offset;
}

static void v2_vm_create(struct gic_vm *v)
{
	u64 dist = GICV2_DIST_GPA, cpu = GICV2_CPU_GPA;
	int i;

	v->vm = vm_create(GICV2_VCPUS);
	v->nr_vcpus = GICV2_VCPUS;
	for (i = 0; i < GICV2_VCPUS; i++)
		v->vcpus[i] = vm_vcpu_add(v->vm, i, guest_spin);
	v->fd = kvm_create_device(v->vm, KVM_DEV_TYPE_ARM_VGIC_V2);
	kvm_device_attr_set(v->fd, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V2_ADDR_TYPE_DIST, &dist);
	kvm_device_attr_set(v->fd, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V2_ADDR_TYPE_CPU, &cpu);
}

static bool has_vgic_v2(void)
{
	struct kvm_vm *vm = vm_create_barebones();
	int ret = __kvm_test_create_device(vm, KVM_DEV_TYPE_ARM_VGIC_V2);

	kvm_vm_free(vm);
	return !ret;
}

static void v2_regs(struct gic_regs *regs)
{
	/* GICC_CTLR, PMR, BPR, ABPR, APR0 to 3 */
	static const u32 cpu[] = { 0, 4, 8, 0x1c, 0xd0, 0xd4, 0xd8, 0xdc };
	/* Of 32 interrupts: IGROUPR, ISENABLER, ISPENDR, ISACTIVER; how many bits each has */
	static const struct { u32 offset, bits; } dist[] = {
		{ 0x80, 1 }, { 0x100, 1 }, { 0x200, 1 }, { 0x300, 1 },
		{ 0x400, 8 }, { 0x800, 8 }, { 0xc00, 2 },
	};
	u32 j, k;
	int i;

	gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_CTLR, 0);
	for (i = 0; i < GICV2_VCPUS; i++)
		for (j = 0; j < ARRAY_SIZE(cpu); j++)
			gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_CPU_REGS, v2_attr(i, cpu[j]), 0);
	/* Those of private interrupts are banked. */
	for (i = 0; i < GICV2_VCPUS; i++) {
		for (j = 0; j < ARRAY_SIZE(dist); j++)
			for (k = 0; k < dist[j].bits * 32 / 8; k += 4)
				gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS,
					     v2_attr(i, dist[j].offset + k), 0);
	}
	for (j = 0; j < ARRAY_SIZE(dist); j++)
		for (k = dist[j].bits * 32 / 8; k < dist[j].bits * NR_IRQS / 8; k += 4)
			gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS,
				     v2_attr(0, dist[j].offset + k), 0);
}

TEST_F_TIMEOUT(vgic_batch, v2_equals_single, SLOW_TIMEOUT)
{
	struct gic_regs single = {}, batch = {};
	u32 i, nr_different = 0;

	if (!has_vgic_v2())
		SKIP(return, "The host has no GICv2, nor a GICv3 that is compatible with it");

	v2_vm_create(&self->v);
	v2_regs(&single);
	copy_regs(&batch, &single);

	/* As v2 always did, the first access initializes it. */
	gic_batch(self->v.fd, false, &single);
	for (i = 0; i < single.nr; i++) {
		single.entries[i].val = (u32)random64();
		/* Anything sets it, so that a set may clear. */
		__gic_single(self->v.fd, true, &single.entries[i]);
	}
	gic_single(self->v.fd, false, &single);
	gic_batch(self->v.fd, false, &batch);
	expect_equal(&single, &batch, 1);
	for (i = 0; i < batch.nr; i++)
		nr_different += batch.entries[i].val != 0;
	TEST_ASSERT(nr_different > batch.nr / 4, "nearly all registers are 0");

	v2_vm_create(&self->other);
	gic_batch(self->other.fd, true, &batch);
	spoil(&single);
	gic_single(self->other.fd, false, &single);
	expect_equal(&batch, &single, 1);

	gic_regs_free(&single);
	gic_regs_free(&batch);
}

TEST_F(vgic_batch, v2_bad_entries)
{
	static const struct {
		u32 group;
		u64 attr;
		u64 val;
		int err;
		bool set_only;
	} bad[] = {
		{ KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, 0, 0, ENXIO },
		{ KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS, 0, 0, ENXIO },
		{ KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO, 32, 0, ENXIO },
		{ KVM_DEV_ARM_VGIC_GRP_ADDR, 0, 0, ENXIO },
		{ KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0, 0, ENXIO },
		{ KVM_DEV_ARM_VGIC_GRP_CPU_REGS, 200ull << 32 | 4, 0, EINVAL },
		{ KVM_DEV_ARM_VGIC_GRP_DIST_REGS, 8ull << 32, 0, EINVAL },
		{ KVM_DEV_ARM_VGIC_GRP_DIST_REGS, 0x420, 1ull << 32, EINVAL, true },
		{ KVM_DEV_ARM_VGIC_GRP_CPU_REGS, 4, 1ull << 63, EINVAL, true },
	};
	struct gic_vm *v = &self->v;
	struct kvm_arm_vgic_batch_entry entries[3];
	u32 i, set, done;
	int ret;

	if (!has_vgic_v2())
		SKIP(return, "The host has no GICv2, nor a GICv3 that is compatible with it");

	v2_vm_create(v);
	TEST_ASSERT(__kvm_has_device_attr(v->fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 1) &&
		    errno == ENXIO, "errno = %d", errno);

	for (set = 0; set < 2; set++) {
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			if (bad[i].set_only && !set)
				continue;
			memset(entries, 0, sizeof(entries));
			/* Priorities of vCPU 1's interrupts */
			entries[0].group = KVM_DEV_ARM_VGIC_GRP_DIST_REGS;
			entries[0].attr = v2_attr(1, 0x400);
			entries[0].val = 0x80808080;
			entries[1].group = bad[i].group;
			entries[1].attr = bad[i].attr;
			entries[1].val = bad[i].val;
			entries[2] = entries[0];
			entries[2].val = 0x40404040;
			entries[2].error = 1;

			ret = __gic_batch(v->fd, set, entries, 3, &done);
			TEST_ASSERT(ret == -1 && errno == bad[i].err && done == 1,
				    "entry %u: ret = %d, errno = %d, %u done", i, ret, errno, done);
			TEST_ASSERT_EQ(entries[0].error, 0);
			TEST_ASSERT_EQ(entries[1].error, -bad[i].err);
			TEST_ASSERT_EQ(entries[1].val, bad[i].val);
			TEST_ASSERT_EQ(entries[2].error, 1);
			TEST_ASSERT_EQ(get_single(v, entries[0].group, entries[0].attr),
				       set ? 0x80808080 : 0);
		}
	}
}

TEST_F_TIMEOUT(vgic_batch, v2_running, SLOW_TIMEOUT)
{
	struct kvm_arm_vgic_batch_entry entry = {
		.group = KVM_DEV_ARM_VGIC_GRP_CPU_REGS,
		.attr = v2_attr(0, 4),
		.error = 1,
	};
	struct gic_vm *v = &self->v;
	struct spin_thread st;
	u32 done, set;

	if (!has_vgic_v2())
		SKIP(return, "The host has no GICv2, nor a GICv3 that is compatible with it");

	v2_vm_create(v);
	spin_thread_start(&st, v, 1);
	for (set = 0; set < 2; set++) {
		int ret = __gic_batch(v->fd, set, &entry, 1, &done);

		TEST_ASSERT(ret == -1 && errno == EBUSY && !done && entry.error == 1,
			    "ret = %d, errno = %d, %u done", ret, errno, done);
	}
	spin_thread_stop(&st);
	TEST_ASSERT(!__gic_batch(v->fd, false, &entry, 1, &done) && done == 1, "errno = %d", errno);
}

static bool kvm_has_vgic_batch(void)
{
	u64 type = kvm_supports_vgic_v3() ? KVM_DEV_TYPE_ARM_VGIC_V3 : KVM_DEV_TYPE_ARM_VGIC_V2;
	struct kvm_vm *vm = vm_create_barebones();
	int fd = __kvm_create_device(vm, type);
	bool has = fd >= 0 && gic_has_batch(fd);

	if (fd >= 0)
		close(fd);
	kvm_vm_free(vm);
	return has;
}

int main(int argc, char *argv[])
{
	/* The tests create their GICs themselves. */
	test_disable_default_vgic();
	TEST_REQUIRE(kvm_has_vgic_batch());

	return test_harness_run(argc, argv);
}
