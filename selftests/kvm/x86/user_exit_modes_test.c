// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test KVM_USER_EXIT in what only x86 has: port I/O, accesses that are split
 * into several exits, nested guests, SMM, windows in which events can't be
 * injected, and 32-bit userspace.
 *
 * A vCPU that doesn't honour a request never returns from KVM_RUN in most of
 * these tests; the harness' timeout reports that.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <linux/sizes.h>

#include "apic.h"
#include "compat_ioctl.h"
#include "kvm_test_harness.h"
#include "kvm_util.h"
#include "processor.h"
#include "smm.h"
#include "svm_util.h"
#include "test_util.h"
#include "user_exit.h"
#include "vmx.h"

/* Not backed by a memslot, mapped 1:1 in the guest. */
#define MMIO_GPA	(4ull * SZ_1G)
#define MMIO_PAGES	2
#define PIO_PORT	0x80
#define SMRAM_GPA	0x1000000
#define NO_SMRAM_GPA	(3ull * SZ_1G)
#define IRQ_VECTOR	0x30
#define NR_EXITS	20

static u64 guest_counter;
static u64 guest_stop;
static u64 guest_events;

FIXTURE(user_exit_modes) {
	struct kvm_vm *vm;
	struct kvm_vcpu *vcpu;
	u64 *counter;
	u64 *stop;
};

FIXTURE_SETUP(user_exit_modes)
{
	self->vm = vm_create_with_one_vcpu(&self->vcpu, NULL);
	virt_map(self->vm, MMIO_GPA, MMIO_GPA, MMIO_PAGES);
	self->counter = addr_gva2hva(self->vm, (gva_t)&guest_counter);
	self->stop = addr_gva2hva(self->vm, (gva_t)&guest_stop);
}

FIXTURE_TEARDOWN(user_exit_modes)
{
	kvm_vm_free(self->vm);
}

static void guest_sync(void)
{
	int i;

	for (i = 0; ; i++)
		GUEST_SYNC(i);
}

/* Execute guest code until userspace says so. */
static void guest_spin_until_stop(void)
{
	while (!READ_ONCE(guest_stop))
		WRITE_ONCE(guest_counter, READ_ONCE(guest_counter) + 1);
}

/* Exit while the guest executes code, and check that it goes on from there. */
static void exit_and_resume(struct kvm_vcpu *vcpu, u64 *counter, u16 flags)
{
	struct run_thread rt;
	u64 count;
	int i;

	for (i = 0; i < NR_EXITS; i++) {
		count = READ_ONCE(*counter);
		run_thread_start(&rt, vcpu);
		wait_for_progress(counter, count);
		vcpu_user_exit(vcpu);
		run_thread_expect_request(&rt);
		TEST_ASSERT_EQ(vcpu->run->flags, flags);

		/* And without as much as entering the guest. */
		count = READ_ONCE(*counter);
		vcpu_user_exit(vcpu);
		run_expect_request(vcpu);
		TEST_ASSERT_EQ(vcpu->run->flags, flags);
		TEST_ASSERT_EQ(READ_ONCE(*counter), count);
	}
}

static void guest_pio_read(void)
{
	u32 val;

	for (;;) {
		asm volatile("inl %w1, %0" : "=a"(val) : "Nd"(PIO_PORT));
		GUEST_SYNC(val);
	}
}

TEST_F(user_exit_modes, completes_pio)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	u32 *data;

	vcpu_arch_set_entry_point(vcpu, guest_pio_read);

	vcpu_run(vcpu);
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_IO);
	TEST_ASSERT_EQ(vcpu->run->io.port, PIO_PORT);
	TEST_ASSERT_EQ(vcpu->run->io.direction, KVM_EXIT_IO_IN);
	data = (void *)vcpu->run + vcpu->run->io.data_offset;
	*data = 0x12345678;

	vcpu_user_exit(vcpu);
	run_expect_request(vcpu);

	*data = ~0u;
	run_expect_sync(vcpu, 0x12345678);
}

static void guest_mmio_read_split(void)
{
	for (;;)
		GUEST_SYNC(READ_ONCE(*(u64 *)(MMIO_GPA + PAGE_SIZE - 4)));
}

/* The exit for the second half of an access consumes the request. */
TEST_F(user_exit_modes, consumed_by_mmio)
{
	struct kvm_vcpu *vcpu = self->vcpu;

	vcpu_arch_set_entry_point(vcpu, guest_mmio_read_split);

	vcpu_run(vcpu);
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_MMIO);
	TEST_ASSERT_EQ(vcpu->run->mmio.len, 4);
	memset(vcpu->run->mmio.data, 0x11, 4);

	vcpu_user_exit(vcpu);
	vcpu_run(vcpu);
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_MMIO);
	TEST_ASSERT_EQ(vcpu->run->mmio.len, 4);
	TEST_ASSERT_EQ(vcpu->run->mmio.phys_addr, MMIO_GPA + PAGE_SIZE);
	memset(vcpu->run->mmio.data, 0x22, 4);

	run_expect_sync(vcpu, 0x2222222211111111ull);
}

/* So does an error that KVM_RUN finds before it enters the guest. */
TEST_F(user_exit_modes, consumed_by_error)
{
	struct kvm_vcpu *vcpu = self->vcpu;

	TEST_REQUIRE(kvm_has_cap(KVM_CAP_SYNC_REGS));
	vcpu_arch_set_entry_point(vcpu, guest_sync);

	vcpu_user_exit(vcpu);
	vcpu->run->kvm_valid_regs = ~0ull;
	run_expect_errno(vcpu, EINVAL);
	vcpu->run->kvm_valid_regs = 0;

	run_expect_sync(vcpu, 0);
}

/* Registers are exchanged through kvm_run as with any other exit. */
TEST_F(user_exit_modes, sync_regs)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	struct kvm_run *run = vcpu->run;
	struct kvm_regs regs;

	TEST_REQUIRE(kvm_has_cap(KVM_CAP_SYNC_REGS));
	vcpu_arch_set_entry_point(vcpu, guest_sync);

	run->kvm_valid_regs = KVM_SYNC_X86_REGS;
	vcpu_user_exit(vcpu);
	run_expect_request(vcpu);
	vcpu_regs_get(vcpu, &regs);
	TEST_ASSERT(!memcmp(&regs, &run->s.regs.regs, sizeof(regs)),
		    "kvm_run doesn't have the vCPU's registers");

	run->s.regs.regs.r15 = 0x1234;
	run->kvm_dirty_regs = KVM_SYNC_X86_REGS;
	vcpu_user_exit(vcpu);
	run_expect_request(vcpu);
	run->kvm_valid_regs = 0;
	vcpu_regs_get(vcpu, &regs);
	TEST_ASSERT_EQ(regs.r15, 0x1234);

	run_expect_sync(vcpu, 0);
}

/* What KVM_RUN tells about the local APIC is right from the first return on. */
TEST_F(user_exit_modes, kvm_run_fields)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	struct kvm_run *run = vcpu->run;
	struct kvm_sregs sregs;

	vcpu_arch_set_entry_point(vcpu, guest_sync);

	vcpu_sregs_get(vcpu, &sregs);
	TEST_ASSERT(sregs.apic_base, "The vCPU has no local APIC");
	sregs.cr8 = 5;
	vcpu_sregs_set(vcpu, &sregs);

	run->flags = 0xffff;
	vcpu_user_exit(vcpu);
	run_expect_request(vcpu);
	TEST_ASSERT_EQ(run->flags, 0);
	TEST_ASSERT_EQ(run->apic_base, sregs.apic_base);
	TEST_ASSERT_EQ(run->cr8, 5);
	TEST_ASSERT_EQ(run->ready_for_interrupt_injection, 1);

	run_expect_sync(vcpu, 0);
}

static void l2_svm_code(void)
{
	guest_spin_until_stop();
	vmmcall();
}

static void l2_vmx_code(void)
{
	guest_spin_until_stop();
	vmcall();
}

static void l1_guest_code(void *arg)
{
	struct svm_test_data *svm = arg;
	struct vmx_pages *vmx = arg;

	if (this_cpu_has(X86_FEATURE_SVM)) {
		generic_svm_setup(svm, l2_svm_code);
		run_guest(svm->vmcb, svm->vmcb_gpa);
		GUEST_ASSERT_EQ(svm->vmcb->control.exit_code, SVM_EXIT_VMMCALL);
	} else {
		GUEST_ASSERT(prepare_for_vmx_operation(vmx));
		GUEST_ASSERT(load_vmcs(vmx));
		prepare_vmcs(vmx, l2_vmx_code);
		GUEST_ASSERT(!vmlaunch());
		GUEST_ASSERT_EQ(vmreadz(VM_EXIT_REASON), EXIT_REASON_VMCALL);
	}
	GUEST_SYNC(42);
}

/* The exit is to L0's userspace, L1 doesn't get to know of it. */
TEST_F(user_exit_modes, nested)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	gva_t nested_gva;

	if (kvm_cpu_has(X86_FEATURE_SVM))
		vcpu_alloc_svm(self->vm, &nested_gva);
	else if (kvm_cpu_has(X86_FEATURE_VMX))
		vcpu_alloc_vmx(self->vm, &nested_gva);
	else
		SKIP(return, "No nested virtualization");

	vcpu_arch_set_entry_point(vcpu, l1_guest_code);
	vcpu_args_set(vcpu, 1, nested_gva);

	exit_and_resume(vcpu, self->counter, KVM_RUN_X86_GUEST_MODE);

	*self->stop = 1;
	run_expect_sync(vcpu, 42);
}

/*
 * Executed in real mode, with flat segments:
 *
 * 1:	incl 0x8100
 *	cmpl $0, 0x8104
 *	je 1b
 *	rsm
 *
 * %cs is the base of SMRAM, the others are 0, i.e. override %ds with %cs.
 */
#define SMM_COUNTER	0x8100
#define SMM_STOP	0x8104
static const u8 smi_handler[] = {
	0x2e, 0x66, 0xff, 0x06, 0x00, 0x81,		/* incl %cs:0x8100 */
	0x2e, 0x66, 0x83, 0x3e, 0x04, 0x81, 0x00,	/* cmpl $0, %cs:0x8104 */
	0x74, 0xf1,					/* je -15 */
	0x0f, 0xaa,					/* rsm */
};

TEST_F(user_exit_modes, smm)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	struct kvm_vcpu_events events;
	u64 *counter;
	u32 *stop;

	TEST_REQUIRE(kvm_has_cap(KVM_CAP_X86_SMM));

	vcpu_arch_set_entry_point(vcpu, guest_sync);
	setup_smram(self->vm, vcpu, SMRAM_GPA, smi_handler, sizeof(smi_handler));
	/* The handler counts in 32 bits, the upper half gets the stop flag. */
	counter = addr_gpa2hva(self->vm, SMRAM_GPA + SMM_COUNTER);
	stop = addr_gpa2hva(self->vm, SMRAM_GPA + SMM_STOP);

	/* A pending SMI stays pending. */
	inject_smi(vcpu);
	vcpu_user_exit(vcpu);
	run_expect_request(vcpu);
	TEST_ASSERT_EQ(vcpu->run->flags, 0);
	vcpu_events_get(vcpu, &events);
	TEST_ASSERT(events.smi.pending, "The SMI got lost");

	exit_and_resume(vcpu, counter, KVM_RUN_X86_SMM);

	*stop = 1;
	run_expect_sync(vcpu, 0);
	TEST_ASSERT_EQ(vcpu->run->flags, 0);
}

static void irq_handler(struct ex_regs *regs)
{
	WRITE_ONCE(guest_events, READ_ONCE(guest_events) + 1);
	x2apic_write_reg(APIC_EOI, 0);
}

static void guest_irq_window(void)
{
	x2apic_enable();
	cli();
	x2apic_write_reg(APIC_ICR, APIC_DEST_SELF | APIC_INT_ASSERT | IRQ_VECTOR);

	guest_spin_until_stop();
	GUEST_ASSERT_EQ(READ_ONCE(guest_events), 0);

	sti_nop();
	GUEST_SYNC(READ_ONCE(guest_events));
}

/* KVM waits for the guest to enable interrupts, to inject the one it has. */
TEST_F(user_exit_modes, interrupt_window)
{
	struct kvm_vcpu *vcpu = self->vcpu;

	vm_install_exception_handler(self->vm, IRQ_VECTOR, irq_handler);
	vcpu_arch_set_entry_point(vcpu, guest_irq_window);

	exit_and_resume(vcpu, self->counter, 0);

	*self->stop = 1;
	run_expect_sync(vcpu, 1);
}

static void ud_handler(struct ex_regs *regs)
{
	WRITE_ONCE(guest_events, READ_ONCE(guest_events) + 1);
}

static void guest_exception(void)
{
	GUEST_SYNC(READ_ONCE(guest_events));
	GUEST_SYNC(READ_ONCE(guest_events));
}

/* An exception that waits for its injection isn't lost, and not injected twice. */
TEST_F(user_exit_modes, pending_exception)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	struct kvm_vcpu_events events;
	int i;

	vm_install_exception_handler(self->vm, UD_VECTOR, ud_handler);
	vcpu_arch_set_entry_point(vcpu, guest_exception);

	run_expect_sync(vcpu, 0);

	vcpu_events_get(vcpu, &events);
	events.exception.injected = 1;
	events.exception.nr = UD_VECTOR;
	vcpu_events_set(vcpu, &events);

	for (i = 0; i < NR_EXITS; i++) {
		vcpu_user_exit(vcpu);
		run_expect_request(vcpu);
		vcpu_events_get(vcpu, &events);
		TEST_ASSERT(events.exception.injected && events.exception.nr == UD_VECTOR,
			    "The exception got lost");
	}

	run_expect_sync(vcpu, 1);
}

/* KVM can't save the vCPU's state for the SMI, and gives up the VM. */
TEST_F(user_exit_modes, dead_vm)
{
	struct kvm_vcpu *vcpu = self->vcpu;
	int ret;

	TEST_REQUIRE(kvm_has_cap(KVM_CAP_X86_SMM));

	vcpu_arch_set_entry_point(vcpu, guest_sync);
	vcpu_set_msr(vcpu, MSR_IA32_SMBASE, NO_SMRAM_GPA);
	inject_smi(vcpu);
	run_expect_errno(vcpu, EIO);

	ret = __vcpu_user_exit(vcpu, 0);
	TEST_ASSERT(ret == -1 && errno == EIO,
		    "Expected EIO, got ret = %d, errno = %d", ret, errno);
	ret = __vm_user_exit(self->vm, 0);
	TEST_ASSERT(ret == -1 && errno == EIO,
		    "Expected EIO, got ret = %d, errno = %d", ret, errno);
	run_expect_errno(vcpu, EIO);
}

TEST_F(user_exit_modes, compat)
{
	struct sigaction old, sa = { .sa_handler = compat_handler };
	struct kvm_vcpu *vcpu = self->vcpu;

	vcpu_arch_set_entry_point(vcpu, guest_sync);

	/* Without CONFIG_IA32_EMULATION, there's no such system call. */
	sigaction(SIGSEGV, &sa, &old);
	if (sigsetjmp(compat_jmp, 1)) {
		sigaction(SIGSEGV, &old, NULL);
		SKIP(return, "No 32-bit system calls");
	}
	TEST_ASSERT_EQ(compat_ioctl(vcpu->fd, KVM_USER_EXIT, 0), 0);
	sigaction(SIGSEGV, &old, NULL);
	run_expect_request(vcpu);

	TEST_ASSERT_EQ(compat_ioctl(self->vm->fd, KVM_USER_EXIT, 0), 0);
	TEST_ASSERT_EQ(compat_ioctl(vcpu->fd, KVM_RUN, 0), 0);
	TEST_ASSERT_KVM_EXIT_REASON(vcpu, KVM_EXIT_REQUEST);

	TEST_ASSERT_EQ(compat_ioctl(vcpu->fd, KVM_USER_EXIT, 1), -EINVAL);
	TEST_ASSERT_EQ(compat_ioctl(vcpu->fd, KVM_USER_EXIT, 1u << 31), -EINVAL);
	TEST_ASSERT_EQ(compat_ioctl(self->vm->fd, KVM_USER_EXIT, ~0u), -EINVAL);
	run_expect_sync(vcpu, 0);
}

int main(int argc, char *argv[])
{
	TEST_REQUIRE(kvm_has_cap(KVM_CAP_USER_EXIT));

	return test_harness_run(argc, argv);
}
