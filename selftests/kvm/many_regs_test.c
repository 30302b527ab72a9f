// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test KVM_GET_MANY_REGS and KVM_SET_MANY_REGS: exactly what a loop over
 * KVM_{GET,SET}_ONE_REG would do, and where it stops.
 *
 * get-reg-list compares the two for each set of vCPU features.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <linux/sizes.h>

#include "kvm_test_harness.h"
#include "kvm_util.h"
#include "many_regs.h"
#include "processor.h"
#include "test_util.h"
#include "ucall_common.h"
#include "user_exit.h"

#define POISON		0xa5

/* Seconds, for a guest in an emulator with a debug kernel. */
#define SLOW_TIMEOUT	180

/* An id that no architecture has, of 8 bytes. */
#define NO_ARCH_REG	(0x0f00000000000000ull | KVM_REG_SIZE_U64)

#define NR_WORK		20000000ull

/* Room for as many ids as nr can say, which must be addresses of userspace. */
#define EDGE_SIZE	(33ull * SZ_1G)

static u64 guest_counter;
static u64 guest_result;

static void guest_spin(void)
{
	for (;;)
		WRITE_ONCE(guest_counter, READ_ONCE(guest_counter) + 1);
}

/* What the guest computes, in registers; the host does the same. */
static u64 work(u64 n, u64 *counter)
{
	u64 i, a = 1, b = 2, c = 3, d = 4;

	for (i = 0; i < n; i++) {
		a = a * 6364136223846793005ull + 1442695040888963407ull;
		b ^= a >> 7;
		c += b * d;
		d = (d << 9 | d >> 55) + i;
		/* Tell how far it is. */
		if (counter && !(i & 0xfff))
			WRITE_ONCE(*counter, i);
	}
	return a ^ b ^ c ^ d;
}

static void guest_work(void)
{
	/* The ucall has the address of the first VM's memory in it. */
	WRITE_ONCE(guest_result, work(NR_WORK, &guest_counter));
	GUEST_DONE();
}

FIXTURE(many_regs) {
	struct kvm_vm *vm;
	struct kvm_vcpu *vcpu;
	struct many_regs *regs;
	u8 *one;	/* what KVM_GET_ONE_REG says, in the same form */
	u8 *many;
	u8 *edge;	/* a page, and behind it many that can't be accessed */
	size_t page;
};

/* The counters of @regs can't be compared. */
static void drop_counters(struct many_regs *regs)
{
	u64 i, n = 0;

	for (i = 0; i < regs->nr; i++)
		if (!reg_is_counter(regs->ids[i]))
			regs->ids[n++] = regs->ids[i];
	regs->nr = n;
	regs->size = regs_size(regs->ids, n);
}

static void get_one_by_one(struct kvm_vcpu *vcpu, struct many_regs *regs, u8 *data)
{
	u64 i;

	for (i = 0; i < regs->nr; i++) {
		memset(data, 0, reg_slot(regs->ids[i]));
		TEST_ASSERT(!__vcpu_get_reg(vcpu, regs->ids[i], data),
			    "KVM_GET_ONE_REG of 0x%lx, errno = %d",
			    (unsigned long)regs->ids[i], errno);
		data += reg_slot(regs->ids[i]);
	}
}

static bool all_bytes(const u8 *data, u8 val, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (data[i] != val)
			return false;
	return true;
}

/* Expect @err, and that @nr_done were done. */
static void expect_error(struct kvm_vcpu *vcpu, bool set, const u64 *ids, u32 nr,
			 void *data, u64 data_size, int err, u32 nr_done)
{
	u32 done;
	int ret = __many_regs(vcpu, set, ids, nr, data, data_size, &done);

	TEST_ASSERT(ret == -1 && errno == err && done == nr_done,
		    "%s of %u: expected errno %d after %u, got ret = %d, errno = %d after %u",
		    set ? "set" : "get", nr, err, nr_done, ret, errno, done);
}

/* What KVM_{GET,SET}_ONE_REG say to an id that there is no register for. */
static int one_reg_errno(struct kvm_vcpu *vcpu, bool set, u64 id)
{
	static u8 val[MAX_REG_SIZE] __aligned(8);

	TEST_ASSERT(__one_reg(vcpu, set, id, val) == -1, "0x%lx is a register",
		    (unsigned long)id);
	return errno;
}

FIXTURE_SETUP(many_regs)
{
	self->vm = vm_create_with_one_vcpu(&self->vcpu, guest_spin);
	self->regs = usable_regs(self->vcpu, false);
	drop_counters(self->regs);
	self->page = getpagesize();
	self->one = aligned_alloc(8, self->regs->size + 64);
	self->many = aligned_alloc(8, self->regs->size + 64);
	memset(self->many, POISON, self->regs->size + 64);
	get_one_by_one(self->vcpu, self->regs, self->one);

	self->edge = mmap(NULL, EDGE_SIZE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	TEST_ASSERT(self->edge != MAP_FAILED, "mmap(), errno = %d", errno);
	TEST_ASSERT(!mprotect(self->edge, self->page, PROT_READ | PROT_WRITE),
		    "mprotect(), errno = %d", errno);
}

FIXTURE_TEARDOWN(many_regs)
{
	munmap(self->edge, EDGE_SIZE);
	free(self->one);
	free(self->many);
	regs_free(self->regs);
	kvm_vm_free(self->vm);
}

TEST_F(many_regs, capability)
{
	TEST_ASSERT_EQ(kvm_check_cap(KVM_CAP_MANY_REGS), 1);
	TEST_ASSERT_EQ(vm_check_cap(self->vm, KVM_CAP_MANY_REGS), 1);
}

TEST_F(many_regs, layout)
{
	TEST_ASSERT_EQ(sizeof(struct kvm_many_regs), 32);
	TEST_ASSERT_EQ(offsetof(struct kvm_many_regs, flags), 4);
	TEST_ASSERT_EQ(offsetof(struct kvm_many_regs, ids), 8);
	TEST_ASSERT_EQ(offsetof(struct kvm_many_regs, data), 16);
	TEST_ASSERT_EQ(offsetof(struct kvm_many_regs, data_size), 24);
}

/* Values, zeroes behind short ones, and nothing behind the last. */
TEST_F(many_regs, get)
{
	struct many_regs *regs = self->regs;
	u64 i, offset = 0;

	get_many_regs(self->vcpu, regs, self->many);
	for (i = 0; i < regs->nr; i++) {
		TEST_ASSERT(!memcmp(self->many + offset, self->one + offset,
				    reg_slot(regs->ids[i])),
			    "The value of 0x%lx is wrong", (unsigned long)regs->ids[i]);
		offset += reg_slot(regs->ids[i]);
	}
	TEST_ASSERT(all_bytes(self->many + offset, POISON, 64),
		    "Memory behind the last value was written");
}

/* More data_size than needed is fine, and isn't touched. */
TEST_F(many_regs, more_data_size)
{
	struct many_regs *regs = self->regs;
	u32 done;

	TEST_ASSERT(!__many_regs(self->vcpu, false, regs->ids, regs->nr, self->many,
				 regs->size + 64, &done),
		    "KVM_GET_MANY_REGS failed, errno = %d", errno);
	TEST_ASSERT_EQ(done, regs->nr);
	TEST_ASSERT(!memcmp(self->many, self->one, regs->size), "Values differ");
	TEST_ASSERT(all_bytes(self->many + regs->size, POISON, 64),
		    "Memory behind the last value was written");
}

/* Any order, and any number of times. */
TEST_F(many_regs, order_and_duplicates)
{
	struct many_regs *regs = self->regs, more = { .nr = 3 * regs->nr };
	u8 *data, *one;
	u64 i;

	more.ids = calloc(more.nr, sizeof(u64));
	for (i = 0; i < regs->nr; i++) {
		more.ids[i] = regs->ids[regs->nr - 1 - i];
		more.ids[regs->nr + 2 * i] = regs->ids[i];
		more.ids[regs->nr + 2 * i + 1] = regs->ids[i];
	}
	more.size = regs_size(more.ids, more.nr);
	data = aligned_alloc(8, more.size);
	one = aligned_alloc(8, more.size);
	get_many_regs(self->vcpu, &more, data);
	get_one_by_one(self->vcpu, &more, one);
	TEST_ASSERT(!memcmp(data, one, more.size), "Values differ");
	free(one);
	free(data);
	free(more.ids);
}

/* A second vCPU with the values of the first is the same. */
TEST_F(many_regs, set)
{
	struct many_regs *regs = usable_regs(self->vcpu, true);
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	u64 i, offset = 0, differ = 0;
	u8 *second;

	/* Values that the first has, and a new vCPU hasn't. */
	get_many_regs(self->vcpu, regs, self->many);
	for (i = 0; i < regs->nr; i++) {
		u64 val = *(u64 *)(self->many + offset) ^ 0x1100;

		if (reg_is_plain(regs->ids[i]) && !__one_reg(self->vcpu, true, regs->ids[i], &val))
			differ++;
		offset += reg_slot(regs->ids[i]);
	}
	TEST_ASSERT(differ > 2, "Only %lu registers could be changed", (unsigned long)differ);
	get_many_regs(self->vcpu, regs, self->many);

	vm = vm_create_with_one_vcpu(&vcpu, NULL);
	second = aligned_alloc(8, regs->size);
	get_many_regs(vcpu, regs, second);
	TEST_ASSERT(memcmp(self->many, second, regs->size), "The vCPUs don't differ");
	set_many_regs(vcpu, regs, self->many);
	get_many_regs(vcpu, regs, second);
	for (i = 0, offset = 0; i < regs->nr; i++) {
		TEST_ASSERT(!memcmp(self->many + offset, second + offset, reg_slot(regs->ids[i])),
			    "0x%lx was not set", (unsigned long)regs->ids[i]);
		offset += reg_slot(regs->ids[i]);
	}
	free(second);
	regs_free(regs);
	kvm_vm_free(vm);
}

TEST_F(many_regs, nothing)
{
	u32 done;
	int set;

	for (set = 0; set < 2; set++) {
		TEST_ASSERT(!__many_regs(self->vcpu, set, NULL, 0, NULL, 0, &done),
			    "nr 0 failed, errno = %d", errno);
		TEST_ASSERT_EQ(done, 0);
	}
}

/* Each kind of id that fails stops the call, as KVM_*_ONE_REG fails. */
TEST_F(many_regs, failing_id)
{
	struct many_regs *regs = self->regs;
	u64 ids[100], bad[4], first = regs->ids[0], offset;
	int i, k, set, err;

	bad[0] = NO_ARCH_REG;
	/* All the bits that tell registers apart. */
	bad[1] = first | 0xffffffull;
	bad[2] = (first & ~KVM_REG_SIZE_MASK) | KVM_REG_SIZE_U8;
	bad[3] = (first & ~KVM_REG_SIZE_MASK) | KVM_REG_SIZE_U1024;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		for (set = 0; set < 2; set++) {
			err = one_reg_errno(self->vcpu, set, bad[i]);

			/* In the first chunk of ids, at its end, and after it. */
			for (k = 0; k < ARRAY_SIZE(ids); k += 33) {
				struct many_regs good = { .nr = k, .ids = ids };
				u8 data[ARRAY_SIZE(ids) * 8 + 256] __aligned(8);

				for (offset = 0; offset < ARRAY_SIZE(ids); offset++)
					ids[offset] = first;
				ids[k] = bad[i];
				TEST_ASSERT_EQ(reg_slot(first), 8);
				memset(data, POISON, sizeof(data));
				if (set)
					get_one_by_one(self->vcpu, &good, data);
				memset(data + 8 * k, set ? 0 : POISON, sizeof(data) - 8 * k);
				expect_error(self->vcpu, set, ids, ARRAY_SIZE(ids), data,
					     sizeof(data), err, k);
				if (set)
					continue;
				TEST_ASSERT(k == 0 || !memcmp(data + 8 * (k - 1), self->one, 8),
					    "The value before the failing id is wrong");
				TEST_ASSERT(all_bytes(data + 8 * k, POISON, sizeof(data) - 8 * k),
					    "Memory behind the failing id was written");
			}
		}
	}
}

/* Nothing after the failing id is set, and everything before it is. */
TEST_F(many_regs, set_stops)
{
	struct many_regs *regs = usable_regs(self->vcpu, true);
	u64 ids[3], vals[3], old[2], i, n = 0;
	int err;

	/* Two registers that take another value. */
	for (i = 0; i < regs->nr && n < 2; i++) {
		if (!reg_is_plain(regs->ids[i]))
			continue;
		old[n] = vcpu_get_reg(self->vcpu, regs->ids[i]);
		ids[2 * n] = regs->ids[i];
		vals[2 * n] = old[n] ^ 0x1100;
		n++;
	}
	TEST_ASSERT_EQ(n, 2);
	ids[1] = NO_ARCH_REG;
	vals[1] = 0;
	err = one_reg_errno(self->vcpu, true, ids[1]);

	expect_error(self->vcpu, true, ids, 3, vals, sizeof(vals), err, 1);
	TEST_ASSERT_EQ(vcpu_get_reg(self->vcpu, ids[0]), vals[0]);
	TEST_ASSERT_EQ(vcpu_get_reg(self->vcpu, ids[2]), old[1]);

	/* Too little data for the second: the first is set. */
	ids[1] = ids[2];
	vals[1] = vals[2];
	vals[0] = old[0];
	expect_error(self->vcpu, true, ids, 2, vals, 15, E2BIG, 1);
	TEST_ASSERT_EQ(vcpu_get_reg(self->vcpu, ids[0]), old[0]);
	TEST_ASSERT_EQ(vcpu_get_reg(self->vcpu, ids[2]), old[1]);
	regs_free(regs);
}

TEST_F(many_regs, data_size)
{
	struct many_regs *regs = self->regs;
	u64 last = reg_slot(regs->ids[regs->nr - 1]);
	int set;

	for (set = 0; set < 2; set++) {
		if (set)
			memcpy(self->many, self->one, regs->size);
		expect_error(self->vcpu, set, regs->ids, 1, self->many, 0, E2BIG, 0);
		expect_error(self->vcpu, set, regs->ids, 1, self->many,
			     reg_slot(regs->ids[0]) - 1, E2BIG, 0);
	}

	memset(self->many, POISON, regs->size + 64);
	expect_error(self->vcpu, false, regs->ids, regs->nr, self->many, regs->size - 1,
		     E2BIG, regs->nr - 1);
	TEST_ASSERT(!memcmp(self->many, self->one, regs->size - last), "Values differ");
	TEST_ASSERT(all_bytes(self->many + regs->size - last, POISON, last),
		    "The value that didn't fit was written");
}

/* A value shorter than 8 bytes is followed by zeroes, also if it's set. */
TEST_F(many_regs, padding)
{
	struct many_regs *regs = usable_regs(self->vcpu, true);
	u64 i, val, old;
	int tested = 0;

	for (i = 0; i < regs->nr; i++) {
		u64 id = regs->ids[i];
		unsigned int size = KVM_REG_SIZE(id);
		u32 done;

		if (size >= sizeof(val))
			continue;
		memset(&val, POISON, sizeof(val));
		TEST_ASSERT(!__many_regs(self->vcpu, false, &id, 1, &val, sizeof(val), &done),
			    "get, errno = %d", errno);
		TEST_ASSERT(all_bytes((u8 *)&val + size, 0, sizeof(val) - size),
			    "The padding is not zero");
		old = val;
		((u8 *)&val)[0] ^= 1;
		((u8 *)&val)[7] = 1;
		expect_error(self->vcpu, true, &id, 1, &val, sizeof(val), EINVAL, 0);
		TEST_ASSERT(!__many_regs(self->vcpu, false, &id, 1, &val, sizeof(val), &done),
			    "get, errno = %d", errno);
		TEST_ASSERT_EQ(val, old);
		tested++;
	}
	regs_free(regs);
	if (!tested)
		SKIP(return, "No register that can be set is shorter than 8 bytes");
}

/* Nothing was tried. */
static void expect_arg_error(int fd, unsigned long cmd, struct kvm_many_regs arg, int err)
{
	int ret = ioctl(fd, cmd, &arg);

	TEST_ASSERT(ret == -1 && errno == err && !arg.nr,
		    "Expected errno %d, got ret = %d, errno = %d, nr = %u",
		    err, ret, errno, arg.nr);
}

TEST_F(many_regs, bad_argument)
{
	struct many_regs *regs = self->regs;
	struct kvm_many_regs good = {
		.nr = 1,
		.ids = (u64)(unsigned long)regs->ids,
		.data = (u64)(unsigned long)self->many,
		.data_size = regs->size,
	}, arg;
	const unsigned long cmds[] = { KVM_GET_MANY_REGS, KVM_SET_MANY_REGS };
	int i, bit, fd = self->vcpu->fd;

	memcpy(self->many, self->one, regs->size);
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		for (bit = 0; bit < 32; bit++) {
			arg = good;
			arg.flags = 1u << bit;
			expect_arg_error(fd, cmds[i], arg, EINVAL);
		}
		for (bit = 1; bit < 8; bit++) {
			arg = good;
			arg.ids += bit;
			expect_arg_error(fd, cmds[i], arg, EINVAL);
			arg = good;
			arg.data += bit;
			expect_arg_error(fd, cmds[i], arg, EINVAL);
		}

		/* Not mapped, never to be mapped, and sums that wrap. */
		arg = good;
		arg.ids = 0;
		expect_arg_error(fd, cmds[i], arg, EFAULT);
		arg = good;
		arg.data = 0;
		expect_arg_error(fd, cmds[i], arg, EFAULT);
		arg = good;
		arg.ids = -8ull;
		expect_arg_error(fd, cmds[i], arg, EFAULT);
		arg = good;
		arg.data = -8ull;
		expect_arg_error(fd, cmds[i], arg, EFAULT);
		arg = good;
		arg.nr = -1u;
		arg.ids = -8ull;
		expect_arg_error(fd, cmds[i], arg, EFAULT);
		arg = good;
		arg.data_size = -1ull;
		expect_arg_error(fd, cmds[i], arg, EFAULT);
		arg = good;
		arg.data_size = -arg.data;
		expect_arg_error(fd, cmds[i], arg, EFAULT);

		TEST_ASSERT(ioctl(fd, cmds[i], NULL) == -1 && errno == EFAULT,
			    "No argument: errno = %d", errno);
		TEST_ASSERT(ioctl(fd, cmds[i], self->edge + self->page) == -1 &&
			    errno == EFAULT, "Argument not mapped: errno = %d", errno);
		TEST_ASSERT(ioctl(fd, cmds[i], self->edge + self->page - 16) == -1 &&
			    errno == EFAULT, "Argument partly mapped: errno = %d", errno);
	}

	get_one_by_one(self->vcpu, regs, self->many);
	TEST_ASSERT(!memcmp(self->many, self->one, regs->size), "Registers were changed");
}

/* If userspace can't be told how many are done, none is. */
TEST_F(many_regs, read_only_argument)
{
	struct many_regs *regs = usable_regs(self->vcpu, true);
	struct kvm_many_regs *arg = (void *)self->edge;

	memcpy(self->many, self->one, self->regs->size);
	get_many_regs(self->vcpu, regs, self->many);
	/* Something that would be seen. */
	memset(self->many, POISON, regs->size);
	*arg = (struct kvm_many_regs) {
		.nr = regs->nr,
		.ids = (u64)(unsigned long)regs->ids,
		.data = (u64)(unsigned long)self->many,
		.data_size = regs->size,
	};
	TEST_ASSERT(!mprotect(self->edge, self->page, PROT_READ), "mprotect(), errno = %d", errno);
	TEST_ASSERT(__vcpu_ioctl(self->vcpu, KVM_SET_MANY_REGS, arg) == -1 && errno == EFAULT,
		    "set, errno = %d", errno);
	TEST_ASSERT(__vcpu_ioctl(self->vcpu, KVM_GET_MANY_REGS, arg) == -1 && errno == EFAULT,
		    "get, errno = %d", errno);
	TEST_ASSERT(all_bytes(self->many, POISON, regs->size), "Values were written");

	get_one_by_one(self->vcpu, self->regs, self->many);
	TEST_ASSERT(!memcmp(self->many, self->one, self->regs->size), "Registers were changed");
	regs_free(regs);
}

/* ids up to the end of what can be read are done. */
TEST_F(many_regs, ids_partly_mapped)
{
	const u32 nrs[] = { 100, 1u << 20, -1u };
	struct many_regs *regs = self->regs;
	u64 nr = min_t(u64, regs->nr, 70), size = regs_size(regs->ids, nr);
	u64 *ids = (u64 *)(self->edge + self->page) - nr;
	int i;

	memcpy(ids, regs->ids, nr * sizeof(u64));
	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		memset(self->many, POISON, regs->size + 64);
		expect_error(self->vcpu, false, ids, nrs[i], self->many, regs->size + 64,
			     EFAULT, nr);
		TEST_ASSERT(!memcmp(self->many, self->one, size), "Values differ");
		TEST_ASSERT(all_bytes(self->many + size, POISON, regs->size + 64 - size),
			    "Memory behind the last value was written");
	}

	/* Readable only is enough. */
	TEST_ASSERT(!mprotect(self->edge, self->page, PROT_READ), "mprotect(), errno = %d", errno);
	expect_error(self->vcpu, false, ids, -1u, self->many, regs->size, EFAULT, nr);
}

/* Values up to the end of what can be written, or read, are done. */
TEST_F(many_regs, data_partly_mapped)
{
	struct many_regs *regs = self->regs, *set_regs;
	u64 fit, k, i, id = 0, val;
	u8 *data;

	for (k = 1; k < min_t(u64, regs->nr, 20); k++) {
		fit = regs_size(regs->ids, k);
		if (fit > self->page)
			break;
		data = self->edge + self->page - fit;
		memset(data, POISON, fit);
		expect_error(self->vcpu, false, regs->ids, regs->nr, data, regs->size, EFAULT, k);
		TEST_ASSERT(!memcmp(data, self->one, fit), "Values differ");
	}

	set_regs = usable_regs(self->vcpu, true);
	for (i = 0; i < set_regs->nr; i++)
		expect_set_fault(self->vcpu, set_regs->ids[i]);

	for (i = 0; i < set_regs->nr && !id; i++)
		if (KVM_REG_SIZE(set_regs->ids[i]) == sizeof(u64))
			id = set_regs->ids[i];
	/* What can only be read can be set from, and not be got into. */
	val = vcpu_get_reg(self->vcpu, id);
	memcpy(self->edge, &val, sizeof(val));
	TEST_ASSERT(!mprotect(self->edge, self->page, PROT_READ), "mprotect(), errno = %d", errno);
	expect_error(self->vcpu, false, &id, 1, self->edge, 8, EFAULT, 0);
	TEST_ASSERT(!memcmp(self->edge, &val, sizeof(val)), "Read-only memory was written");
	set_many_regs(self->vcpu, &(struct many_regs) { 1, &id, 8 }, self->edge);

	get_one_by_one(self->vcpu, regs, self->many);
	TEST_ASSERT(!memcmp(self->many, self->one, regs->size), "Registers were changed");
	regs_free(set_regs);
}

/* Which ids are used is not defined then, but nothing else is touched. */
TEST_F(many_regs, overlap)
{
	struct many_regs *regs = self->regs;
	u64 nr = min_t(u64, regs->nr, self->page / 8), skip;
	u32 done;

	for (skip = 0; skip < 2; skip++) {
		memset(self->edge, 0, self->page);
		memcpy(self->edge + 8 * skip, regs->ids, (nr - skip) * sizeof(u64));
		__many_regs(self->vcpu, false, (u64 *)(self->edge + 8 * skip), nr - skip,
			    self->edge, self->page, &done);
		TEST_ASSERT(done <= nr - skip, "%u of %lu done", done, (unsigned long)nr);
		memset(self->edge, 0, self->page);
		memcpy(self->edge, regs->ids, (nr - skip) * sizeof(u64));
		__many_regs(self->vcpu, false, (u64 *)self->edge, nr - skip,
			    self->edge + 8 * skip, self->page - 8 * skip, &done);
		TEST_ASSERT(done <= nr - skip, "%u of %lu done", done, (unsigned long)nr);
	}
	get_many_regs(self->vcpu, regs, self->many);
	TEST_ASSERT(!memcmp(self->many, self->one, regs->size), "Values differ");
}

struct rewriter {
	pthread_t thread;
	atomic_bool stop;
	u64 *id;
	u64 ids[3];
};

static void *rewrite(void *arg)
{
	struct rewriter *rw = arg;
	unsigned int i = 0;

	while (!atomic_load(&rw->stop))
		WRITE_ONCE(*rw->id, rw->ids[i++ % ARRAY_SIZE(rw->ids)]);
	return NULL;
}

/*
 * An id that changes between two sizes and no register at all: what a call writes
 * is what it has checked.  It may see a part of one id and a part of another, as
 * some architectures copy from userspace byte by byte.
 */
TEST_F(many_regs, ids_rewritten)
{
	struct many_regs *regs = self->regs;
	u8 data[64 + 1024] __aligned(8);
	u64 ids[2], small = 0, large = 0, i;
	struct rewriter rw = { .id = &ids[0] };
	u32 done;
	int ret;

	for (i = 0; i < regs->nr; i++) {
		if (reg_is_plain(regs->ids[i]))
			small = regs->ids[i];
		else if (KVM_REG_SIZE(regs->ids[i]) > 8)
			large = regs->ids[i];
	}
	/* Without a large one, all have the same size. */
	rw.ids[0] = small;
	rw.ids[1] = large ?: small;
	rw.ids[2] = NO_ARCH_REG;
	ids[0] = small;
	ids[1] = small;

	kvm_pthread_create(&rw.thread, NULL, rewrite, &rw);
	for (i = 0; i < 20000; i++) {
		memset(data, POISON, sizeof(data));
		ret = __many_regs(self->vcpu, false, ids, 2, data, 16, &done);
		TEST_ASSERT(ret ? errno != EFAULT && done <= 1 : done == 2,
			    "ret = %d, errno = %d, %u done", ret, errno, done);
		TEST_ASSERT(all_bytes(data + 16, POISON, sizeof(data) - 16),
			    "More than data_size was written");
	}
	atomic_store(&rw.stop, true);
	kvm_pthread_join(rw.thread, NULL);
}

/* @size bytes that can be accessed, and take few of memory. */
static void *map_repeatedly(size_t size)
{
	const size_t chunk = SZ_16M;
	int fd = memfd_create("many_regs", 0);
	u8 *mem;
	size_t i;

	TEST_ASSERT(fd >= 0 && !ftruncate(fd, chunk), "memfd, errno = %d", errno);
	mem = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	TEST_ASSERT(mem != MAP_FAILED, "mmap(), errno = %d", errno);
	for (i = 0; i < size; i += chunk)
		TEST_ASSERT(mmap(mem + i, chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				 fd, 0) == mem + i, "mmap(), errno = %d", errno);
	close(fd);
	return mem;
}

/* Never returns. */
static void get_forever(u64 id, int started)
{
	const u64 size = 32ull * SZ_1G;
	u64 *ids = map_repeatedly(size), *data = map_repeatedly(size), i;
	struct kvm_vcpu *vcpu;
	u32 done;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A VM belongs to the process that created it. */
	vm_create_with_one_vcpu(&vcpu, NULL);
	for (i = 0; i < SZ_16M / sizeof(id); i++)
		ids[i] = id;
	TEST_ASSERT_EQ(write(started, "", 1), 1);
	__many_regs(vcpu, false, ids, -1u, data, size, &done);
	TEST_FAIL("Got %u registers before the signal, errno = %d", done, errno);
}

/* A call for four billion registers ends at once if its task is killed. */
TEST_F_TIMEOUT(many_regs, fatal_signal, SLOW_TIMEOUT)
{
	struct timespec start, end;
	int status, pipefd[2];
	u64 id = 0, i;
	long ms;
	pid_t pid;
	char c;

	for (i = 0; i < self->regs->nr && !id; i++)
		if (KVM_REG_SIZE(self->regs->ids[i]) == sizeof(id))
			id = self->regs->ids[i];

	TEST_ASSERT(!pipe(pipefd), "pipe(), errno = %d", errno);
	pid = fork();
	if (!pid)
		get_forever(id, pipefd[1]);

	TEST_ASSERT_EQ(read(pipefd[0], &c, 1), 1);
	usleep(200000);
	clock_gettime(CLOCK_MONOTONIC, &start);
	kill(pid, SIGKILL);
	TEST_ASSERT_EQ(waitpid(pid, &status, 0), pid);
	clock_gettime(CLOCK_MONOTONIC, &end);
	TEST_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status 0x%x", status);
	ms = (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000;
	pr_info("Ended %ld ms after the signal\n", ms);
	/* Left to itself, it takes more than a minute on the fastest machine. */
	TEST_ASSERT(ms < 30000, "It went on for %ld ms", ms);
	close(pipefd[0]);
	close(pipefd[1]);
}

struct getter {
	struct kvm_vcpu *vcpu;
	struct many_regs *regs;
	u8 *data;
	atomic_bool started;
	atomic_bool done;
};

static void *getter_fn(void *arg)
{
	struct getter *getter = arg;

	atomic_store(&getter->started, true);
	get_many_regs(getter->vcpu, getter->regs, getter->data);
	atomic_store(&getter->done, true);
	return NULL;
}

/* While the vCPU runs, the call waits, as all vCPU ioctls do. */
TEST_F_TIMEOUT(many_regs, running, SLOW_TIMEOUT)
{
	struct getter getter = { self->vcpu, self->regs, self->many };
	u64 *counter = addr_gva2hva(self->vm, (gva_t)&guest_counter);
	struct run_thread rt;
	pthread_t thread;
	u64 old;

	TEST_REQUIRE(kvm_has_cap(KVM_CAP_USER_EXIT));
	run_thread_start(&rt, self->vcpu);
	wait_for_progress(counter, 0);
	kvm_pthread_create(&thread, NULL, getter_fn, &getter);
	while (!atomic_load(&getter.started))
		sched_yield();
	usleep(100000);
	old = READ_ONCE(*counter);
	wait_for_progress(counter, old);
	TEST_ASSERT(!atomic_load(&getter.done), "Registers of a running vCPU");

	vcpu_user_exit(self->vcpu);
	run_thread_expect_request(&rt);
	kvm_pthread_join(thread, NULL);
	TEST_ASSERT(atomic_load(&getter.done), "Not done");
	get_one_by_one(self->vcpu, self->regs, self->one);
	TEST_ASSERT(!memcmp(self->many, self->one, self->regs->size), "Values differ");
}

static void copy_memory(struct kvm_vm *to, struct kvm_vm *from)
{
	struct userspace_mem_region *a = memslot2region(to, 0), *b = memslot2region(from, 0);

	TEST_ASSERT_EQ(a->region.memory_size, b->region.memory_size);
	memcpy(a->host_mem, b->host_mem, a->region.memory_size);
}

/*
 * On arm64 and riscv, all that the guest needs has an id, on x86, only MSRs.  On
 * the others, neither all that it needs has one, nor is the rest copied here.
 */
#if defined(__aarch64__) || defined(__riscv) || defined(__x86_64__)
#define HAS_ALL_STATE	true
#else
#define HAS_ALL_STATE	false
#endif

static void copy_other_state(struct kvm_vcpu *to, struct kvm_vcpu *from)
{
#ifdef __x86_64__
	struct kvm_sregs sregs;
	struct kvm_xsave xsave;
	struct kvm_regs regs;

	vcpu_sregs_get(from, &sregs);
	vcpu_sregs_set(to, &sregs);
	vcpu_regs_get(from, &regs);
	vcpu_regs_set(to, &regs);
	vcpu_ioctl(from, KVM_GET_XSAVE, &xsave);
	vcpu_ioctl(to, KVM_SET_XSAVE, &xsave);
#endif
}

/*
 * A guest is stopped in the middle of its work, saved in one call, and goes on
 * in a new VM.
 */
TEST_F_TIMEOUT(many_regs, save_and_restore, SLOW_TIMEOUT)
{
	struct many_regs *regs;
	u64 *counter, at, expected;
	struct kvm_vcpu *vcpu;
	struct run_thread rt;
	struct kvm_vm *vm;
	u8 *data;

	if (!HAS_ALL_STATE)
		SKIP(return, "The guest's state isn't copied on this architecture");
	TEST_REQUIRE(kvm_has_cap(KVM_CAP_USER_EXIT));
	expected = work(NR_WORK, NULL);

	vcpu_arch_set_entry_point(self->vcpu, guest_work);
	counter = addr_gva2hva(self->vm, (gva_t)&guest_counter);
	run_thread_start(&rt, self->vcpu);
	wait_for_progress(counter, 0);
	vcpu_user_exit(self->vcpu);
	run_thread_expect_request(&rt);
	at = *counter;
	pr_debug("Stopped at %lu of %llu\n", (unsigned long)at, NR_WORK);

	vm = vm_create_with_one_vcpu(&vcpu, NULL);
	regs = usable_regs(vcpu, true);
	data = aligned_alloc(8, regs->size);
	get_many_regs(self->vcpu, regs, data);
	copy_memory(vm, self->vm);
	copy_other_state(vcpu, self->vcpu);
	set_many_regs(vcpu, regs, data);

	vcpu_run(vcpu);
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, UCALL_EXIT_REASON);
	TEST_ASSERT_EQ(READ_ONCE(*(u64 *)addr_gva2hva(vm, (gva_t)&guest_result)), expected);

	free(data);
	regs_free(regs);
	kvm_vm_free(vm);
}

#ifdef __x86_64__
#include "compat_ioctl.h"

TEST_F(many_regs, compat)
{
	struct sigaction old, sa = { .sa_handler = compat_handler };
	struct many_regs *regs = self->regs;
	struct kvm_many_regs *arg;
	size_t size = 2 * SZ_64K;
	u8 *low;

	/* Within reach of 32-bit pointers: the struct, the ids, the values. */
	low = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	TEST_ASSERT(low != MAP_FAILED, "mmap(), errno = %d", errno);
	memcpy(low + SZ_32K, regs->ids, regs->nr * sizeof(u64));
	TEST_ASSERT(regs->size <= SZ_64K, "Too many registers");
	arg = (void *)low;
	*arg = (struct kvm_many_regs) {
		.nr = regs->nr,
		.ids = (u64)low + SZ_32K,
		.data = (u64)low + SZ_64K,
		.data_size = regs->size,
	};

	sigaction(SIGSEGV, &sa, &old);
	if (sigsetjmp(compat_jmp, 1)) {
		sigaction(SIGSEGV, &old, NULL);
		SKIP(return, "No 32-bit system calls");
	}
	TEST_ASSERT_EQ(compat_ioctl(self->vcpu->fd, KVM_GET_MANY_REGS, (u32)(u64)arg), 0);
	sigaction(SIGSEGV, &old, NULL);
	TEST_ASSERT_EQ(arg->nr, regs->nr);
	TEST_ASSERT(!memcmp(low + SZ_64K, self->one, regs->size), "Values differ");

	arg->data_size--;
	TEST_ASSERT_EQ(compat_ioctl(self->vcpu->fd, KVM_GET_MANY_REGS, (u32)(u64)arg), -E2BIG);
	TEST_ASSERT_EQ(arg->nr, regs->nr - 1);
	arg->nr = 1;
	TEST_ASSERT_EQ(compat_ioctl(self->vcpu->fd, KVM_SET_MANY_REGS, (u32)(u64)arg), 0);
	TEST_ASSERT_EQ(arg->nr, 1);
	munmap(low, size);
}
#endif

int main(int argc, char *argv[])
{
	TEST_REQUIRE(kvm_has_cap(KVM_CAP_MANY_REGS));

	return test_harness_run(argc, argv);
}
