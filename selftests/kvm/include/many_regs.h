/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of KVM_{GET,SET}_MANY_REGS share: the registers that there are,
 * and where their values are in a block.
 */
#ifndef SELFTEST_KVM_MANY_REGS_H
#define SELFTEST_KVM_MANY_REGS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"

/* The largest size that an id can have. */
#define MAX_REG_SIZE	32768

struct many_regs {
	u64 nr;
	u64 *ids;
	u64 size;	/* bytes of all values */
};

/* The memory that a value takes. */
static inline u64 reg_slot(u64 id)
{
	return (KVM_REG_SIZE(id) + 7ull) & ~7ull;
}

static inline u64 regs_size(const u64 *ids, u64 nr)
{
	u64 i, size = 0;

	for (i = 0; i < nr; i++)
		size += reg_slot(ids[i]);
	return size;
}

static inline int __one_reg(struct kvm_vcpu *vcpu, bool set, u64 id, void *data)
{
	struct kvm_one_reg reg = { .id = id, .addr = (u64)(unsigned long)data };

	if (set)
		return __vcpu_ioctl(vcpu, KVM_SET_ONE_REG, &reg);
	return __vcpu_ioctl(vcpu, KVM_GET_ONE_REG, &reg);
}

static inline int __many_regs(struct kvm_vcpu *vcpu, bool set, const u64 *ids,
			      u32 nr, void *data, u64 data_size, u32 *done)
{
	struct kvm_many_regs regs = {
		.nr = nr,
		.ids = (u64)(unsigned long)ids,
		.data = (u64)(unsigned long)data,
		.data_size = data_size,
	};
	int ret;

	if (set)
		ret = __vcpu_ioctl(vcpu, KVM_SET_MANY_REGS, &regs);
	else
		ret = __vcpu_ioctl(vcpu, KVM_GET_MANY_REGS, &regs);

	*done = regs.nr;
	return ret;
}

static inline void get_many_regs(struct kvm_vcpu *vcpu, struct many_regs *regs, void *data)
{
	u32 done;
	int ret = __many_regs(vcpu, false, regs->ids, regs->nr, data, regs->size, &done);

	TEST_ASSERT(!ret && done == regs->nr,
		    "KVM_GET_MANY_REGS: ret = %d, errno = %d, %u of %lu done, next is 0x%lx",
		    ret, errno, done, (unsigned long)regs->nr,
		    done < regs->nr ? (unsigned long)regs->ids[done] : 0);
}

static inline void set_many_regs(struct kvm_vcpu *vcpu, struct many_regs *regs, void *data)
{
	u32 done;
	int ret = __many_regs(vcpu, true, regs->ids, regs->nr, data, regs->size, &done);

	TEST_ASSERT(!ret && done == regs->nr,
		    "KVM_SET_MANY_REGS: ret = %d, errno = %d, %u of %lu done, next is 0x%lx",
		    ret, errno, done, (unsigned long)regs->nr,
		    done < regs->nr ? (unsigned long)regs->ids[done] : 0);
}

/* Registers that have another value each time they are read. */
static inline bool reg_is_counter(u64 id)
{
#if defined(__aarch64__)
	return id == KVM_REG_ARM_TIMER_CNT || id == KVM_REG_ARM_PTIMER_CNT;
#elif defined(__riscv)
	return id == RISCV_TIMER_REG(time);
#elif defined(__x86_64__)
	switch ((u32)id) {
	case MSR_IA32_TSC:
	case MSR_IA32_MPERF:
	case MSR_IA32_APERF:
	case 0x40000010: /* HV_X64_MSR_VP_RUNTIME */
	case 0x40000020: /* HV_X64_MSR_TIME_REF_COUNT */
		return true;
	}
	return false;
#elif defined(__s390x__)
	return id == KVM_REG_S390_CPU_TIMER;
#elif defined(__loongarch__)
	return id == KVM_REG_LOONGARCH_COUNTER;
#else
	return false;
#endif
}

/* Registers of 8 bytes that take any value, and have no effect on others. */
static inline bool reg_is_plain(u64 id)
{
#if defined(__aarch64__)
	return (id & KVM_REG_ARM_COPROC_MASK) == KVM_REG_ARM_CORE &&
	       id >= ARM64_CORE_REG(regs.regs[0]) && id <= ARM64_CORE_REG(regs.regs[30]);
#elif defined(__riscv)
	return (id & KVM_REG_RISCV_TYPE_MASK) == KVM_REG_RISCV_CORE &&
	       id >= RISCV_CORE_REG(regs.ra) && id <= RISCV_CORE_REG(regs.t6);
#elif defined(__x86_64__)
	switch ((u32)id) {
	case MSR_STAR:
	case MSR_LSTAR:
	case MSR_CSTAR:
	case MSR_IA32_SYSENTER_EIP:
	case MSR_IA32_SYSENTER_ESP:
		return true;
	}
	return false;
#elif defined(__s390x__)
	return id == KVM_REG_S390_PFCOMPARE || id == KVM_REG_S390_PFSELECT ||
	       id == KVM_REG_S390_GBEA || id == KVM_REG_S390_PP;
#elif defined(__loongarch__)
	/* KS0 to KS7 */
	return id >= KVM_IOC_CSRID(0x30) && id <= KVM_IOC_CSRID(0x37);
#else
	return false;
#endif
}

/* All ids that the architecture can name, or has in its list. */
static inline struct many_regs *all_regs(struct kvm_vcpu *vcpu)
{
	struct many_regs *regs = calloc(1, sizeof(*regs));
#if defined(__aarch64__) || defined(__riscv)
	struct kvm_reg_list *list = vcpu_get_reg_list(vcpu);

	regs->nr = list->n;
	regs->ids = calloc(list->n, sizeof(u64));
	memcpy(regs->ids, list->reg, list->n * sizeof(u64));
	free(list);
#elif defined(__x86_64__)
	const struct kvm_msr_list *list = kvm_get_msr_index_list();

	regs->ids = calloc(list->nmsrs, sizeof(u64));
	for (regs->nr = 0; regs->nr < list->nmsrs; regs->nr++)
		regs->ids[regs->nr] = KVM_X86_REG_MSR(list->indices[regs->nr]);
#elif defined(__s390x__)
	static const u64 ids[] = {
		KVM_REG_S390_TODPR, KVM_REG_S390_EPOCHDIFF, KVM_REG_S390_CPU_TIMER,
		KVM_REG_S390_CLOCK_COMP, KVM_REG_S390_PFTOKEN, KVM_REG_S390_PFCOMPARE,
		KVM_REG_S390_PFSELECT, KVM_REG_S390_PP, KVM_REG_S390_GBEA,
	};

	regs->nr = ARRAY_SIZE(ids);
	regs->ids = calloc(regs->nr, sizeof(u64));
	memcpy(regs->ids, ids, sizeof(ids));
#elif defined(__loongarch__)
	/* Unknown ones are left out. */
	regs->ids = calloc(0x40, sizeof(u64));
	for (regs->nr = 0; regs->nr < 0x40; regs->nr++)
		regs->ids[regs->nr] = KVM_IOC_CSRID(regs->nr);
#endif
	return regs;
}

static inline void regs_free(struct many_regs *regs)
{
	free(regs->ids);
	free(regs);
}

/*
 * The registers that can be got with KVM_GET_ONE_REG, and if @set, can be set to
 * the value that they have.
 */
static inline struct many_regs *usable_regs(struct kvm_vcpu *vcpu, bool set)
{
	struct many_regs *regs = all_regs(vcpu);
	u8 val[MAX_REG_SIZE] __aligned(8);
	u64 i, n = 0, id;

	for (i = 0; i < regs->nr; i++) {
		id = regs->ids[i];
		TEST_ASSERT(KVM_REG_SIZE(id) <= sizeof(val), "0x%lx is too large",
			    (unsigned long)id);
		if (__one_reg(vcpu, false, id, val))
			continue;
		if (set && (reg_is_counter(id) || __one_reg(vcpu, true, id, val)))
			continue;
		regs->ids[n++] = id;
	}
	regs->nr = n;
	regs->size = regs_size(regs->ids, n);
	TEST_ASSERT(n > 4, "Only %lu registers", (unsigned long)n);
	return regs;
}

/*
 * If the new value of a register can't be read, or only its first part, the
 * register keeps the value it has.
 */
static inline void expect_set_fault(struct kvm_vcpu *vcpu, u64 id)
{
	const size_t page = getpagesize(), size = reg_slot(id);
	u8 before[MAX_REG_SIZE] __aligned(8) = {}, after[MAX_REG_SIZE] __aligned(8) = {};
	u8 *mem, *data;
	u32 done;
	int ret;

	if (size > page)
		return;

	mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(mem != MAP_FAILED && !mprotect(mem + page, page, PROT_NONE),
		    "No memory, errno = %d", errno);
	memset(mem, 0x5a, page);
	data = mem + page - (size - 8);

	TEST_ASSERT(!__one_reg(vcpu, false, id, before), "get, errno = %d", errno);
	ret = __many_regs(vcpu, true, &id, 1, data, size, &done);
	TEST_ASSERT(ret == -1 && errno == EFAULT && !done,
		    "0x%lx: ret = %d, errno = %d, %u done", (unsigned long)id, ret, errno, done);
	TEST_ASSERT(__one_reg(vcpu, true, id, data) == -1,
		    "0x%lx was set from memory that can't be read", (unsigned long)id);
	TEST_ASSERT(!__one_reg(vcpu, false, id, after), "get, errno = %d", errno);
	TEST_ASSERT(!memcmp(before, after, size), "0x%lx was changed", (unsigned long)id);

	/* And the same for getting it. */
	ret = __many_regs(vcpu, false, &id, 1, data, size, &done);
	TEST_ASSERT(ret == -1 && errno == EFAULT && !done,
		    "0x%lx: ret = %d, errno = %d, %u done", (unsigned long)id, ret, errno, done);
	munmap(mem, 2 * page);
}

#endif /* SELFTEST_KVM_MANY_REGS_H */
