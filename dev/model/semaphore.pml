/* Two permits of a semaphore, and a caller that wants both beside others that want one, again and again. A caller that has
 * to wait takes the turn; others leave the permits to it. There is no time and no failure here: a permit
 * is a row as in row.pml, and two are a joint claim as in joint.pml. */

#define N 4
#define PERMITS 2
#define nobody 255

byte permit[PERMITS] = nobody; /* who has it */
bool held[N];
bool waits[N];
chan turn = [N] of { byte }; /* who waits in turn; the first one has it */

#define hasTurn(p) turn ? [eval(p)]
#define leaveTurn(p) turn ? eval(p)
#define areFree(n) ((permit[0] == nobody) + (permit[1] == nobody) >= n)

inline enter(p, n) {
	bool permitsAreOwn;
	held[p] = true; waits[p] = false;
	if
	:: n == 2 -> permitsAreOwn = permit[0] == p && permit[1] == p
	:: n == 1 -> permitsAreOwn = permit[0] == p || permit[1] == p
	fi;
	assert(permitsAreOwn);
	permitsAreOwn = false
}

/* Reads all rows by one statement, then locks free ones by another: all of them or none. */
inline Attempt(p, n, itsTurn) {
#ifdef IGNORES_TURN
	atomic { readFree = areFree(n) };
#else
	atomic { readFree = areFree(n) && (itsTurn || empty(turn)) };
#endif
	atomic { got = false;
		if
#ifdef ACQUIRES_WHAT_IT_HAS_READ
		:: readFree && n == 2 -> permit[0] = p; permit[1] = p; got = true
		:: readFree && n == 1 && permit[0] == nobody -> permit[0] = p; got = true
		:: readFree && n == 1 && permit[0] != nobody -> permit[1] = p; got = true
#else
		:: readFree && n == 2 && areFree(2) -> permit[0] = p; permit[1] = p; got = true
		:: readFree && n == 1 && permit[0] == nobody -> permit[0] = p; got = true
		:: readFree && n == 1 && permit[1] == nobody -> permit[1] = p; got = true
#endif
		:: else
		fi;
		readFree = false }
}

proctype Caller(byte p, n; bool once) {
	bool got, readFree;
end:
	waits[p] = true;
	if
	:: once || empty(turn) -> /* no caller of this process waits */
OutOfTurn:
		Attempt(p, n, false);
		if
		:: atomic { got -> enter(p, n); goto holds }
		:: atomic { !got && once -> waits[p] = false; goto end }
		:: !got && !once
		fi
	:: !once && nempty(turn)
	fi;
InTurn:
	turn ! p;
	hasTurn(p);
	do
	:: Attempt(p, n, true);
		if
		:: got -> break
		:: !got
		fi
	od;
	atomic { enter(p, n);
#ifndef KEEPS_THE_TURN
		leaveTurn(p)
#endif
	};
holds:
	skip;
release:
	atomic {
		held[p] = false; got = false;
		if
		:: permit[0] == p -> permit[0] = nobody
		:: else
		fi;
		if
		:: permit[1] == p -> permit[1] = nobody
		:: else
		fi };
	goto end
}

init { atomic { run Caller(0, 2, false); run Caller(1, 1, false); run Caller(2, 1, true); run Caller(3, 1, true) } }

#ifdef LIVE
ltl getsBoth { [] (waits[0] -> <> held[0]) }
ltl getsOne { [] (waits[1] -> <> held[1]) }
#endif
