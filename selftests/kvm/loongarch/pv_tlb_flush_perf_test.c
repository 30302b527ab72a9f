// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure how long a flush of other CPUs' TLBs takes.  To be run inside a guest:
 * it creates no VM and needs no /dev/kvm.
 *
 * The main thread changes the translations of a few pages, the "window", which
 * the other threads of the process have used, each on a CPU of its own.  So each
 * change flushes the TLBs of all these CPUs (mm_cpumask).  The system call is what
 * is timed: the change, the flush, and reading the clock.  The unit is what
 * CLOCK_MONOTONIC counts: nanoseconds, or guest instructions under QEMU's
 * "-icount shift=0".
 *
 * -o mprotect  makes the window read-only
 * -o munmap    unmaps it, by mapping other pages over it
 * -o madvise   discards its pages with MADV_DONTNEED
 * -o mix       a fixed amount of work instead, for each thread and the main one:
 *              map, protect, discard and unmap its own pages, sometimes fork.
 *              Nothing is random, so its time can be compared between kernels.
 *
 * Threads that sleep (-m) leave the CPU to the idle task, so that the hypervisor
 * deschedules the vCPU.  Those that spin use the window all the time.  It is up to
 * the host to have fewer physical CPUs, and deschedule spinning vCPUs as well.
 *
 * To see what KVM_FEATURE_PV_TLB_FLUSH is worth, boot the guest with it and without
 * it, and compare figures of the same options.  Sleeping and spinning threads are
 * different loads: the ratio of their figures says nothing about the feature.
 * This program can't know whether the guest uses it, the guest's kernel log does.
 *
 * No thread may use an old translation once the flush has returned.  Those that
 * spin check that all the time, those that sleep when they are woken up after the
 * last flush.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/types.h>

#include "kselftest.h"

#define MAX_ITERATIONS	100000000
#define MAX_PAGES	1024
#define WARM_UP		100	/* flushes */
#define FORK_EVERY	64	/* rounds of mix */

/* After how many flushes, and how long, none follows, see check(). */
#define LINGER_EVERY	64
#define LINGER_NS	100000

/* LoongArch maps shared memory only where address and offset agree modulo SHMLBA. */
#define SLOT_ALIGN	0x10000ul
#define NR_SLOTS	8

/* A bucket of the histogram is at most 1/64 of its time wide. */
#define SUB_BITS	6
#define NR_BUCKETS	((65 - SUB_BITS) << SUB_BITS)

enum op { OP_MPROTECT, OP_MUNMAP, OP_MADVISE, OP_MIX, NR_OPS };
static const char * const op_names[NR_OPS] = { "mprotect", "munmap", "madvise", "mix" };

enum mode { MODE_SLEEP, MODE_SPIN, NR_MODES };
static const char * const mode_names[NR_MODES] = { "sleep", "spin" };

/* Aligned, so that threads that count don't slow each other down. */
struct worker {
	alignas(128) pthread_t thread;
	int cpu;
	u64 checks, stale, probed;
	const char *failed;
	int error;
};

static enum op op = OP_MPROTECT;
static enum mode mode = MODE_SPIN;
static u64 nr_threads = -1ul, nr_iterations = 10000, nr_pages = 1;
static size_t page_size, window_size, slot_size;

/* One for each CPU.  The first is the main thread's. */
static struct worker workers[CPU_SETSIZE];
static u64 nr_cpus, nr_started;
static atomic_ulong nr_ready;

static int memfd = -1;
static char *slots = MAP_FAILED, *window = MAP_FAILED;

/* Goes up with each flush.  With -o mprotect, it is odd while the window is read-only. */
static atomic_ulong generation = 1;
static atomic_bool lingering, stop;
static atomic_int interrupted;
/* The main thread holds it for writing while the others have to wait. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

static u64 histogram[NR_BUCKETS], nr_flushes, total_ns, min_ns = -1ul;

/* Any thread may take the signal. */
static void interrupt_handler(int sig)
{
	atomic_store(&interrupted, sig);
	atomic_store(&stop, true);
}

/* For functions that return an error, or -1 and set errno.  The first failure counts. */
static bool ok(struct worker *w, int ret, const char *what)
{
	if (ret && !w->failed) {
		w->error = ret == -1 ? errno : ret;
		w->failed = what;
	}
	return !ret;
}

/* Can't fail once main() has tried it. */
static u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ul + ts.tv_nsec;
}

static void account(u64 ns)
{
	int shift = ns >> SUB_BITS ? 63 - SUB_BITS - __builtin_clzl(ns) : 0;

	histogram[(shift << SUB_BITS) + (ns >> shift)]++;
	nr_flushes++;
	total_ns += ns;
	min_ns = ns < min_ns ? ns : min_ns;
}

/* The time that @percent of the flushes don't exceed, rounded down to its bucket. */
static u64 percentile(unsigned int percent)
{
	u64 left = (nr_flushes * percent + 99) / 100;
	unsigned int i, shift;

	for (i = 0; histogram[i] < left; i++)
		left -= histogram[i];
	shift = i >> SUB_BITS ? (i >> SUB_BITS) - 1 : 0;
	return (u64)(i - (shift << SUB_BITS)) << shift;
}

static atomic_ulong *word(char *pages, u64 page)
{
	return (atomic_ulong *)(pages + page * page_size);
}

static void fill(char *pages, u64 value)
{
	u64 i;

	for (i = 0; i < nr_pages; i++)
		atomic_store_explicit(word(pages, i), value, memory_order_release);
}

/*
 * A store to the read-only window must fail.  Have the kernel do it with the
 * thread's own translations, so that it fails with EFAULT instead of a signal.
 * It counts only if the window has been read-only from before until after it.
 */
static void probe(struct worker *w, u64 gen)
{
	int ret = syscall(SYS_getcpu, word(window, w->checks % nr_pages) + 1, NULL, NULL);

	if (ret && errno != EFAULT)
		ok(w, ret, "getcpu");
	w->probed = gen;
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&generation) != gen)
		return;
	w->checks++;
	w->stale += !ret;
}

/*
 * Use the window, and see whether an old translation does that.  A generation is
 * published when the flush that begins it has returned.  With a new translation,
 * no page holds an older number than was published before the page is read.
 *
 * munmap: the new pages have got the next generation's number before they are
 * mapped.  The old ones keep theirs for NR_SLOTS generations, to be recognized.
 * madvise: the new pages are zero.  They get their number when it is published.
 * mprotect: the pages stay the same, so this takes a store, see probe().  Only
 * now and then: its fault holds locks for which the next flush may have to wait.
 */
static void check(struct worker *w)
{
	u64 i, value, gen = 0;

	for (i = 0; i < nr_pages; i++) {
		gen = atomic_load_explicit(&generation, memory_order_acquire);
		value = atomic_load_explicit(word(window, i), memory_order_acquire);
		if (op == OP_MPROTECT)
			continue;
		w->checks++;
		if (value || op != OP_MADVISE)
			w->stale += value < gen || value > atomic_load(&generation) + 1;
	}
	if (op == OP_MPROTECT && (gen & 1) && gen != w->probed && atomic_load(&lingering))
		probe(w, gen);
}

/* Give the threads time to check, and the scheduler of a busy host to run them. */
static void linger(void)
{
	u64 end = now() + LINGER_NS;

	atomic_store(&lingering, true);
	while (now() < end && !atomic_load(&stop))
		;
	atomic_store(&lingering, false);
}

/* What is timed must find the pages mapped, or there is nothing to flush. */
static bool flush(struct worker *w, u64 *ns)
{
	u64 i, start, gen = atomic_load(&generation);
	off_t slot = (gen + 1) % NR_SLOTS * slot_size;
	int ret = 0;

	if (op == OP_MPROTECT) {
		atomic_store(&generation, ++gen);
		ret = mprotect(window, window_size, PROT_READ | PROT_WRITE);
		if (!ok(w, ret, "mprotect"))
			return false;
	}
	if (op == OP_MUNMAP) {
		fill(slots + slot, gen + 1);
		for (i = 0; i < nr_pages; i++)
			atomic_load(word(window, i));
	} else {
		fill(window, gen);
	}

	start = now();
	if (op == OP_MPROTECT)
		ret = mprotect(window, window_size, PROT_READ);
	else if (op == OP_MADVISE)
		ret = madvise(window, window_size, MADV_DONTNEED);
	else if (mmap(window, window_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		      memfd, slot) == MAP_FAILED)
		ret = -1;
	*ns = now() - start;

	if (ok(w, ret, op_names[op]))
		atomic_store(&generation, gen + 1);
	return !ret;
}

static void measure(struct worker *w)
{
	u64 i, ns;

	for (i = 0; i < WARM_UP + nr_iterations && !atomic_load(&stop) && flush(w, &ns); i++) {
		if (i >= WARM_UP)
			account(ns);
		if (mode == MODE_SPIN && i % LINGER_EVERY == 0)
			linger();
	}
}

static void fork_and_wait(struct worker *w)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(0);
	if (!ok(w, pid < 0 ? -1 : 0, "fork"))
		return;
	if (ok(w, waitpid(pid, &status, 0) < 0 ? -1 : 0, "waitpid"))
		ok(w, status ? ECHILD : 0, "child");
}

static void mix(struct worker *w)
{
	u64 i, page;
	char *pages;

	for (i = 0; i < nr_iterations && !w->failed && !atomic_load(&stop); i++) {
		pages = mmap(NULL, window_size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (!ok(w, pages == MAP_FAILED ? -1 : 0, "mmap"))
			return;
		fill(pages, 1);
		if (i % FORK_EVERY == 0)
			fork_and_wait(w);
		ok(w, mprotect(pages, window_size, PROT_READ), "mprotect");
		if (ok(w, mprotect(pages, window_size, PROT_READ | PROT_WRITE), "mprotect"))
			fill(pages, 2);
		if (ok(w, madvise(pages, window_size, MADV_DONTNEED), "madvise")) {
			for (page = 0; page < nr_pages; page++) {
				w->checks++;
				w->stale += !!atomic_load(word(pages, page));
			}
		}
		ok(w, munmap(pages, window_size), "munmap");
	}
}

static void *thread_fn(void *arg)
{
	struct worker *w = arg;

	if (op != OP_MIX)
		check(w);
	atomic_fetch_add(&nr_ready, 1);
	while (op != OP_MIX && mode == MODE_SPIN && !atomic_load(&stop))
		check(w);

	/* Threads of -m sleep spend the measured time here. */
	if (ok(w, pthread_rwlock_rdlock(&gate), "pthread_rwlock_rdlock"))
		ok(w, pthread_rwlock_unlock(&gate), "pthread_rwlock_unlock");
	if (op == OP_MIX)
		mix(w);
	else
		check(w);
	return NULL;
}

static bool pin(struct worker *self, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return ok(self, sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

/* A thread inherits the CPU that it is to run on. */
static bool start_threads(struct worker *self)
{
	struct worker *w = &workers[1];

	for (; nr_started < nr_threads; nr_started++, w++) {
		if (!pin(self, w->cpu) ||
		    !ok(self, pthread_create(&w->thread, NULL, thread_fn, w), "pthread_create"))
			return false;
	}
	while (atomic_load(&nr_ready) < nr_threads && !atomic_load(&stop))
		usleep(1000);
	return pin(self, self->cpu);
}

static bool map_window(struct worker *self)
{
	int prot = op == OP_MPROTECT ? PROT_READ : PROT_READ | PROT_WRITE;

	memfd = memfd_create("pv_tlb_flush", MFD_CLOEXEC);
	if (!ok(self, memfd < 0 ? -1 : 0, "memfd_create") ||
	    !ok(self, ftruncate(memfd, NR_SLOTS * slot_size), "ftruncate"))
		return false;
	slots = mmap(NULL, NR_SLOTS * slot_size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (!ok(self, slots == MAP_FAILED ? -1 : 0, "mmap"))
		return false;
	/* Private pages go when they are discarded, shared ones would come back. */
	window = mmap(NULL, window_size, prot, op == OP_MADVISE ? MAP_PRIVATE : MAP_SHARED,
		      memfd, slot_size);
	if (!ok(self, window == MAP_FAILED ? -1 : 0, "mmap"))
		return false;
	if (op == OP_MUNMAP)
		fill(slots + slot_size, 1);
	return true;
}

static u64 run(struct worker *self)
{
	u64 i, start, ns = 0;

	if (op != OP_MIX && !map_window(self))
		goto unmap;
	if (!ok(self, pthread_rwlock_wrlock(&gate), "pthread_rwlock_wrlock"))
		goto unmap;
	if (!start_threads(self))
		atomic_store(&stop, true);

	start = now();
	if (op != OP_MIX) {
		measure(self);
		atomic_store(&lingering, true);
		atomic_store(&stop, true);
	}
	ok(self, pthread_rwlock_unlock(&gate), "pthread_rwlock_unlock");
	if (op == OP_MIX)
		mix(self);
	for (i = 1; i <= nr_started; i++)
		ok(self, pthread_join(workers[i].thread, NULL), "pthread_join");
	ns = now() - start;
unmap:
	if (window != MAP_FAILED)
		ok(self, munmap(window, window_size), "munmap");
	if (slots != MAP_FAILED)
		ok(self, munmap(slots, NR_SLOTS * slot_size), "munmap");
	if (memfd >= 0)
		ok(self, close(memfd), "close");
	return ns;
}

static void report(u64 ns)
{
	u64 i, checks = 0, stale = 0;
	bool failed = false;

	for (i = 0; i <= nr_started; i++) {
		struct worker *w = &workers[i];

		checks += w->checks;
		stale += w->stale;
		if (w->failed) {
			failed = true;
			ksft_print_msg("CPU %d: %s: %s\n", w->cpu, w->failed, strerror(w->error));
		}
	}
	ksft_print_msg("check: checks=%lu stale=%lu\n", checks, stale);
	if (atomic_load(&interrupted))
		ksft_exit_fail_msg("ended by signal %d\n", atomic_load(&interrupted));
	if (failed)
		ksft_exit_fail_msg("the measurement did not complete\n");

	if (op == OP_MIX) {
		ksft_print_msg("mix: threads=%lu pages=%lu iterations=%lu ns=%lu\n",
			       nr_threads, nr_pages, nr_iterations, ns);
	} else {
		ksft_print_msg("flush: threads=%lu mode=%s op=%s pages=%lu iterations=%lu ",
			       nr_threads, mode_names[mode], op_names[op], nr_pages, nr_flushes);
		printf("ns/flush=%.1f min=%lu p50=%lu p99=%lu\n", (double)total_ns / nr_flushes,
		       min_ns, percentile(50), percentile(99));
	}
	ksft_test_result_pass("%s completed\n", op_names[op]);
	if (checks)
		ksft_test_result(!stale, "no old translation was used\n");
	else
		ksft_test_result_skip("no thread could check translations\n");
	ksft_finished();
}

static void __noreturn help(const char *name, int status)
{
	fprintf(status ? stderr : stdout,
		"usage: %s [-h] [-t threads] [-i iterations] [-m mode] [-o op] [-p pages]\n"
		" -t: other threads, 0 to CPUs - 1 (default: CPUs - 1, here %lu)\n"
		" -i: flushes to measure, or rounds of mix, 1 to %d (default: 10000)\n"
		" -m: what other threads do: sleep or spin, not with mix (default: spin)\n"
		" -o: mprotect, munmap, madvise or mix (default: mprotect)\n"
		" -p: pages that a flush covers, 1 to %d (default: 1)\n",
		name, nr_cpus - 1, MAX_ITERATIONS, MAX_PAGES);
	exit(status);
}

static bool number(const char *arg, u64 min, u64 max, u64 *value)
{
	char *end;

	errno = 0;
	*value = strtoul(arg, &end, 10);
	return isdigit((unsigned char)*arg) && !*end && !errno && *value >= min && *value <= max;
}

static int find(const char *arg, const char * const *names, int nr)
{
	int i;

	for (i = 0; i < nr && strcmp(arg, names[i]); i++)
		;
	return i;
}

int main(int argc, char *argv[])
{
	struct sigaction sa = { .sa_handler = interrupt_handler, .sa_flags = SA_RESTART };
	bool good = true, has_mode = false;
	struct timespec ts;
	cpu_set_t set;
	int cpu, opt;

	if (sched_getaffinity(0, sizeof(set), &set))
		ksft_exit_fail_perror("sched_getaffinity");
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set))
			workers[nr_cpus++].cpu = cpu;
	}

	while (good && (opt = getopt(argc, argv, "hi:m:o:p:t:")) != -1) {
		switch (opt) {
		case 'i':
			good = number(optarg, 1, MAX_ITERATIONS, &nr_iterations);
			break;
		case 'm':
			mode = find(optarg, mode_names, NR_MODES);
			good = mode < NR_MODES;
			has_mode = true;
			break;
		case 'o':
			op = find(optarg, op_names, NR_OPS);
			good = op < NR_OPS;
			break;
		case 'p':
			good = number(optarg, 1, MAX_PAGES, &nr_pages);
			break;
		case 't':
			good = number(optarg, 0, CPU_SETSIZE - 1, &nr_threads);
			break;
		default:
			help(argv[0], opt == 'h' ? KSFT_PASS : KSFT_FAIL);
		}
	}
	if (!good || optind < argc || (has_mode && op == OP_MIX)) {
		fprintf(stderr, "%s: bad or too many arguments\n", argv[0]);
		help(argv[0], KSFT_FAIL);
	}
	/* One CPU is no mistake, whatever -t says. */
	if (nr_threads == -1ul)
		nr_threads = nr_cpus - 1;
	if (nr_threads >= nr_cpus && (nr_cpus > 1 || op == OP_MIX)) {
		fprintf(stderr, "%s: %lu threads, but %lu CPUs\n", argv[0], nr_threads, nr_cpus);
		help(argv[0], KSFT_FAIL);
	}

	ksft_print_header();
	if (nr_cpus < 2 && op != OP_MIX)
		ksft_exit_skip("there is one CPU, so no other one's TLB to flush\n");
	ksft_set_plan(2);

	page_size = getpagesize();
	window_size = nr_pages * page_size;
	slot_size = (window_size + SLOT_ALIGN - 1) & -SLOT_ALIGN;
	if (clock_gettime(CLOCK_MONOTONIC, &ts))
		ksft_exit_fail_perror("clock_gettime");
	if (sigaction(SIGINT, &sa, NULL) || sigaction(SIGTERM, &sa, NULL))
		ksft_exit_fail_perror("sigaction");

	report(run(&workers[0]));
}
