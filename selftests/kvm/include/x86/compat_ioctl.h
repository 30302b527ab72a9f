/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SELFTEST_KVM_COMPAT_IOCTL_H
#define SELFTEST_KVM_COMPAT_IOCTL_H

#include <setjmp.h>

#include "kvm_util.h"

/* A system call of the 32-bit ABI, i.e. KVM's compat ioctls. */
#define NR_IOCTL_32	54

static sigjmp_buf compat_jmp;

static void compat_handler(int sig)
{
	siglongjmp(compat_jmp, 1);
}

static inline int compat_ioctl(int fd, u32 cmd, u32 arg)
{
	int ret = NR_IOCTL_32;

	asm volatile("int $0x80"
		     : "+a"(ret)
		     : "b"(fd), "c"(cmd), "d"(arg)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

#endif /* SELFTEST_KVM_COMPAT_IOCTL_H */
