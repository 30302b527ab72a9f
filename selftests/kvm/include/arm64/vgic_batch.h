/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of KVM_DEV_ARM_VGIC_GRP_BATCH_REGS share: the registers that a
 * VMM saves and restores, and access to them in one call and one by one.
 */
#ifndef SELFTEST_KVM_VGIC_BATCH_H
#define SELFTEST_KVM_VGIC_BATCH_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/sizes.h>

#include "gic.h"
#include "gic_v3.h"
#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"
#include "vgic.h"

struct gic_regs {
	u32 nr;
	u32 max;
	struct kvm_arm_vgic_batch_entry *entries;
};

static inline void gic_regs_add(struct gic_regs *regs, u32 group, u64 attr, u64 val)
{
	if (regs->nr == regs->max) {
		regs->max = regs->max ? regs->max * 2 : 1024;
		regs->entries = realloc(regs->entries, regs->max * sizeof(*regs->entries));
		TEST_ASSERT(regs->entries, "no memory for %u entries", regs->max);
	}

	regs->entries[regs->nr++] = (struct kvm_arm_vgic_batch_entry) {
		.group = group,
		.attr = attr,
		.val = val,
	};
}

static inline void gic_regs_free(struct gic_regs *regs)
{
	free(regs->entries);
	memset(regs, 0, sizeof(*regs));
}

/* The affinity of a vCPU, where attributes have it. */
static inline u64 gic_attr_mpidr(struct kvm_vcpu *vcpu)
{
	u64 mpidr = vcpu_get_reg(vcpu, KVM_ARM64_SYS_REG(SYS_MPIDR_EL1));
	u64 aff3 = (mpidr >> 32) & 0xff;

	return (aff3 << 24 | (mpidr & 0xffffff)) << KVM_DEV_ARM_VGIC_V3_MPIDR_SHIFT;
}

/* Attributes have the encoding that ids of KVM_{GET,SET}_ONE_REG have, too. */
static inline u64 gic_attr_sysreg(u32 reg)
{
	return KVM_ARM64_SYS_REG(reg) & KVM_DEV_ARM_VGIC_SYSREG_INSTR_MASK;
}

static inline bool gic_reg_is_64bit(u32 group)
{
	return group == KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS;
}

/* One register, with the group's own ioctl. */
static inline int __gic_single(int fd, bool set, struct kvm_arm_vgic_batch_entry *entry)
{
	u32 val32 = entry->val;
	void *val = gic_reg_is_64bit(entry->group) ? (void *)&entry->val : &val32;
	int ret;

	if (set)
		return __kvm_device_attr_set(fd, entry->group, entry->attr, val);

	ret = __kvm_device_attr_get(fd, entry->group, entry->attr, val);
	if (!ret && !gic_reg_is_64bit(entry->group))
		entry->val = val32;
	return ret;
}

static inline void gic_single(int fd, bool set, struct gic_regs *regs)
{
	u32 i;

	for (i = 0; i < regs->nr; i++)
		TEST_ASSERT(!__gic_single(fd, set, &regs->entries[i]),
			    "%s of group %u, 0x%lx: errno = %d", set ? "set" : "get",
			    regs->entries[i].group, (unsigned long)regs->entries[i].attr, errno);
}

/* All of them in one call. */
static inline int __gic_batch(int fd, bool set, struct kvm_arm_vgic_batch_entry *entries,
			      u32 nr, u32 *done)
{
	struct kvm_arm_vgic_batch batch = {
		.nr = nr,
		.entries = (u64)(unsigned long)entries,
	};
	int ret;

	if (set)
		ret = __kvm_device_attr_set(fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0, &batch);
	else
		ret = __kvm_device_attr_get(fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0, &batch);

	*done = batch.nr;
	return ret;
}

static inline void gic_batch(int fd, bool set, struct gic_regs *regs)
{
	u32 done;
	int ret = __gic_batch(fd, set, regs->entries, regs->nr, &done);

	TEST_ASSERT(!ret && done == regs->nr,
		    "%s of %u: ret = %d, errno = %d, %u done, next is group %u, 0x%lx",
		    set ? "set" : "get", regs->nr, ret, errno, done,
		    done < regs->nr ? regs->entries[done].group : 0,
		    done < regs->nr ? (unsigned long)regs->entries[done].attr : 0);
}

static inline bool gic_has_batch(int fd)
{
	return !__kvm_has_device_attr(fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0);
}

/*
 * All registers that have state, in an order in which they can be restored: the
 * distributor's enable bits before what is pending, which isn't forwarded
 * without them, and the addresses of tables before what enables LPIs.
 */
static inline void gic_v3_regs(struct gic_regs *regs, int fd, struct kvm_vcpu **vcpus,
			       int nr_vcpus, int nr_irqs)
{
	static const u32 sysregs[] = {
		SYS_ICC_SRE_EL1, SYS_ICC_CTLR_EL1, SYS_ICC_IGRPEN0_EL1, SYS_ICC_IGRPEN1_EL1,
		SYS_ICC_PMR_EL1, SYS_ICC_BPR0_EL1, SYS_ICC_BPR1_EL1,
		SYS_ICC_AP0R0_EL1, SYS_ICC_AP0R1_EL1, SYS_ICC_AP0R2_EL1, SYS_ICC_AP0R3_EL1,
		SYS_ICC_AP1R0_EL1, SYS_ICC_AP1R1_EL1, SYS_ICC_AP1R2_EL1, SYS_ICC_AP1R3_EL1,
	};
	static const u32 redist[] = {
		GICR_STATUSR, GICR_WAKER, GICR_PROPBASER, GICR_PROPBASER + 4,
		GICR_PENDBASER, GICR_PENDBASER + 4, GICR_CTLR,
		SZ_64K + GICR_IGROUPR0, SZ_64K + GICR_ICFGR0 + 4,
		SZ_64K + GICR_ISPENDR0, SZ_64K + GICR_ISACTIVER0, SZ_64K + GICR_ISENABLER0,
	};
	bool has[ARRAY_SIZE(sysregs)];
	u64 mpidr;
	int i, irq;
	u32 j;

	gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_CTLR, 0);

	for (i = 0; i < nr_vcpus; i++) {
		mpidr = gic_attr_mpidr(vcpus[i]);

		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO, mpidr, 0);
		for (irq = 0; irq < MIN_SPI; irq += 4)
			gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
				     mpidr | (SZ_64K + GICR_IPRIORITYR0 + irq), 0);
		for (j = 0; j < ARRAY_SIZE(redist); j++)
			gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
				     mpidr | redist[j], 0);
	}

	gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_STATUSR, 0);
	for (irq = MIN_SPI; irq < nr_irqs && irq <= MAX_SPI; irq++) {
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_IROUTER + irq * 8, 0);
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_IROUTER + irq * 8 + 4, 0);
	}
	for (irq = MIN_SPI; irq < nr_irqs; irq += 4)
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_IPRIORITYR + irq, 0);
	for (irq = MIN_SPI; irq < nr_irqs; irq += 16)
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_ICFGR + irq / 4, 0);
	for (irq = MIN_SPI; irq < nr_irqs; irq += 32) {
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO, irq, 0);
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_IGROUPR + irq / 8, 0);
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_ISPENDR + irq / 8, 0);
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_ISACTIVER + irq / 8, 0);
		gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_ISENABLER + irq / 8, 0);
	}

	/* How many registers of active priorities there are depends on the host. */
	for (j = 0; j < ARRAY_SIZE(sysregs); j++) {
		struct kvm_arm_vgic_batch_entry entry = {
			.group = KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
			.attr = gic_attr_mpidr(vcpus[0]) | gic_attr_sysreg(sysregs[j]),
		};

		has[j] = !__gic_single(fd, false, &entry);
	}

	for (i = 0; i < nr_vcpus; i++) {
		mpidr = gic_attr_mpidr(vcpus[i]);

		for (j = 0; j < ARRAY_SIZE(sysregs); j++)
			if (has[j])
				gic_regs_add(regs, KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
					     mpidr | gic_attr_sysreg(sysregs[j]), 0);
	}
}

/*
 * What to set to make another GIC the same as @saved: a register that sets bits
 * can't clear those that are set, so all are cleared before.
 */
static inline void gic_v3_restore_regs(struct gic_regs *regs, struct gic_regs *saved)
{
	struct kvm_arm_vgic_batch_entry *e;
	u64 offset;
	u32 i;

	for (i = 0; i < saved->nr; i++) {
		e = &saved->entries[i];
		offset = e->attr & KVM_DEV_ARM_VGIC_OFFSET_MASK;

		if (e->group == KVM_DEV_ARM_VGIC_GRP_REDIST_REGS) {
			if (offset < SZ_64K)
				offset = 0;
			else
				offset -= SZ_64K;
		} else if (e->group != KVM_DEV_ARM_VGIC_GRP_DIST_REGS) {
			offset = 0;
		}

		if ((offset >= GICD_ISENABLER && offset < GICD_ICENABLER) ||
		    (offset >= GICD_ISACTIVER && offset < GICD_ICACTIVER))
			gic_regs_add(regs, e->group, e->attr + GICD_ICENABLER - GICD_ISENABLER,
				     0xffffffff);
		gic_regs_add(regs, e->group, e->attr, e->val);
	}
}

#endif /* SELFTEST_KVM_VGIC_BATCH_H */
