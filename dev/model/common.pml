/* What the models share: the row, the statements about it, and time.
 *
 * Time. A row counts down from TTL by the server's clock, a lease from LEASE by the clock of its
 * process, and one tick moves all of them. A process's clock may miss DRIFT ticks of a lease: that
 * is what the margin is for. So there are no instants, as in the protocol: durations cross the
 * wire, instants never do. A tick can come between any two steps, as often as something counts. */

#ifndef N
#define N 2 /* processes */
#endif

#ifndef TTL
#define TTL 3
#endif
#define DRIFT 1

#ifdef NO_MARGIN
#define LEASE TTL
#else
#define LEASE (TTL - DRIFT)
#endif

typedef Row {
	byte holder; /* CLIENT_ID, or 0 if there is no row */
	byte left    /* until it expires */
}

#define isFree(r) (r.holder == 0 || r.left == 0)
#define isHeldBy(r, h) (r.holder == h && r.left > 0)

/* The acquire statement inserts the row, or takes it over if it has expired or is this holder's. */
inline Acquire(r, h, got) {
	if
#ifdef NEVER_TAKES_OVER
	:: r.holder == 0 || r.holder == h ->
#else
	:: isFree(r) || r.holder == h ->
#endif
		r.holder = h; r.left = TTL; got = true
	:: else -> got = false
	fi
}

/* A renewal is for the holder's row, and only while that has not expired. */
inline Renew(r, h, got) {
	if
	:: isHeldBy(r, h) -> r.left = TTL; got = true
	:: else -> got = false
	fi
}

/* A release deletes the holder's row, expired or not. */
inline Delete(r, h, got) {
	if
#ifdef DELETES_BY_KEY
	:: r.holder != 0 -> r.holder = 0; r.left = 0; got = true
#else
	:: r.holder == h -> r.holder = 0; r.left = 0; got = true
#endif
	:: else -> got = false
	fi
}

/* A countdown on the clock of a process, and how many ticks that has missed. */
typedef Countdown {
	byte left;
	byte missed
}

inline start(c) { c.left = LEASE; c.missed = 0 }
inline stop(c) { c.left = 0; c.missed = 0 }

inline tickRow(r) {
	if
	:: r.left > 0 -> r.left--
	:: else
	fi
}

inline tick(c) {
	if
	:: c.left > 1 -> c.left--
	:: c.left == 1 -> stop(c)
	:: c.left > 0 && c.missed < DRIFT -> c.missed++
	:: c.left == 0
	fi
}

/* Until the answer comes that a process has lost the lock, it believes what its clock says. */
#ifndef believes
#define believes(p) (held[p] && lease[p].left > 0)
#endif

/* believe begins a lease. No other process may believe then that it holds the lock. Only here does a belief
 * begin, and each ends by itself on the clock of its process. */
inline believe(p) {
	byte other;
	bool noOtherHolder;
	held[p] = true;
	noOtherHolder = true;
	other = 0;
	do
	:: other < N ->
		noOtherHolder = noOtherHolder && (other == p || !believes(other) || !believes(p));
		other++
	:: else -> break
	od;
	other = 0;
	assert(noOtherHolder);
	noOtherHolder = false
}
