/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of memory accesses in KVM/LoongArch's paravirtual TLB flush. README.rst says what is
 * modelled and what is not; scripts/check-model runs the lines that begin with @:
 *
 *   @verify NAME [DEFINE...]: must verify, with every statement reached
 *   @limit NAME VERDICT [DEFINE...]: -DNAME leaves out an assumption, and VERDICT must fall
 *   @mutant NAME VERDICT [DEFINE...]: -DMUTANT_NAME weakens the protocol, and VERDICT must fall
 *   @reach NAME [DEFINE...]: here(NAME) must be reachable
 *
 * @verify protocol GENS=3 MOVES: the protocol; vCPU stays out of the guest while its byte cannot be read
 * @verify faults FAULTS MOVES: it flushes and enters then; no flusher sees the byte before the host has consumed it
 * @verify entry-barrier ENTRY_BARRIER FAULTS MUTANT_CONSUME_RELAXED MUTANT_FAILED_RELAXED: one barrier before entry serves as well
 * @verify drop-if-asked DROP_IF_ASKED MOVES: change of page drops the VPID only if the old byte has FLUSH
 * @verify plain-mark-once MARK_ONCE MUTANT_PLAIN_MARK FAULTS MOVES JUDGE=STALE_USE: plain mark, at most one between two consumes
 *
 * @limit BACK_OUTSIDE stale_use FAULTS: host flushes and enters, byte is seen again while the vCPU is outside
 * @limit BACK_ANYTIME stale_use FAULTS: host flushes and enters, byte is seen again at any time
 *
 * @mutant PLAIN_CONSUME stale_use: host reads the byte, then stores 0
 * @mutant PLAIN_CONSUME lost_flush: the same; a flush that was asked for is not done before entry
 * @mutant CONSUME_RELAXED stale_use: host's fetch-and-clear is no barrier
 * @mutant CONSUME_AFTER_ENTRY stale_use: host enters the guest, then consumes
 * @mutant CONSUME_ONCE stale_use: host marked again after the consume, and enters
 * @mutant CONSUME_IF_MARKED stale_use: host consumes what it marked, not what migration restored
 * @mutant REQUEST_AFTER_CHECK stale_use: host requests the flush after it looked at requests
 * @mutant SWAP_WORD pads_changed: host swaps 0 into the whole word
 * @mutant MEMSLOT_SKIP stale_use FAULTS: byte cannot be read, and host does not flush
 * @mutant FAILED_RELAXED stale_use FAULTS: byte cannot be read, host flushes without a barrier before entry
 * @mutant PLAIN_MARK stale_use: host stores PREEMPTED over FLUSH
 * @mutant PLAIN_MARK lost_flush MARK_ONCE: the same, once between two consumes, over a restored byte
 * @mutant MARK_RELAXED late_access: PREEMPTED may be seen before the vCPU's earlier accesses
 * @mutant MARK_RELAXED late_access EXIT_BARRIER: the same, though each exit is a barrier
 * @mutant MARK_IRQS_OFF stale_use: PREEMPTED set while a TLB refill is in flight
 * @mutant MARK_EMULATING stale_use: PREEMPTED set while an access is being emulated
 * @mutant EMULATING_LATE stale_use: host notes that it emulates only some time after the exit
 * @mutant REREGISTER stale_use MOVES: page changes, the old byte is not consumed
 * @mutant REREGISTER_ORDER stale_use MOVES: old byte consumed first, then the page changes
 * @mutant CMPXCHG_RELAXED stale_use: flusher's cmpxchg is no barrier
 * @mutant CMPXCHG_FAIL_SKIP stale_use: cmpxchg fails, flusher skips the IPI all the same
 * @mutant PLAIN_REQUEST stale_use: flusher stores what it read, with FLUSH, without cmpxchg
 * @mutant TWO_READS stale_use: a second read gives cmpxchg's old value
 * @mutant SKIP_UNORDERED stale_use: FLUSH is there already, flusher skips without a cmpxchg
 * @mutant IPI_RELAXED stale_use: IPI may be seen before the new PTE
 *
 * @reach SKIP: flusher sets FLUSH, sends no IPI
 * @reach SKIP_SET: flusher finds FLUSH set, sends no IPI
 * @reach CMPXCHG_FAILS: byte changed between read and cmpxchg
 * @reach IPI_DONE: IPI handled
 * @reach HONOURED: host drops a VPID with a translation that is no longer in the page table
 * @reach REFILL_EXIT: entry with a refill in flight that has read an old PTE
 * @reach REFILL_WAITS: flusher waits while the vCPU leaves the guest with a refill in flight
 * @reach EMULATED_WAITS: emulated access completes while a flusher waits
 * @reach MARKED_AGAIN: preempted between consume and entry
 * @reach EARLY_WALK: page walk gets a value older than the page table's
 * @reach STORES_PENDING: vCPU is marked while accesses of its own are not visible
 * @reach UNREADABLE FAULTS: byte with FLUSH cannot be read
 * @reach MOVED MOVES: page changes, the old byte has FLUSH
 * @reach MOVING_MARKED MOVES: preempted while the page changes
 * @reach NEWEST: vCPU uses the last translation after its flush returned
 */

#define PREEMPTED	1
#define FLUSH		2
#define PAD		4	/* any bit outside of the byte; always set */

/* PTEs are numbered in the order in which they are stored: 0 is there at the start. */
#ifndef GENS
#define GENS		2
#endif
#define NONE		GENS
#define BIT(g)		(1 << (g))
#define OLDER(g)	(BIT(g) - 1)

/*
 * Verdicts. A mutant is judged by one of them (-DJUDGE), so that it isn't killed by one that says
 * less than the table claims.
 */
#define STALE_USE	1
#define LOST_FLUSH	2
#define PADS_CHANGED	4
#define LATE_ACCESS	8
#define REACHED		16
#ifndef JUDGE
#define JUDGE		(STALE_USE | LATE_ACCESS | LOST_FLUSH | PADS_CHANGED)
#endif
bool stale_use, late_access, lost_flush, pads_changed, reached;

#define SKIP		1
#define SKIP_SET	2
#define CMPXCHG_FAILS	3
#define IPI_DONE	4
#define HONOURED	5
#define REFILL_EXIT	6
#define REFILL_WAITS	7
#define EMULATED_WAITS	8
#define MARKED_AGAIN	9
#define EARLY_WALK	10
#define STORES_PENDING	11
#define UNREADABLE	12
#define MOVED		13
#define MOVING_MARKED	14
#define NEWEST		15
#ifndef REACH
#define REACH		0
#endif
inline here(point) { reached = (REACH == point); assert(!reached) }
inline here_if(point, condition) { reached = (REACH == point) && (condition); assert(!reached) }

/* ---- Memory ---- */

/* Two steal-time pages, each with its word; the vCPU has registered page[reg]. */
byte w[2] = PAD;
bit reg;
/* The host could not consume the byte of this page. */
bool unread[2];

/*
 * The page table entry: what is in memory; what is in the writer's store buffer; and, bit for bit,
 * all values since the vCPU's last full barrier. A page walk may have loaded any of those.
 */
unsigned pte : 2 = 0;
unsigned buffered : 2 = NONE;
unsigned seen : GENS = BIT(0);

/* The vCPU's TLB, and the translations of accesses it made which may not be visible yet. */
unsigned tlb : 2 = NONE;
unsigned pending : GENS;

/* All PTEs before this one are flushed: using one is the bug. */
unsigned floor : 2;
/* A flusher was promised that the vCPU's TLB is emptied before entry. */
bool owed;

bool ipi[2];

/* When can flushers look at a page again whose byte the host could not consume? */
#if defined(BACK_ANYTIME)
#define ACCESSIBLE(p)	true
#elif defined(BACK_OUTSIDE)
/* The vCPU is past its failed consume, and has not left the guest since. */
bool entered_unread;
#define ACCESSIBLE(p)	(!unread[p] || !entered_unread)
#else
#define ACCESSIBLE(p)	(!unread[p])
#endif

inline check_pads()
{
	pads_changed = (JUDGE & PADS_CHANGED) && !(w[0] & w[1] & PAD);
	assert(!pads_changed)
}

/* ---- Guest: who changes the page table and flushes ---- */

inline flush_returned(gen)
{
	if
	:: gen > floor -> floor = gen
	:: else
	fi;
	late_access = (JUDGE & LATE_ACCESS) && (pending & OLDER(floor));
	assert(!late_access)
}

/* What a full barrier of a flusher waits for: none of its stores is in its buffer. */
#ifdef MUTANT_CMPXCHG_RELAXED
#define CMPXCHG_BARRIER(drained)	true
#else
#define CMPXCHG_BARRIER(drained)	(drained)
#endif
#ifdef MUTANT_IPI_RELAXED
#define IPI_BARRIER(drained)		true
#else
#define IPI_BARRIER(drained)		(drained)
#endif
#ifdef MUTANT_PLAIN_REQUEST
#define CMPXCHG_MATCHES(word, old)	true
#else
#define CMPXCHG_MATCHES(word, old)	(word == old)
#endif

/*
 * After the PTE was stored: flush it on the vCPU. Which page holds the vCPU's byte may have been
 * looked up at any time, so it is any of the two.
 */
inline flush(me, gen, drained)
{
	if
	:: page = 0
	:: page = 1
	fi;
	atomic { ACCESSIBLE(page) -> s = w[page] };
	if
	:: s & PREEMPTED
	:: else -> goto send
	fi;
#ifdef MUTANT_TWO_READS
	atomic { ACCESSIBLE(page) -> s = w[page] };
#endif
#ifdef MUTANT_SKIP_UNORDERED
	if
	:: s & FLUSH -> goto done
	:: else
	fi;
#endif
	if
	:: atomic { ACCESSIBLE(page) && CMPXCHG_MATCHES(w[page], s) && CMPXCHG_BARRIER(drained) ->
			if
			:: s & FLUSH -> here(SKIP_SET)
			:: else -> here(SKIP)
			fi;
			w[page] = s | FLUSH;
			check_pads();
			owed = true;
			goto done
		}
	:: atomic { ACCESSIBLE(page) && !CMPXCHG_MATCHES(w[page], s) ->
			here(CMPXCHG_FAILS)
#ifdef MUTANT_CMPXCHG_FAIL_SKIP
			; goto done
#endif
		}
	fi;
send:
	atomic { IPI_BARRIER(drained) -> ipi[me] = true };
	atomic { !ipi[me] -> here(IPI_DONE) };
done:
	atomic { flush_returned(gen); page = 0; s = 0 }
}

/* Stores the PTEs, one after the other, and flushes what was there before. */
active proctype Writer()
{
	byte s;
	bit page;
	unsigned gen : 3 = 1;

end:
	do
	:: gen < GENS ->
		buffered = gen;
		flush(0, gen, buffered == NONE);
		gen++
	od
}

/* The writer's store buffer drains at any time. */
active proctype StoreBuffer()
{
end:
	do
	:: atomic { buffered != NONE ->
			pte = buffered;
			seen = seen | BIT(buffered);
			buffered = NONE
		}
	od
}

/*
 * Another CPU flushes what it found in the page table, again and again. It has no stores of its
 * own that matter.
 */
active proctype Other()
{
	byte s;
	bit page;
	unsigned gen : 2;

end:
	do
	:: gen = pte;
		flush(1, gen, true);
		gen = 0
	od
}

/* ---- The vCPU: guest and host are one thread ---- */

/* What the vCPU is in the middle of. held is the translation it then holds apart from the TLB. */
#define NOTHING		0
#define REFILL		1	/* in the guest's refill handler, IE = 0, with a PTE in a register */
#define EMULATION	2	/* out of the guest, host completes an access */
#define EMULATION_LATE	3	/* the same, but the host doesn't know it yet */

#define COMPLETE	(what == NOTHING || what == REFILL)

/* Each is what sched-out must know before it may set PREEMPTED. */
#if defined(MUTANT_MARK_IRQS_OFF)
#define MAY_MARK	(what == NOTHING || what == REFILL)
#elif defined(MUTANT_MARK_EMULATING)
#define MAY_MARK	(what == NOTHING || what == EMULATION)
#elif defined(MUTANT_EMULATING_LATE)
#define MAY_MARK	(what == NOTHING || what == EMULATION_LATE)
#elif defined(MARK_ONCE)
#define MAY_MARK	(what == NOTHING && !marked)
#else
#define MAY_MARK	(what == NOTHING)
#endif

/* What an exit for an access that is to be emulated leaves. */
#ifdef MUTANT_EMULATING_LATE
#define EMULATION_EXIT	EMULATION_LATE
#else
#define EMULATION_EXIT	EMULATION
#endif

inline vcpu_barrier()
{
	seen = BIT(pte);
	pending = 0
}

inline access(gen)
{
	here_if(NEWEST, gen == GENS - 1 && floor == GENS - 1);
	pending = pending | BIT(gen);
	stale_use = (JUDGE & STALE_USE) && gen < floor;
	assert(!stale_use)
}

/* vpid = 0: nothing in the TLB is found again. */
inline drop_vpid()
{
	here_if(HONOURED, tlb != NONE && tlb != pte);
	tlb = NONE;
	owed = false
}

/* Sched-out. It may also leave the byte alone, which is no step of the model. */
inline mark()
{
	here_if(STORES_PENDING, pending != 0);
#ifdef MUTANT_PLAIN_MARK
	w[reg] = (w[reg] & PAD) | PREEMPTED;
#else
	w[reg] = w[reg] | PREEMPTED;
#endif
	check_pads();
#if defined(MUTANT_CONSUME_IF_MARKED) || defined(MARK_ONCE)
	marked = true;
#endif
#ifndef MUTANT_MARK_RELAXED
	pending = 0
#endif
}

inline clear(page)
{
#ifdef MUTANT_SWAP_WORD
	w[page] = 0;
#else
	w[page] = w[page] & PAD;
#endif
	check_pads();
	unread[page] = false
}

/* For BACK_OUTSIDE only: without it, this would be one more bit of state. */
inline set_entered_unread(value)
{
#ifdef BACK_OUTSIDE
	entered_unread = value
#else
	skip
#endif
}

/* The fetch-and-clear of a byte before entry. */
inline consume()
{
#ifdef MUTANT_REQUEST_AFTER_CHECK
	if
	:: request -> drop_vpid(); request = false
	:: else
	fi;
	request = (w[reg] & FLUSH) != 0;
#else
	if
	:: w[reg] & FLUSH -> drop_vpid()
	:: else
	fi;
#endif
	clear(reg);
#if defined(MUTANT_CONSUME_IF_MARKED) || defined(MARK_ONCE)
	marked = false;
#endif
#ifndef MUTANT_CONSUME_RELAXED
	vcpu_barrier()
#endif
}

active proctype Vcpu()
{
	unsigned what : 2 = NOTHING;
	unsigned held : 2 = NONE;
#ifdef MUTANT_REQUEST_AFTER_CHECK
	bool request;
#endif
#if defined(MUTANT_CONSUME_IF_MARKED) || defined(MARK_ONCE)
	bool marked;
#endif
#ifdef MUTANT_CONSUME_AFTER_ENTRY
	bool consumed = true;
#endif
#ifdef MUTANT_PLAIN_CONSUME
	bool asked;
#endif

	/* A vCPU begins with an empty TLB, and with a byte that migration may have restored. */
	if
	:: w[0] = PAD
	:: w[0] = PAD | FLUSH
	:: w[0] = PAD | PREEMPTED
	:: w[0] = PAD | PREEMPTED | FLUSH
	fi;

outside:
	/* In the host or in the VMM, byte not consumed. */
	do
	:: atomic { MAY_MARK -> mark() }
#ifdef MUTANT_EMULATING_LATE
	:: atomic { what == EMULATION_LATE -> what = EMULATION }
#endif
	:: atomic { what == EMULATION ->
			access(held);
			here_if(EMULATED_WAITS, ipi[0]);
			what = NOTHING;
			held = NONE
		}
#ifdef MOVES
	/* The guest registers another page, or the VMM does. */
	:: atomic {
#ifdef MUTANT_REREGISTER
			reg = 1 - reg
#elif defined(MUTANT_REREGISTER_ORDER)
			goto moving_first
#else
			reg = 1 - reg;
			goto moving
#endif
		}
#endif
#if defined(MUTANT_CONSUME_AFTER_ENTRY)
	:: atomic { COMPLETE -> consumed = false; goto entering }
#elif defined(MUTANT_PLAIN_CONSUME)
	:: atomic { COMPLETE -> asked = (w[reg] & FLUSH) != 0 };
		atomic {
			if
			:: asked -> drop_vpid()
			:: else
			fi;
			asked = false;
			clear(reg);
			vcpu_barrier();
			goto entering
		}
#elif defined(MUTANT_CONSUME_IF_MARKED)
	:: atomic { COMPLETE ->
			if
			:: marked -> consume()
			:: else
			fi;
			goto entering
		}
#else
	:: atomic { COMPLETE -> consume(); goto entering }
#endif
#ifdef FAULTS
	/* The byte cannot be read. It stays as it is, and what it asks for is not known. */
	:: atomic { COMPLETE ->
			here_if(UNREADABLE, w[reg] & FLUSH);
			unread[reg] = true;
			set_entered_unread(true);
#ifndef MUTANT_MEMSLOT_SKIP
			drop_vpid();
#endif
#ifndef MUTANT_FAILED_RELAXED
			vcpu_barrier();
#endif
			goto entering
		}
#endif
	od;

#if defined(MUTANT_REREGISTER_ORDER)
moving_first:
	atomic { drop_vpid(); clear(reg); vcpu_barrier() };
	do
	:: atomic { MAY_MARK -> mark() }
	:: atomic { reg = 1 - reg; goto outside }
	od;
#elif defined(MOVES) && !defined(MUTANT_REREGISTER)
moving:
	/* Sched-out marks the new page from here on, so the old byte is consumed for good. */
	do
	:: atomic { MAY_MARK -> here(MOVING_MARKED); mark() }
	:: atomic {
			here_if(MOVED, w[1 - reg] & FLUSH);
#ifdef DROP_IF_ASKED
			if
			:: w[1 - reg] & FLUSH -> drop_vpid()
			:: else
			fi;
#else
			drop_vpid();
#endif
			clear(1 - reg);
			vcpu_barrier();
			goto outside
		}
	od;
#endif

entering:
	/* Consumed, and host interrupts are still on. */
	do
	:: atomic { MAY_MARK ->
			here(MARKED_AGAIN);
			mark();
#ifndef MUTANT_CONSUME_ONCE
			set_entered_unread(false);
			goto outside
#endif
		}
	:: atomic {
			here_if(REFILL_EXIT, what == REFILL && held != pte);
			lost_flush = (JUDGE & LOST_FLUSH) && owed;
			assert(!lost_flush);
#ifdef ENTRY_BARRIER
			vcpu_barrier();
#endif
			break
		}
	od;

	/* In the guest. */
	do
	:: atomic { what == NOTHING && tlb != NONE -> access(tlb) }
	/* TLB miss. An entry may be evicted at any time, so it needs no empty TLB. */
	:: atomic { what == NOTHING ->
			what = REFILL;
			if
			:: seen & BIT(0) -> held = 0
			:: seen & BIT(1) -> held = 1
#if GENS > 2
			:: seen & BIT(2) -> held = 2
#endif
			fi;
			here_if(EARLY_WALK, held < pte)
		}
	:: atomic { what == REFILL -> tlb = held; what = NOTHING; held = NONE }
	/* Lockless page walk of software, with interrupts off: the page is used as long as they are. */
	:: atomic { what == REFILL -> access(held); what = NOTHING; held = NONE }
	/* Interrupts are on: the IPI's handler flushes, and acknowledges. */
	:: atomic { what == NOTHING && ipi[0] -> tlb = NONE; vcpu_barrier(); ipi[0] = false }
	:: atomic { what == NOTHING && ipi[1] -> tlb = NONE; vcpu_barrier(); ipi[1] = false }
#ifdef MUTANT_CONSUME_AFTER_ENTRY
	:: atomic { !consumed -> consume(); consumed = true }
#endif
	/* Exits: at any instruction, and for an access that the host has to complete. */
	:: atomic {
			here_if(REFILL_WAITS, what == REFILL && ipi[0]);
#ifdef EXIT_BARRIER
			vcpu_barrier();
#endif
			set_entered_unread(false);
			goto outside
		}
	:: atomic { what == NOTHING && tlb != NONE ->
			what = EMULATION_EXIT;
			held = tlb;
#ifdef EXIT_BARRIER
			vcpu_barrier();
#endif
			set_entered_unread(false);
			goto outside
		}
	od
}
