/* Transactions that a lease guards. Guard pins the row in the transaction, whose COMMIT comes late or never. Once an
 * operator deletes the row. Process 0 may hand its row to process 1, which is another caller of the same process
 * then. With CLUSTER each process has a node of its own: these know nothing of each other's locks, and certify
 * at COMMIT what a transaction has changed. */

#ifdef CLUSTER
#define TTL 2
#endif
#include "common.pml"

#define HOLDERS 4 /* of a process at a time */
#define holderOf(p, i) (1 + p * HOLDERS + i)

Row row;
Countdown lease[N];
bool held[N];
byte holder[N]; /* of the hold, which is what stands in CLIENT_ID */
bool wasGuarded[N]; /* the hold: a transaction may have its row pinned */
bool queued; /* process 1 waits behind process 0, as a caller of the same process */

mtype = { closed, pinned, committing }
mtype tx[N] = closed;
byte txHolder[N]; /* whom the row belonged to when it was pinned */
bool conflicts[N]; /* another transaction has changed the row since */

#ifdef CLUSTER
#define isPinned false
inline noteChange(changed) {
	conflicts[0] = conflicts[0] || (changed && tx[0] != closed);
	conflicts[1] = conflicts[1] || (changed && tx[1] != closed)
}
#else
#ifdef READS_ONLY
#define isPinned false
#else
#define isPinned (tx[0] != closed || tx[1] != closed)
#endif
#define noteChange(changed) skip
#endif

inline Guard(p, got) {
	if
#ifdef GUARDS_BY_KEY
	:: row.holder != 0 && row.left > 0 ->
#else
	:: isHeldBy(row, holder[p]) ->
#endif
		tx[p] = pinned; txHolder[p] = holder[p]; conflicts[p] = false; got = true
	:: else -> got = false
	fi
}

/* The row still belongs to the holder that has guarded the transaction, and the lease is no other caller's. */
inline Commit(p) {
	bool commitIsUnderTheLock;
	commitIsUnderTheLock = row.holder == txHolder[p] && !(believes(1 - p) && holder[1 - p] == txHolder[p]);
	assert(commitIsUnderTheLock);
	commitIsUnderTheLock = false
}

inline closeTx(p) { tx[p] = closed; txHolder[p] = 0; conflicts[p] = false }

/* The user's transaction goes on whatever becomes of the lease. */
proctype Transaction(byte p) {
end:
	do
	:: atomic { tx[p] == pinned -> tx[p] = committing }
	:: atomic { tx[p] != closed -> closeTx(p) } /* rolled back, or its connection is lost */
	:: atomic { tx[p] == committing ->
		if
#ifndef LOCKS_ONLY
		:: conflicts[p] /* certification refuses it */
#endif
		:: else -> Commit(p)
		fi;
		closeTx(p) }
	od
}

#define isUnused(h) (row.holder != (h) && holder[0] != (h) && holder[1] != (h) && txHolder[0] != (h) && txHolder[1] != (h))

inline newHolder(p) {
	do
	:: isUnused(holderOf(p, i)) -> break
	:: else -> i++; assert(i < HOLDERS)
	od;
	holder[p] = holderOf(p, i);
	i = 0
}

/* The next caller of the process gets the row with what is left of the lease. */
inline HandOver() {
	held[0] = false;
	holder[1] = holder[0]; lease[1].left = lease[0].left; lease[1].missed = lease[0].missed;
	queued = false;
	held[1] = true
}

proctype Process(byte p) {
	byte i;
	bool got;
end:
	if
	:: atomic { newHolder(p); start(lease[p]) }
#ifndef CLUSTER
	:: atomic { p == 1 -> queued = true; goto Queue }
#endif
	fi;
	/* A statement that finds the row pinned waits for a moment, and is refused. */
	atomic {
		if
		:: !isPinned -> Acquire(row, holder[p], got); noteChange(got)
		:: isPinned
		fi
	}
	if
	:: atomic { got && lease[p].left > 0 -> got = false; held[p] = true }
	:: atomic { !got || lease[p].left == 0 -> goto ended }
	fi;
holds:
	if
	:: atomic { lease[p].left == 0 -> held[p] = false; goto ended }
	:: atomic { held[p] = false; goto Unlock }
	:: atomic { believes(p) && !isPinned -> goto SendRenewal }
	:: atomic { believes(p) && tx[p] == closed -> wasGuarded[p] = true }
#ifdef HANDS_ON_PINNED
	:: atomic { believes(p) && p == 0 && queued -> HandOver(); goto ended }
#else
	:: atomic { believes(p) && p == 0 && queued && !wasGuarded[p] -> HandOver(); goto ended }
#endif
	fi;
	atomic { Guard(p, got) };
	if
	:: atomic { got && lease[p].left > 0 -> got = false; goto holds }
	:: atomic { got && lease[p].left == 0 -> held[p] = false; closeTx(p); goto ended } /* the caller rolls back */
	:: atomic { !got -> held[p] = false; goto ended }
	fi;
SendRenewal:
	atomic {
		if
		:: !isPinned -> Renew(row, holder[p], got); noteChange(got);
			if
			:: got && lease[p].left > 0 -> got = false; start(lease[p]); goto holds
			:: else -> held[p] = false; goto ended
			fi
		:: isPinned -> goto holds
		fi
	}
Unlock:
	atomic {
		if
		:: !isPinned -> Delete(row, holder[p], got); noteChange(got)
		:: isPinned /* it stays until it expires */
		fi
	}
ended:
	atomic { got = false; wasGuarded[p] = false; holder[p] = 0; stop(lease[p]) }
	goto end;
Queue:
	if
	:: atomic { !held[p] -> queued = false; goto end }
	:: held[p] -> goto holds
	fi
}

/* An operator deletes a row whose lease lasts. Its holder finds that out when it renews or guards. */
proctype Operator() {
	bool got;
end:
	if
	:: atomic { row.holder != 0 && !isPinned -> row.holder = 0; row.left = 0; noteChange(true) }
	fi
}

proctype Clock() {
	byte p;
end:
	do
	:: atomic { row.left > 0 || lease[0].left > 0 || lease[1].left > 0 ->
		tickRow(row);
		p = 0;
		do
		:: p < N -> tick(lease[p]); p++
		:: else -> break
		od;
		p = 0 }
	od
}

init { atomic { run Clock(); run Operator(); run Transaction(0); run Transaction(1); run Process(0); run Process(1) } }
