/* Two callers of one process, and a caller of another one. Unlock hands the row to the next caller of the process, which may
 * have left meanwhile. After STREAK of these the row is released, and the process steps back for longer than
 * the other one's pause between two polls. With LIVE there is no time and no caller leaves. */

#define N 3
#define OTHER 2 /* the caller of the other process */
#include "common.pml"

#define STREAK 2
#define holderOf(p) (p + 1)

Row row;
Countdown lease[N];
Countdown renewed;
bool held[N];
bool waits[N];
byte holder[N]; /* of the hold: the row's CLIENT_ID is handed over with it */
bool given[N]; /* the row was handed to this caller */
chan queue = [2] of { byte }; /* the local mutex: its owner and those that wait, in the order of their arrival */
byte passed; /* how often the row was handed over */
bool polled = true; /* by the other process since the row was released */

#define owns(p) queue ? [eval(p)]

inline HandOver() {
	next = 1 - p;
	held[p] = false;
	holder[next] = holder[p];
#ifdef GIVES_A_WHOLE_LEASE
	start(lease[next]);
#else
	lease[next].left = lease[p].left; lease[next].missed = lease[p].missed;
#endif
	given[next] = true;
	passed++;
	next = 0;
	queue ? eval(p)
}

proctype Local(byte p) {
	bool got;
	byte next;
end:
	queue ! p;
	waits[p] = true;
Queue:
	if
	:: owns(p)
#ifndef LIVE
	:: atomic { waits[p] = false; goto Leave }
#endif
	fi;
	if
	:: atomic { given[p] && lease[p].left > 0 -> given[p] = false; waits[p] = false; believe(p); goto holds }
	:: atomic { given[p] && lease[p].left == 0 -> given[p] = false } /* waits like any other */
	:: !given[p]
	fi;
#ifdef LIVE
StepBack:
	polled || !waits[OTHER];
#endif
Try:
	atomic { start(lease[p]); holder[p] = holderOf(p); passed = 0 };
	atomic { Acquire(row, holder[p], got) };
	if
	:: atomic { got && lease[p].left > 0 -> got = false; waits[p] = false; believe(p) }
	:: atomic { got && lease[p].left == 0 -> waits[p] = false; goto Unlock }
	:: atomic { !got -> stop(lease[p]); isFree(row); goto Try }
	fi;
holds:
	if
	:: atomic { lease[p].left == 0 -> held[p] = false; queue ? eval(p); goto ended }
#ifdef NO_STEP_BACK
	:: atomic { lease[p].left > 0 && len(queue) == 2 -> passed = 0; goto RenewForNext }
#else
	:: atomic { lease[p].left > 0 && len(queue) == 2 && passed < STREAK -> goto RenewForNext }
#endif
	:: atomic { len(queue) == 1 || passed == STREAK -> held[p] = false; goto Unlock }
	fi;
RenewForNext:
	if
	:: true /* enough of the lease is left */
#ifndef LIVE
	:: atomic { true -> start(renewed) }
		atomic { Renew(row, holder[p], got) }
#ifdef COUNTS_FROM_ANSWER
		atomic { start(renewed) }
#endif
		if
		:: atomic { got && lease[p].left > 0 -> lease[p].left = renewed.left; lease[p].missed = renewed.missed; stop(renewed); got = false }
		:: atomic { !got || lease[p].left == 0 -> stop(renewed); held[p] = false; goto Unlock }
		fi
#endif
	fi;
	atomic {
		if
		:: lease[p].left > 0 && len(queue) == 2 -> HandOver(); goto ended
		:: lease[p].left > 0 && len(queue) == 1 -> held[p] = false; goto Unlock /* the other one has left */
		:: lease[p].left == 0 -> held[p] = false; queue ? eval(p); goto ended
		fi };
Unlock:
	atomic { Delete(row, holder[p], got); polled = false; queue ? eval(p) }
ended:
	atomic { got = false; stop(lease[p]); holder[p] = 0 }
	goto end;
Leave:
	/* The row may have been handed to a caller that has just left: it releases the row. */
	if
	:: atomic { given[p] ->
		given[p] = false;
		goto Unlock }
	:: atomic { !given[p] && owns(p) -> queue ? eval(p); goto ended }
	:: atomic { !given[p] && !owns(p) -> queue ?? eval(p); goto ended }
	fi
}

proctype Other() {
	bool got;
end:
	waits[OTHER] = true;
Poll:
#ifdef LIVE
	if
	:: atomic { !isFree(row) -> polled = true; goto Poll }
	:: isFree(row)
	fi;
#else
	isFree(row);
#endif
	atomic { start(lease[OTHER]) };
	atomic { Acquire(row, holderOf(OTHER), got); polled = true };
	if
	:: atomic { got && lease[OTHER].left > 0 -> got = false; waits[OTHER] = false; believe(OTHER) }
	:: atomic { got && lease[OTHER].left == 0 -> goto release }
	:: atomic { !got -> stop(lease[OTHER]); goto Poll }
	fi;
	if
	:: held[OTHER] = false
	:: atomic { lease[OTHER].left == 0 -> held[OTHER] = false }
	fi;
release:
	atomic { Delete(row, holderOf(OTHER), got); got = false; stop(lease[OTHER]); waits[OTHER] = false }
	goto end
}

/* Rows that have expired are deleted from time to time. */
inline DeleteExpired() {
#ifdef SWEEPS_OLD_ROWS
	row.holder != 0 && row.left < TTL -> row.holder = 0; row.left = 0
#else
	row.holder != 0 && row.left == 0 -> row.holder = 0
#endif
}

proctype Sweeper() {
end:
	do
	:: atomic { DeleteExpired() }
	od
}

proctype Clock() {
	byte p;
end:
	do
	:: atomic { row.left > 0 || renewed.left > 0 || lease[0].left > 0 || lease[1].left > 0 || lease[2].left > 0 ->
		tickRow(row); tick(renewed);
		p = 0;
		do
		:: p < N -> tick(lease[p]); p++
		:: else -> break
		od;
		p = 0 }
	od
}

init {
	atomic {
#ifndef LIVE
		run Clock(); run Sweeper();
#endif
		run Local(0); run Local(1); run Other()
	}
}

#ifdef LIVE
ltl otherProcessGetsThere { [] (waits[OTHER] -> <> held[OTHER]) }
#endif
