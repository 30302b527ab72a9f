// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test KVM_FEATURE_PV_TLB_FLUSH, the host's side: who may enable it, that a flush
 * which the guest left to the host is done before the vCPU runs again, whatever
 * happened to the page in between, and that a vCPU is marked as preempted only
 * where a flush may wait.
 *
 * A translation that isn't flushed may stay in the TLB or not, so a test that a
 * flush was done can't fail on every machine and every time if it wasn't.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <asm/kvm.h>
#include <asm/kvm_para.h>

#include "kvm_test_harness.h"
#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"
#include "ucall_common.h"

/* Seconds, for a guest in an emulator with a debug kernel. */
#define SLOW_TIMEOUT		300

#define ST_GPA			0x40000000ul
#define ST_SLOT			10
#define ST_PAGES		2
#define KVM_STEAL_PHYS_VALID	BIT_ULL(0)
#define KVM_VCPU_PREEMPTED	BIT(0)
#define KVM_VCPU_FLUSH_TLB	BIT(1)

struct kvm_steal_time {
	u64 steal;
	u32 version;
	u32 flags;
	u8 preempted;
	u8 pad[47];
};

#define PV_BITS		(BIT(KVM_FEATURE_STEAL_TIME) | BIT(KVM_FEATURE_PREEMPT))
#define ALL_BITS	(PV_BITS | BIT(KVM_FEATURE_PV_TLB_FLUSH))

#define PAD_BYTE	0xa7

/* As many preemptions as say that something would have been seen by now */
#define PREEMPTIONS	50

/* Both ways to flush are to be taken as often, but not for longer than seconds. */
#define FLUSHES		200
#define FLUSH_SECONDS	60

/* Pages that the guest sees one after the other at the same address */
#define NR_PAGES	16

struct shared {
	u64 st;			/* struct kvm_steal_time of vCPU 0 */
	u64 alias;		/* where the pages are mapped */
	u64 ptes;		/* the pair of entries that maps them */
	u64 pages[NR_PAGES];	/* where they are mapped as well */
	u64 entries[NR_PAGES];	/* what to put there */
	u64 irqs;		/* vCPU 0 runs with interrupts enabled */
	u64 flushed, ipi, deferred, sent, looks, stop, cpucfg;
};

static struct shared shared;

struct pv_vm {
	struct kvm_vm *vm;
	struct kvm_vcpu *vcpu[2];
	struct kvm_steal_time *st;
	struct shared *shared;
};

static int pv_get(struct kvm_vcpu *vcpu, u64 *bits)
{
	return __vcpu_device_attr_get(vcpu, KVM_LOONGARCH_VCPU_CPUCFG, CPUCFG_KVM_FEATURE,
				      bits);
}

static int pv_set(struct kvm_vcpu *vcpu, u64 bits)
{
	return __vcpu_device_attr_set(vcpu, KVM_LOONGARCH_VCPU_CPUCFG, CPUCFG_KVM_FEATURE,
				      &bits);
}

static int st_set(struct kvm_vcpu *vcpu, u64 addr)
{
	return __vcpu_device_attr_set(vcpu, KVM_LOONGARCH_VCPU_PVTIME_CTRL,
				      KVM_LOONGARCH_VCPU_PVTIME_GPA, &addr);
}

static bool vm_has_pv_tlb_flush(struct kvm_vm *vm)
{
	return !__kvm_has_device_attr(vm->fd, KVM_LOONGARCH_VM_FEAT_CTRL,
				      KVM_LOONGARCH_VM_FEAT_PV_TLB_FLUSH);
}

static u64 *find_pte(struct kvm_vm *vm, u64 gva)
{
	unsigned int bits = vm->page_shift - 3;
	u64 table = vm->mmu.pgd, *entry = NULL;
	int level;

	for (level = vm->mmu.pgtable_levels - 1; level >= 0; level--) {
		entry = addr_gpa2hva(vm, table);
		entry += (gva >> (vm->page_shift + level * bits)) & (BIT(bits) - 1);
		table = *entry & ~(vm->page_size - 1ul);
	}

	return entry;
}

static void pv_vm_create(struct pv_vm *v, int vcpus, void *guest_code, u64 bits)
{
	u64 gva, pte_gpa, *pte;
	int i;

	memset(v, 0, sizeof(*v));
	memset(&shared, 0, sizeof(shared));
	v->vm = vm_create(vcpus);
	for (i = 0; i < vcpus; i++)
		v->vcpu[i] = vm_vcpu_add(v->vm, i, guest_code);
	for (i = 0; i < vcpus; i++)
		if (bits)
			TEST_ASSERT(!pv_set(v->vcpu[i], bits), "errno = %d", errno);

	/* The steal time has a memslot of its own, the guest's stack must stay. */
	vm_userspace_mem_region_add(v->vm, VM_MEM_SRC_ANONYMOUS, ST_GPA, ST_SLOT, ST_PAGES,
				    KVM_MEM_LOG_DIRTY_PAGES);
	virt_map(v->vm, ST_GPA, ST_GPA, ST_PAGES);
	v->st = addr_gpa2hva(v->vm, ST_GPA);
	shared.st = ST_GPA;

	gva = vm_alloc(v->vm, (NR_PAGES + 4) * v->vm->page_size, KVM_UTIL_MIN_VADDR);
	for (i = 0; i < NR_PAGES; i++) {
		shared.pages[i] = gva + i * v->vm->page_size;
		shared.entries[i] = *find_pte(v->vm, shared.pages[i]);
		*(u64 *)addr_gva2hva(v->vm, shared.pages[i]) = i;
	}
	/* An even page, since an entry of the TLB has two */
	shared.alias = gva + NR_PAGES * v->vm->page_size;
	if (shared.alias & v->vm->page_size)
		shared.alias += v->vm->page_size;
	pte = find_pte(v->vm, shared.alias);
	*pte = shared.entries[0];

	/* The guest's own way to the entry */
	pte_gpa = addr_hva2gpa(v->vm, pte);
	gva = vm_unused_gva_gap(v->vm, v->vm->page_size, KVM_UTIL_MIN_VADDR);
	virt_map(v->vm, gva, pte_gpa & ~(v->vm->page_size - 1ul), 1);
	shared.ptes = gva + (pte_gpa & (v->vm->page_size - 1));

	sync_global_to_guest(v->vm, shared);
	v->shared = addr_gva2hva(v->vm, (gva_t)&shared);

	if (vcpus && (bits & BIT(KVM_FEATURE_STEAL_TIME)))
		TEST_ASSERT(!st_set(v->vcpu[0], ST_GPA | KVM_STEAL_PHYS_VALID), "errno = %d",
			    errno);
}

static void run_to_sync(struct kvm_vcpu *vcpu, u64 *val)
{
	struct ucall uc;

	vcpu_run(vcpu);
	switch (get_ucall(vcpu, &uc)) {
	case UCALL_SYNC:
		*val = uc.args[1];
		break;
	case UCALL_ABORT:
		REPORT_GUEST_ASSERT(uc);
	default:
		TEST_FAIL("unexpected exit: %s", exit_reason_str(vcpu->run->exit_reason));
	}
}

/* What the guest sees in the page that's mapped at the alias, for ever */
static void guest_look(void)
{
	for (;;)
		GUEST_SYNC(READ_ONCE(*(u64 *)shared.alias));
}

static u64 look(struct pv_vm *v)
{
	u64 val;

	run_to_sync(v->vcpu[0], &val);
	return val;
}

/* Map another page while the vCPU doesn't run, and nobody flushes. */
static void map_page(struct pv_vm *v, int i)
{
	WRITE_ONCE(*find_pte(v->vm, shared.alias), shared.entries[i]);
}

static void set_byte(struct pv_vm *v, u8 byte)
{
	memset(v->st->pad, PAD_BYTE, sizeof(v->st->pad));
	WRITE_ONCE(v->st->preempted, byte);
}

static void assert_taken(struct pv_vm *v)
{
	unsigned int i;

	TEST_ASSERT_EQ(READ_ONCE(v->st->preempted), 0);
	for (i = 0; i < sizeof(v->st->pad); i++)
		TEST_ASSERT(v->st->pad[i] == PAD_BYTE, "pad[%u] = %#x", i, v->st->pad[i]);
}

FIXTURE(pv_tlb_flush) {
};

FIXTURE_SETUP(pv_tlb_flush)
{
}

FIXTURE_TEARDOWN(pv_tlb_flush)
{
}

TEST_F(pv_tlb_flush, probe)
{
	struct pv_vm v;
	u64 bits;

	pv_vm_create(&v, 1, guest_look, 0);
	TEST_ASSERT(vm_has_pv_tlb_flush(v.vm), "errno = %d", errno);

	/* What every VM has without being asked doesn't include it. */
	TEST_ASSERT(!pv_get(v.vcpu[0], &bits), "errno = %d", errno);
	TEST_ASSERT(!(bits & BIT(KVM_FEATURE_PV_TLB_FLUSH)), "%#lx", bits);
	kvm_vm_free(v.vm);
}

TEST_F(pv_tlb_flush, refused)
{
	static const u64 bad[] = {
		BIT(KVM_FEATURE_PV_TLB_FLUSH),
		BIT(KVM_FEATURE_PV_TLB_FLUSH) | BIT(KVM_FEATURE_IPI),
		BIT(KVM_FEATURE_PV_TLB_FLUSH) | BIT(KVM_FEATURE_PREEMPT),
		BIT(KVM_FEATURE_PV_TLB_FLUSH) | BIT(KVM_FEATURE_STEAL_TIME),
		ALL_BITS | BIT(0),
		ALL_BITS | BIT(KVM_FEATURE_PV_TLB_FLUSH + 1),
		ALL_BITS | BIT_ULL(32),
		ALL_BITS | BIT_ULL(63),
	};
	u64 before, after;
	struct pv_vm v;
	unsigned int i;

	pv_vm_create(&v, 2, guest_look, 0);
	TEST_ASSERT(!pv_get(v.vcpu[0], &before), "errno = %d", errno);

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		TEST_ASSERT(pv_set(v.vcpu[0], bad[i]) == -1 && errno == EINVAL,
			    "%#lx: errno = %d", bad[i], errno);
		TEST_ASSERT(!pv_get(v.vcpu[0], &after) && after == before,
			    "%#lx: %#lx to %#lx", bad[i], before, after);
	}
	TEST_ASSERT(__vcpu_device_attr_set(v.vcpu[0], KVM_LOONGARCH_VCPU_CPUCFG,
					   CPUCFG_KVM_FEATURE, (void *)8) == -1 &&
		    errno == EFAULT, "errno = %d", errno);

	TEST_ASSERT(!pv_set(v.vcpu[0], ALL_BITS), "errno = %d", errno);
	TEST_ASSERT(!pv_get(v.vcpu[1], &after) && after == ALL_BITS, "%#lx", after);

	/* One for all vCPUs */
	TEST_ASSERT(pv_set(v.vcpu[1], PV_BITS) == -1 && errno == EINVAL, "errno = %d", errno);
	TEST_ASSERT(!pv_set(v.vcpu[1], ALL_BITS), "errno = %d", errno);
	kvm_vm_free(v.vm);
}

static void guest_cpucfg(void)
{
	GUEST_SYNC(read_cpucfg(CPUCFG_KVM_FEATURE));
}

TEST_F(pv_tlb_flush, guest_sees_what_is_enabled)
{
	const u64 bits[] = { 0, PV_BITS, ALL_BITS };
	struct pv_vm v;
	unsigned int i;
	u64 val;

	for (i = 0; i < ARRAY_SIZE(bits); i++) {
		pv_vm_create(&v, 1, guest_cpucfg, bits[i]);
		run_to_sync(v.vcpu[0], &val);
		TEST_ASSERT_EQ(!!(val & BIT(KVM_FEATURE_PV_TLB_FLUSH)), i == 2);
		kvm_vm_free(v.vm);
	}
}

TEST_F(pv_tlb_flush, flush_is_done)
{
	/* The last ones have bits that mean nothing yet. */
	static const u8 bytes[] = {
		KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB,
		KVM_VCPU_FLUSH_TLB,
		0xff,
		0xfe,
	};
	struct pv_vm v;
	unsigned int i;

	pv_vm_create(&v, 1, guest_look, ALL_BITS);
	TEST_ASSERT_EQ(look(&v), 0);

	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		map_page(&v, i + 1);
		set_byte(&v, bytes[i]);
		TEST_ASSERT(look(&v) == i + 1, "%#x: the page of before", bytes[i]);
		assert_taken(&v);
	}
	kvm_vm_free(v.vm);
}

/* Without a flush, the page of before may be seen, and that's what the others test. */
TEST_F(pv_tlb_flush, no_flush_requested)
{
	struct pv_vm v;
	int i, old = 0;

	pv_vm_create(&v, 1, guest_look, ALL_BITS);
	for (i = 1; i < NR_PAGES; i++) {
		u64 before = look(&v);

		map_page(&v, i);
		set_byte(&v, KVM_VCPU_PREEMPTED);
		old += look(&v) == before;
		assert_taken(&v);

		/* The next one begins with the new page. */
		set_byte(&v, KVM_VCPU_FLUSH_TLB);
		TEST_ASSERT_EQ(look(&v), i);
	}
	ksft_print_msg("the page of before was seen %d times of %d\n", old, NR_PAGES - 1);
	kvm_vm_free(v.vm);
}

TEST_F(pv_tlb_flush, not_enabled)
{
	struct pv_vm v;

	pv_vm_create(&v, 1, guest_look, PV_BITS);
	look(&v);
	set_byte(&v, KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB);
	look(&v);
	assert_taken(&v);
	kvm_vm_free(v.vm);
}

TEST_F(pv_tlb_flush, page_not_accessible)
{
	struct pv_vm v;
	size_t size;

	pv_vm_create(&v, 1, guest_look, ALL_BITS);
	size = ST_PAGES * v.vm->page_size;
	TEST_ASSERT_EQ(look(&v), 0);

	/* Nobody knows whether the guest wanted a flush, so there is one. */
	map_page(&v, 1);
	set_byte(&v, KVM_VCPU_PREEMPTED);
	TEST_ASSERT(!mprotect(v.st, size, PROT_NONE), "errno = %d", errno);
	TEST_ASSERT_EQ(look(&v), 1);

	map_page(&v, 2);
	TEST_ASSERT(!mprotect(v.st, size, PROT_READ), "errno = %d", errno);
	TEST_ASSERT_EQ(look(&v), 2);
	TEST_ASSERT_EQ(v.st->preempted, KVM_VCPU_PREEMPTED);

	TEST_ASSERT(!mprotect(v.st, size, PROT_READ | PROT_WRITE), "errno = %d", errno);
	look(&v);
	assert_taken(&v);
	kvm_vm_free(v.vm);
}

static void st_slot(struct pv_vm *v, u64 size, int flags, void *hva)
{
	int ret = __vm_set_user_memory_region(v->vm, ST_SLOT, flags, ST_GPA, size, hva);

	TEST_ASSERT(!ret, "errno = %d", errno);
}

TEST_F(pv_tlb_flush, memslot_changed)
{
	struct pv_vm v;
	size_t size;
	void *hva;

	pv_vm_create(&v, 1, guest_look, ALL_BITS);
	size = ST_PAGES * v.vm->page_size;
	TEST_ASSERT_EQ(look(&v), 0);

	/* None: a flush */
	map_page(&v, 1);
	set_byte(&v, KVM_VCPU_PREEMPTED);
	st_slot(&v, 0, 0, v.st);
	TEST_ASSERT_EQ(look(&v), 1);
	TEST_ASSERT_EQ(v.st->preempted, KVM_VCPU_PREEMPTED);

	/* Read-only: the same */
	map_page(&v, 2);
	st_slot(&v, size, KVM_MEM_READONLY, v.st);
	TEST_ASSERT_EQ(look(&v), 2);
	TEST_ASSERT_EQ(v.st->preempted, KVM_VCPU_PREEMPTED);

	/* Other memory: what is there is what the guest sees. */
	hva = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(hva != MAP_FAILED, "errno = %d", errno);
	st_slot(&v, 0, 0, v.st);
	memcpy(hva, v.st, size);
	st_slot(&v, size, 0, hva);
	v.st = hva;
	map_page(&v, 3);
	set_byte(&v, KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB);
	TEST_ASSERT_EQ(look(&v), 3);
	assert_taken(&v);
	kvm_vm_free(v.vm);
}

/*
 * Userspace moves the page, drops it, or resets the vCPU: memory may be another
 * one's by then, so nothing is written to it, and nothing is read, so there's a flush.
 */
TEST_F(pv_tlb_flush, page_moved)
{
	struct kvm_steal_time *old;
	struct pv_vm v;
	u64 reset = 0;
	u64 other;
	int i;

	pv_vm_create(&v, 1, guest_look, ALL_BITS);
	other = ST_GPA + v.vm->page_size;
	old = v.st;

	for (i = 0; i < 3; i++) {
		TEST_ASSERT(!st_set(v.vcpu[0], ST_GPA | KVM_STEAL_PHYS_VALID), "errno = %d",
			    errno);
		set_byte(&v, KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB);
		look(&v);
		map_page(&v, i + 1);
		set_byte(&v, KVM_VCPU_PREEMPTED);

		switch (i) {
		case 0:
			TEST_ASSERT(!st_set(v.vcpu[0], other | KVM_STEAL_PHYS_VALID),
				    "errno = %d", errno);
			break;
		case 1:
			TEST_ASSERT(!st_set(v.vcpu[0], 0), "errno = %d", errno);
			break;
		case 2:
			vcpu_set_reg(v.vcpu[0], KVM_REG_LOONGARCH_VCPU_RESET, reset);
			break;
		}
		TEST_ASSERT(look(&v) == i + 1, "%d: the page of before", i);
		TEST_ASSERT_EQ(old->preempted, KVM_VCPU_PREEMPTED);
	}

	/* A bad address changes nothing. */
	TEST_ASSERT(!st_set(v.vcpu[0], ST_GPA | KVM_STEAL_PHYS_VALID), "errno = %d", errno);
	set_byte(&v, KVM_VCPU_PREEMPTED);
	TEST_ASSERT(st_set(v.vcpu[0], other | KVM_STEAL_PHYS_VALID | 2) == -1 &&
		    errno == EINVAL, "errno = %d", errno);
	TEST_ASSERT(st_set(v.vcpu[0], ST_GPA * 8 | KVM_STEAL_PHYS_VALID) == -1 &&
		    errno == EINVAL, "errno = %d", errno);
	look(&v);
	assert_taken(&v);
	kvm_vm_free(v.vm);
}

/* A VM that goes on elsewhere, with what memory and vCPU had */
TEST_F(pv_tlb_flush, restored)
{
	struct pv_vm a, b;
	u64 bits, addr;

	pv_vm_create(&a, 1, guest_look, ALL_BITS);
	look(&a);
	set_byte(&a, KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB);
	TEST_ASSERT(!pv_get(a.vcpu[0], &bits), "errno = %d", errno);
	TEST_ASSERT_EQ(bits, ALL_BITS);
	TEST_ASSERT(!__vcpu_device_attr_get(a.vcpu[0], KVM_LOONGARCH_VCPU_PVTIME_CTRL,
					    KVM_LOONGARCH_VCPU_PVTIME_GPA, &addr),
		    "errno = %d", errno);

	pv_vm_create(&b, 1, guest_look, 0);
	TEST_ASSERT(!pv_set(b.vcpu[0], bits), "errno = %d", errno);
	TEST_ASSERT(!st_set(b.vcpu[0], addr), "errno = %d", errno);
	TEST_ASSERT_EQ(look(&b), 0);
	map_page(&b, 1);
	memcpy(b.st, a.st, sizeof(*b.st));
	TEST_ASSERT_EQ(look(&b), 1);
	assert_taken(&b);
	kvm_vm_free(a.vm);
	kvm_vm_free(b.vm);
}

TEST_F(pv_tlb_flush, page_is_dirty)
{
	unsigned long bitmap = 0;
	struct pv_vm v;

	pv_vm_create(&v, 1, guest_look, ALL_BITS);
	set_byte(&v, KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB);
	kvm_vm_get_dirty_log(v.vm, ST_SLOT, &bitmap);
	bitmap = 0;
	look(&v);
	assert_taken(&v);
	kvm_vm_get_dirty_log(v.vm, ST_SLOT, &bitmap);
	TEST_ASSERT_EQ(bitmap, 1);
	kvm_vm_free(v.vm);
}

/*
 * Preemption: the vCPU and others, who never sleep, share a CPU.
 */
struct hogs {
	pthread_t thread[2];
	bool stop;
	int cpu, other_cpu;
};

static void pin(int cpu)
{
	pin_task_to_cpu(pthread_self(), cpu);
}

static void *hog(void *data)
{
	struct hogs *h = data;

	pin(h->cpu);
	while (!READ_ONCE(h->stop))
		cpu_relax();
	return NULL;
}

/* With one only, nobody can look while the vCPU is preempted. */
static void require_two_cpus(void)
{
	cpu_set_t set;

	TEST_ASSERT(!sched_getaffinity(0, sizeof(set), &set), "errno = %d", errno);
	TEST_REQUIRE(CPU_COUNT(&set) > 1);
}

static void find_cpus(struct hogs *h)
{
	cpu_set_t set;
	unsigned int i;

	memset(h, 0, sizeof(*h));
	h->cpu = -1;
	h->other_cpu = -1;
	TEST_ASSERT(!sched_getaffinity(0, sizeof(set), &set), "errno = %d", errno);
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		if (h->other_cpu < 0)
			h->other_cpu = i;
		else if (h->cpu < 0)
			h->cpu = i;
	}
	TEST_ASSERT(h->cpu >= 0, "one CPU");
}

static void hogs_start(struct hogs *h)
{
	unsigned int i;

	find_cpus(h);
	pin(h->other_cpu);
	for (i = 0; i < ARRAY_SIZE(h->thread); i++)
		TEST_ASSERT(!pthread_create(&h->thread[i], NULL, hog, h), "no thread");
}

static void hogs_stop(struct hogs *h)
{
	unsigned int i;

	WRITE_ONCE(h->stop, true);
	for (i = 0; i < ARRAY_SIZE(h->thread); i++)
		pthread_join(h->thread[i], NULL);
}

struct runner {
	struct pv_vm *v;
	struct kvm_vcpu *vcpu;
	pthread_t thread;
	int cpu;
	pid_t tid;
	bool done;
	unsigned long exits, marked_at_exit;
};

/* Runs the vCPU until the guest says that it's done. */
static void *run_vcpu(void *data)
{
	struct runner *r = data;
	struct ucall uc;

	pin(r->cpu);
	WRITE_ONCE(r->tid, gettid());
	do {
		vcpu_run(r->vcpu);
		r->exits++;
		r->marked_at_exit += !!(READ_ONCE(r->v->st->preempted) & KVM_VCPU_PREEMPTED);
		if (get_ucall(r->vcpu, &uc) == UCALL_ABORT)
			REPORT_GUEST_ASSERT(uc);
	} while (uc.cmd != UCALL_DONE);
	WRITE_ONCE(r->done, true);
	return NULL;
}

static void runner_start(struct runner *r, struct pv_vm *v, int i, int cpu)
{
	*r = (struct runner) { .v = v, .vcpu = v->vcpu[i], .cpu = cpu };
	TEST_ASSERT(!pthread_create(&r->thread, NULL, run_vcpu, r), "no thread");
	while (!READ_ONCE(r->tid))
		cpu_relax();
}

static long preemptions(struct runner *r)
{
	char path[64], line[128];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", r->tid);
	f = fopen(path, "r");
	TEST_ASSERT(f, "%s: errno = %d", path, errno);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1)
			break;
	fclose(f);
	TEST_ASSERT(n >= 0, "%s has no nonvoluntary_ctxt_switches", path);
	return n;
}

static void guest_spin(void)
{
	if (shared.irqs)
		local_irq_enable();
	while (!READ_ONCE(shared.stop))
		WRITE_ONCE(shared.looks, shared.looks + 1);
	GUEST_DONE();
}

/* How often the vCPU was seen as marked until it was preempted many times */
static unsigned long marks_seen(bool irqs, u64 bits)
{
	unsigned long seen = 0;
	struct runner r = {};
	struct pv_vm v;
	struct hogs h;
	long start;

	pv_vm_create(&v, 1, guest_spin, bits);
	v.shared->irqs = irqs;
	hogs_start(&h);
	runner_start(&r, &v, 0, h.cpu);

	/* It has run in the guest when it was preempted a few times. */
	start = preemptions(&r);
	while (preemptions(&r) - start < PREEMPTIONS)
		seen += READ_ONCE(v.st->preempted) & KVM_VCPU_PREEMPTED;

	WRITE_ONCE(v.shared->stop, 1);
	pthread_join(r.thread, NULL);
	hogs_stop(&h);
	kvm_vm_free(v.vm);
	return seen;
}

TEST_F_TIMEOUT(pv_tlb_flush, marked_with_interrupts_enabled, SLOW_TIMEOUT)
{
	require_two_cpus();
	TEST_ASSERT(marks_seen(true, ALL_BITS), "never marked");
}

TEST_F_TIMEOUT(pv_tlb_flush, not_marked_with_interrupts_disabled, SLOW_TIMEOUT)
{
	require_two_cpus();
	TEST_ASSERT_EQ(marks_seen(false, ALL_BITS), 0);
}

/*
 * The mark couldn't be taken back, and the vCPU goes on.  It's tried again at an exit
 * that isn't one to userspace, nor to the scheduler, which would have it tried anyway.
 */
TEST_F_TIMEOUT(pv_tlb_flush, mark_is_taken_later, SLOW_TIMEOUT)
{
	int round, without = 0;
	struct runner r = {};
	struct pv_vm v;
	struct hogs h;
	size_t size;
	u64 looks;
	long n;

	require_two_cpus();
	find_cpus(&h);
	pin(h.other_cpu);
	for (round = 0; round < 20; round++) {
		pv_vm_create(&v, 1, guest_spin, ALL_BITS);
		size = ST_PAGES * v.vm->page_size;
		set_byte(&v, KVM_VCPU_PREEMPTED);
		TEST_ASSERT(!mprotect(v.st, size, PROT_READ), "errno = %d", errno);

		runner_start(&r, &v, 0, h.cpu);
		looks = READ_ONCE(v.shared->looks);
		while (READ_ONCE(v.shared->looks) < looks + 1000)
			cpu_relax();
		TEST_ASSERT_EQ(READ_ONCE(v.st->preempted), KVM_VCPU_PREEMPTED);

		n = preemptions(&r);
		TEST_ASSERT(!mprotect(v.st, size, PROT_READ | PROT_WRITE), "errno = %d", errno);
		while (READ_ONCE(v.st->preempted) && preemptions(&r) == n)
			cpu_relax();
		without += preemptions(&r) == n;

		WRITE_ONCE(v.shared->stop, 1);
		pthread_join(r.thread, NULL);
		assert_taken(&v);
		kvm_vm_free(v.vm);
	}
	TEST_ASSERT(without, "only when it was scheduled again");
}

/* Without the feature, the mark is a hint for spinlocks, as it was. */
TEST_F_TIMEOUT(pv_tlb_flush, hint_without_the_feature, SLOW_TIMEOUT)
{
	require_two_cpus();
	TEST_ASSERT(marks_seen(false, PV_BITS), "never marked");
}

/* Userspace does an access to a device: a flush that waits would come too late for it. */
static void guest_access_device(void)
{
	local_irq_enable();
	while (!READ_ONCE(shared.stop))
		GUEST_SYNC(0);
	GUEST_DONE();
}

TEST_F_TIMEOUT(pv_tlb_flush, not_marked_in_an_access, SLOW_TIMEOUT)
{
	struct runner r = {};
	struct pv_vm v;
	struct hogs h;
	long preempted;

	require_two_cpus();
	pv_vm_create(&v, 1, guest_access_device, ALL_BITS);
	hogs_start(&h);
	runner_start(&r, &v, 0, h.cpu);
	while (preemptions(&r) < 4 * PREEMPTIONS)
		usleep(1000);
	preempted = preemptions(&r);
	WRITE_ONCE(v.shared->stop, 1);
	pthread_join(r.thread, NULL);
	hogs_stop(&h);

	ksft_print_msg("%lu exits, %ld preemptions\n", r.exits, preempted);
	TEST_ASSERT_EQ(r.marked_at_exit, 0);
	kvm_vm_free(v.vm);
}

/*
 * All of it: vCPU 1 maps one page after the other and flushes as Linux does, vCPU 0
 * looks, and is preempted.  In place of an interrupt, vCPU 0 looks whether there's one.
 */
static bool guest_defer_flush(u32 *word)
{
	u32 old = READ_ONCE(*word);

	if (!(old & KVM_VCPU_PREEMPTED))
		return false;
	return __atomic_compare_exchange_n(word, &old, old | KVM_VCPU_FLUSH_TLB, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void guest_flusher(void)
{
	u32 *word = (u32 *)&((struct kvm_steal_time *)shared.st)->preempted;
	u64 *pte = (u64 *)shared.ptes;
	u64 i;

	for (i = 1; shared.deferred < FLUSHES || shared.sent < FLUSHES; i++) {
		if (READ_ONCE(shared.stop))
			break;
		WRITE_ONCE(*(u64 *)shared.pages[i % NR_PAGES], i);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		WRITE_ONCE(*pte, shared.entries[i % NR_PAGES]);

		if (guest_defer_flush(word)) {
			shared.deferred++;
		} else {
			__atomic_store_n(&shared.ipi, 1, __ATOMIC_SEQ_CST);
			/* Nobody answers once the other vCPU has stopped. */
			while (__atomic_load_n(&shared.ipi, __ATOMIC_ACQUIRE) &&
			       !READ_ONCE(shared.stop))
				cpu_relax();
			shared.sent++;
		}
		__atomic_store_n(&shared.flushed, i, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&shared.stop, 1, __ATOMIC_RELEASE);
	GUEST_DONE();
}

static void guest_looker(void)
{
	u64 flushed, page;

	local_irq_enable();
	while (!__atomic_load_n(&shared.stop, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&shared.ipi, __ATOMIC_ACQUIRE)) {
			asm volatile("invtlb 0x0, $zero, $zero" ::: "memory");
			__atomic_store_n(&shared.ipi, 0, __ATOMIC_RELEASE);
		}
		flushed = __atomic_load_n(&shared.flushed, __ATOMIC_ACQUIRE);
		page = READ_ONCE(*(u64 *)shared.alias);
		__GUEST_ASSERT(page >= flushed, "flush %lu is done, page of %lu", flushed, page);
		shared.looks++;
	}
	GUEST_DONE();
}

TEST_F_TIMEOUT(pv_tlb_flush, no_old_page_is_seen, SLOW_TIMEOUT)
{
	struct runner r[2] = {};
	struct pv_vm v;
	struct hogs h;
	int i;

	require_two_cpus();
	pv_vm_create(&v, 2, guest_looker, ALL_BITS);
	vcpu_arch_set_entry_point(v.vcpu[1], guest_flusher);
	hogs_start(&h);
	runner_start(&r[0], &v, 0, h.cpu);
	runner_start(&r[1], &v, 1, h.other_cpu);
	for (i = 0; i < FLUSH_SECONDS && !READ_ONCE(r[1].done); i++)
		sleep(1);
	WRITE_ONCE(v.shared->stop, 1);
	for (i = 0; i < 2; i++)
		pthread_join(r[i].thread, NULL);
	hogs_stop(&h);

	ksft_print_msg("%lu flushes left to the host, %lu by the other vCPU, %lu looks\n",
		       v.shared->deferred, v.shared->sent, v.shared->looks);
	TEST_ASSERT(v.shared->deferred, "none was left to the host");
	TEST_ASSERT(v.shared->sent, "none was done by the other vCPU");
	kvm_vm_free(v.vm);
}

int main(int argc, char *argv[])
{
	struct kvm_vm *vm = vm_create_barebones();
	bool has = vm_has_pv_tlb_flush(vm);

	kvm_vm_free(vm);
	TEST_REQUIRE(has);

	return test_harness_run(argc, argv);
}
