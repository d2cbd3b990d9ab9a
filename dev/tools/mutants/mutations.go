package main

// mutations are the ways in which the library is broken, each as small as a slip of the pen.
var mutations = []mutation{
	// The end of a lease.
	{
		name:   "expiry",
		breaks: "expiry: a contender takes a row a second before it expires",
		danger: "Its holder's lease still lasts.",
		edits: []edit{{
			"dialect/statements.go",
			`"{held.expired}", f.expiry(layout, "held.")+" < "+f.now,`,
			`"{held.expired}", f.expiry(layout, "held.")+" < "+f.add(f.now, "1000000"),`,
		}},
	},
	{
		name:   "expiry-cleanup",
		breaks: "expiry: DeleteExpired takes the age of a row for its end",
		danger: "A cleanup deletes rows whose leases last.",
		edits: []edit{{
			"dialect/statements.go",
			`"{expired}", expiry+" < "+f.now,`,
			`"{expired}", f.add("CREATED_DATE", "1000000")+" < "+f.now,`,
		}},
	},
	{
		name:   "from-answer",
		breaks: "lease: an acquisition counts from the answer, not from before the question",
		danger: "The lease outlasts its row by the time that the answer took.",
		edits: []edit{{
			"internal/engine/wait.go",
			"	h.acquired = time.Now()\n	got, err := w.table.Acquire(ctx, h.claim())\n",
			"	got, err := w.table.Acquire(ctx, h.claim())\n	h.acquired = time.Now()\n",
		}},
	},
	{
		name:   "renewed-from-answer",
		breaks: "lease: a renewal counts from the answer, not from before the question",
		danger: "The same for a lease that is renewed.",
		edits: []edit{{
			"internal/engine/hold.go",
			"		h.extend(leaseEnd(sent, ttl), sent.Add(ttl))\n",
			"		h.extend(leaseEnd(time.Now(), ttl), sent.Add(ttl))\n",
		}, {
			"internal/engine/pinned.go",
			"	end := leaseEnd(sent, h.ttl)\n",
			"	end := leaseEnd(time.Now(), h.ttl)\n",
		}},
	},
	{
		name:   "margin",
		breaks: "lease: the margin is added, not subtracted",
		danger: "The lease outlasts its row.",
		edits: []edit{{
			"internal/engine/ttl.go",
			"	return sent.Add(ttl - margin(ttl))\n",
			"	return sent.Add(ttl + margin(ttl))\n",
		}},
	},
	{
		name:   "no-margin",
		breaks: "lease: there is no margin",
		danger: "A database whose clock runs a little faster gives the row away before the lease ends.",
		edits: []edit{{
			"internal/engine/ttl.go",
			"	return sent.Add(ttl - margin(ttl))\n",
			"	return sent.Add(ttl)\n",
		}},
	},
	{
		name:   "shorter",
		breaks: "renewal: one for the usual time shortens a longer lease",
		danger: "The holder counts on the longer one.",
		edits: []edit{{
			"dialect/statements.go",
			`	prolong := "EXPIRED_AFTER = " + f.later("EXPIRED_AFTER", end)`,
			`	prolong := "EXPIRED_AFTER = " + end`,
		}},
	},
	{
		name:   "revived",
		breaks: "renewal: it revives a row that has expired",
		danger: "A statement that arrives late keeps everyone out of a lock that has no holder.",
		edits: []edit{{
			"dialect/statements.go",
			`SET {prolong}{lockTimeout.update} WHERE {row} AND CLIENT_ID = :holder AND {valid}"),`,
			`SET {prolong}{lockTimeout.update} WHERE {row} AND CLIENT_ID = :holder"),`,
		}, {
			"dialect/sqlite.go",
			`"UPDATE {table} SET {prolong} WHERE {mine} AND {valid} RETURNING LOCK_KEY, CLIENT_ID"`,
			`"UPDATE {table} SET {prolong} WHERE {mine} RETURNING LOCK_KEY, CLIENT_ID"`,
		}},
	},
	{
		name:   "renewal-unseen",
		breaks: "renewal: one that finds no row counts as one that did",
		danger: "A holder whose row was taken goes on.",
		edits: []edit{{
			"internal/locktable/renew.go",
			"		default:\n			outcomes[i] = Lost\n",
			"		default:\n			outcomes[i] = Renewed\n",
		}},
	},

	{
		name:   "timer",
		breaks: "lease: its context ends only when it is asked, not by itself",
		danger: "A holder that waits for its context works on after the lease.",
		edits: []edit{{
			"internal/engine/hold.go",
			"		h.timer = time.AfterFunc(time.Until(h.term.end), h.check)\n",
			"		h.timer = time.AfterFunc(time.Until(h.term.end), func() {})\n",
		}},
	},
	{
		name:   "minimum-hold",
		breaks: "minimum hold: Unlock deletes the row at once",
		danger: "A job that must run once in a while runs twice.",
		edits: []edit{{
			"internal/engine/release.go",
			"	return time.Until(h.acquired.Add(h.minHold))\n",
			"	return 0\n",
		}},
	},
	{
		name:   "minimum-hold-close",
		breaks: "minimum hold: Close deletes the row",
		danger: "A job runs again at once on another instance when its own one is replaced.",
		edits: []edit{{
			"internal/engine/close.go",
			"	ended, kept = splitByMinHold(ended)\n",
			"",
		}},
	},
	{
		name:   "maximum-hold",
		breaks: "maximum hold: AutoRenew renews for ever",
		danger: "A holder that is stuck keeps the lock.",
		edits: []edit{{
			"internal/engine/pinned.go",
			"	return h.state == held && (h.renewUntil.IsZero() || h.term.end.Before(h.renewUntil))\n",
			"	return h.state == held\n",
		}, {
			"internal/engine/pinned.go",
			"	if !h.renewUntil.IsZero() && end.After(h.renewUntil) {\n		end = h.renewUntil\n	}\n",
			"",
		}},
	},

	// Tokens and holders.
	{
		name:   "token",
		breaks: "token: two acquisitions in a row get the same",
		danger: "A storage that checks tokens cannot tell a late writer from the holder.",
		edits: []edit{{
			"internal/locktable/token.go",
			"	return number * TokensPerAcquisition, nil\n",
			"	return number / 2 * TokensPerAcquisition, nil\n",
		}},
	},
	{
		name:   "one-holder",
		breaks: "holder: all acquisitions of a process share one, as in Spring",
		danger: "A late statement of one acquisition deletes the row of the next.",
		edits: []edit{{
			"internal/locktable/claim.go",
			"	number := h.last.Add(1)&(beyond-1) | beyond\n",
			"	number := h.last.Load()&(beyond-1) | beyond\n",
		}},
	},
	{
		name:   "holder-again",
		breaks: "holder: the same one tries again after an unknown outcome",
		danger: "The deletion of what it may have left behind comes late, and deletes what it has acquired since.",
		edits: []edit{{
			"internal/engine/wait.go",
			"func (w *waiter) renewHolder() { w.hold.term.holder = w.table.NewHolder() }\n",
			"func (w *waiter) renewHolder() {}\n",
		}},
	},
	{
		name:   "key-alone",
		breaks: "unlock: by key alone, whichever holder the row has",
		danger: "A release that comes late deletes the row of the next holder.",
		edits: []edit{{
			"dialect/statements.go",
			`WHERE {row} AND CLIENT_ID = :holder{notify}"),`,
			`WHERE {row}{notify}"),`,
		}},
	},

	// What is left behind.
	{
		name:   "forgotten",
		breaks: "leftover: a row that could not be deleted is forgotten",
		danger: "A row that has no holder keeps everyone out until it expires, also its own process.",
		edits: []edit{{
			"internal/locktable/leftover.go",
			"until time.Time) { addRows(&l.present, c, until) }\n",
			"until time.Time) {}\n",
		}},
	},
	{
		name:   "left-in-flight",
		breaks: "leftover: what is acquired for a caller that has left is kept",
		danger: "The row has no holder, and keeps everyone out until it expires.",
		edits: []edit{{
			"internal/locktable/leftover.go",
			"	if !got.Value.Acquired && !got.Unknown {\n",
			"	if !got.Unknown {\n",
		}},
	},
	{
		name:   "unknown",
		breaks: "leftover: a COMMIT without an answer counts as refused",
		danger: "If it was applied, the row has no holder and is never deleted.",
		edits: []edit{{
			"internal/locktable/write.go",
			"	err = tx.Commit()\n	return err != nil && (wrote || !t.errors.isRefusedCommit(err)), false, err\n",
			"	err = tx.Commit()\n	return false, false, err\n",
		}},
	},

	// Within a process.
	{
		name:   "hand-off-token",
		breaks: "hand-off: the next holder gets the token of the one before",
		danger: "A storage that checks tokens cannot tell the two apart.",
		edits:  []edit{{"internal/engine/release.go", "		given.token++\n", "		_ = given.token\n"}},
	},
	{
		name:   "hand-off-guarded",
		breaks: "hand-off: also of a row that a transaction may have pinned",
		danger: "The transaction commits after the next holder has begun.",
		edits: []edit{{
			"internal/engine/release.go",
			"	bound := h.guarded || !h.rowEndMax.IsZero()\n",
			"	bound := !h.rowEndMax.IsZero()\n",
		}},
	},
	{
		name:   "hand-off-late",
		breaks: "hand-off: a lease that is renewed for it counts from the answer",
		danger: "The lease of the next holder outlasts its row.",
		edits: []edit{{
			"internal/engine/release.go",
			"		sent := time.Now()\n		limited, cancel := context.WithDeadline(context.WithoutCancel(ctx.caller), given.end)\n",
			"		limited, cancel := context.WithDeadline(context.WithoutCancel(ctx.caller), given.end)\n",
		}, {
			"internal/engine/release.go",
			"		given.end = leaseEnd(sent, h.ttl)\n",
			"		given.end = leaseEnd(time.Now(), h.ttl)\n",
		}},
	},
	{
		name:   "mutex",
		breaks: "local queue: a caller that has left gets the lock",
		danger: "No other caller of the process can acquire it again.",
		edits: []edit{{
			"internal/fair/mutex.go",
			"	default:\n		m.removeLocked(place)\n	}\n",
			"	default:\n		_ = place\n	}\n",
		}},
	},
	{
		name:   "re-entry",
		breaks: "re-entry: any caller of the process enters, without the context of the lease",
		danger: "Two goroutines work under one lock.",
		edits: []edit{{
			"internal/engine/wait.go",
			"	h, err := s.carriedFor(ctx, &r)\n	if h == nil {\n",
			"	h, err := s.carriedFor(ctx, &r)\n	s.mu.Lock()\n	if e := s.entries.Get(r.lockKey); e != nil && h == nil {\n		h = e.mutex.Owner()\n	}\n	s.mu.Unlock()\n	if h == nil || h.row() == (locktable.Row{}) {\n",
		}},
	},
	{
		name:   "close",
		breaks: "Close: deletes the rows before it ends the contexts",
		danger: "Another process gets the lock while callers of this one still work.",
		edits: []edit{{
			"internal/engine/close.go",
			"		if h.finish(observe.EndClosed, nil) {\n			ended = append(ended, h)\n		}\n",
			"		ended = append(ended, h)\n",
		}, {
			"internal/engine/close.go",
			"	unfinished := <-waiting\n",
			"	for _, h := range ended {\n		h.finish(observe.EndClosed, nil)\n	}\n	unfinished := <-waiting\n",
		}},
	},
	{
		name:   "close-forgets",
		breaks: "Close: leaves the leftover rows",
		danger: "A process that ends leaves locks behind, and says that it did not.",
		edits: []edit{{
			"internal/engine/close.go",
			"	if !noAnswer && unfinished == nil { // otherwise there is no answer to this either\n",
			"	if false && !noAnswer && unfinished == nil {\n",
		}},
	},

	// Guarded transactions.
	{
		name:   "guard-unpinned",
		breaks: "guard: it reads the row beside the transaction, which pins nothing",
		danger: "The lock is taken between the guard and the commit.",
		edits: []edit{{
			"internal/locktable/guard.go",
			"		return t.guard(ctx, o.tx, c)\n",
			"		return t.isHeld(ctx, c)\n",
		}},
	},
	{
		name:   "commit",
		breaks: "guard: if the lease ends during COMMIT, the error says that nothing was committed",
		danger: "The caller does again what was done.",
		edits: []edit{{
			"internal/engine/transact.go",
			"	if !u.hold.config.table.IsRefusedCommit(err) {\n",
			"	if lost := u.hold.lost(); lost != nil {\n		return lost\n	}\n	if !u.hold.config.table.IsRefusedCommit(err) {\n",
		}},
	},

	// Batches and waiting.
	{
		name:   "mixed-up",
		breaks: "batch: its answers go to other callers",
		danger: "A caller that was refused gets a lease.",
		edits: []edit{{
			"internal/batch/lane.go",
			"		c.outcome = l.outcomes[i]\n",
			"		c.outcome = l.outcomes[len(l.batch)-1-i]\n",
		}},
	},
	{
		name:   "late-answer",
		breaks: "batch: an answer that comes after its batch was given up is taken",
		danger: "It goes to the next caller that waits for one.",
		edits: []edit{{
			"internal/batch/lane.go",
			"		if l.lost || c.left {",
			"		if c.left {",
		}},
	},
	{
		name:   "too-late",
		breaks: "lease: an answer that comes after the end of the lease is taken",
		danger: "The caller works under a lock that it has lost already.",
		edits: []edit{{
			"internal/engine/hold.go",
			"func (h *hold) isTooLate() bool { return !time.Now().Before(leaseEnd(h.acquired, h.ttl)) }\n",
			"func (h *hold) isTooLate() bool {\n	if !time.Now().Before(leaseEnd(h.acquired, h.ttl)) {\n		h.acquired = time.Now()\n	}\n	return false\n}\n",
		}},
	},
	{
		name:   "peek",
		breaks: "acquire: a row that is gone when it is read counts as acquired",
		danger: "All processes that read it at that time acquire it.",
		edits: []edit{{
			"internal/locktable/acquire.go",
			"		got.Row, _, err = t.Read(ctx, c)\n",
			"		var there bool\n		got.Row, there, err = t.Read(ctx, c)\n		got.Acquired = err == nil && !there\n",
		}},
	},
	{
		name:   "no-polls",
		breaks: "waiting: a caller that has a Waker does not poll",
		danger: "It waits for ever if the row expires, or the wake-up is lost.",
		edits: []edit{{
			"internal/engine/wait.go",
			"	p := locktable.Pace{Longest: w.idle, ",
			"	p := locktable.Pace{Longest: w.idle + time.Duration(cap(w.wake))*time.Hour, ",
		}, {
			"internal/engine/wait.go",
			"	if seen.Left < w.idle { ",
			"	if seen.Left < w.idle && w.wake == nil { ",
		}},
	},
	{
		name:   "impatient",
		breaks: "waiting through outages: a caller that gets no answer ends the waits behind it all the same",
		danger: "The waits that were to bridge a failover end in it.",
		edits: []edit{{
			"internal/engine/locks.go",
			"	if s.waitThroughOutages || !locktable.Is(err, locktable.NoAnswer) || h.waiters() == 0 {\n",
			"	if !locktable.Is(err, locktable.NoAnswer) || h.waiters() == 0 {\n",
		}},
	},

	// Several keys together.
	{
		name:   "joint-partly",
		breaks: "joint lock: an acquisition that has got some of its rows is not rolled back",
		danger: "The rows keep others out, and nobody holds them.",
		edits: []edit{{
			"internal/locktable/acquire.go",
			"		err = t.explainPartly(ctx, db, w.rows)\n",
			"		return written, nil\n",
		}, {
			"internal/locktable/acquire.go",
			"	o.Value.Acquired = true\n",
			"	o.Value.Acquired = len(w.tokens) == len(w.rows.rows)\n",
		}},
	},
	{
		name:   "joint-some",
		breaks: "joint lock: some of the rows are enough",
		danger: "Two callers hold one key.",
		edits: []edit{{
			"internal/locktable/acquire.go",
			"len(w.tokens) < len(w.rows.rows)",
			"len(w.tokens) == 0",
		}},
	},
	{
		name:   "joint-renewal",
		breaks: "joint lock: a renewal is for all rows if it has found the first",
		danger: "A holder that has lost one of its rows goes on.",
		edits: []edit{{
			"internal/locktable/renew.go",
			"	case slices.Contains(outcomes, Lost):\n",
			"	case outcomes[0] == Lost:\n",
		}, {
			"internal/locktable/renew.go",
			"	if err != nil || slices.Contains(outcomes, Lost) {\n",
			"	if err != nil || outcomes[0] == Lost {\n",
		}},
	},
	{
		name:   "joint-order",
		breaks: "joint lock: callers wait for each other in any order",
		danger: "They let each other pass for ever.",
		edits: []edit{{
			"internal/engine/queue.go",
			"i < first && owner != nil && owner != w.hold && owner.isJoint()",
			"false && owner != nil",
		}},
	},

	// Permits, and readers and writers.
	{
		name:   "permit",
		breaks: "semaphore: it has a permit more",
		danger: "More callers than allowed do at once what it limits.",
		edits: []edit{{
			"sync/semaphore/semaphore.go",
			"seats.New(registry, key, seats.Permit, permits)",
			"seats.New(registry, key, seats.Permit, permits+1)",
		}},
	},
	{
		name:   "permit-one",
		breaks: "semaphore: a lease of several permits has one of them",
		danger: "More callers than allowed do at once what it limits.",
		edits:  []edit{{"sync/semaphore/acquire.go", "	return free[:a.n], nil\n", "	return free[:1], nil\n"}},
	},
	{
		name:   "turn",
		breaks: "waiting in turn: the turn is not given back",
		danger: "Nobody else gets what is free.",
		edits: []edit{{
			"internal/seats/turn.go",
			"	defer func() { _ = turn.Unlock(waiting, time.Now().Add(releaseTimeout)) }()\n",
			"",
		}},
	},
	{
		name:   "late-try",
		breaks: "waiting in turn: a try does not end with the wait",
		danger: "The call returns long after its limit.",
		edits: []edit{{
			"internal/seats/turn.go",
			"context.AfterFunc(waiting, func() { cancel(context.Cause(waiting)) })",
			"context.AfterFunc(waiting, func() {})",
		}, {
			"internal/seats/turn.go",
			"	if !goOn() {\n",
			"	if goOn(); false {\n",
		}},
	},
	{
		name:   "late-release",
		breaks: "waiting in turn: what is given back has the rest of its lease for that",
		danger: "The same.",
		edits: []edit{{
			"internal/seats/release.go",
			"engine.UseOf(lease).Unlock(waiting, time.Now().Add(releaseTimeout))",
			"engine.UseOf(lease).Unlock(context.WithoutCancel(waiting), time.Now().Add(time.Hour))",
		}},
	},
	{
		name:   "reader",
		breaks: "read-write lock: a reader does not look at the writer's row once it has its own",
		danger: "It reads beside a writer.",
		edits: []edit{{
			"sync/rwlock/read.go",
			"	if err := r.checkNoWriter(); err != nil {\n		return nil, err\n	}\n	lease, err := r.readers.Alive(",
			"	lease, err := r.readers.Alive(",
		}},
	},
	{
		name:   "reader-early",
		breaks: "read-write lock: a reader looks at the writer's row before it has its own",
		danger: "A writer that comes in between does not see it, nor it the writer.",
		edits: []edit{{
			"sync/rwlock/read.go",
			"	if err := r.checkNoWriter(); err != nil {\n		return nil, err\n	}\n	lease, err := r.readers.Alive(",
			"	lease, err := r.readers.Alive(",
		}, {
			"sync/rwlock/read.go",
			"	seat := r.readers.AnySeat()\n",
			"	seat := r.readers.AnySeat()\n	if err := r.checkNoWriter(); err != nil {\n		return nil, err\n	}\n",
		}},
	},
	{
		name:   "reader-row",
		breaks: "read-write lock: a reader gives its row back before it looks at the writer's",
		danger: "A writer that looks for readers does not see it.",
		edits: []edit{{
			"sync/rwlock/read.go",
			"	if err := r.checkNoWriter(); err != nil {\n		return nil, err\n	}\n	lease, err := r.readers.Alive(",
			"	key := lease.Key()\n	_ = lease.Unlock(r.ctx)\n	if err := r.checkNoWriter(); err != nil {\n		return nil, err\n	}\n	lease, err := r.readers.TryLock(r.ctx, r.waiting, r.terms, key)\n	if err != nil {\n		return nil, r.failed(err)\n	}\n	lease, err = r.readers.Alive(",
		}},
	},
	{
		name:   "writer",
		breaks: "read-write lock: a writer does not wait for the readers that are in",
		danger: "It writes beside them.",
		edits: []edit{{
			"sync/rwlock/drain.go",
			"	inside := d.stillInside(read.Holders())\n",
			"	inside := d.stillInside(read.Holders())[:0]\n",
		}},
	},
	{
		name:   "downgrade",
		breaks: "read-write lock: Downgrade unlocks before it has the read lock",
		danger: "A writer comes in between.",
		edits: []edit{{
			"sync/rwlock/downgrade.go",
			"	read, err := r.attempt()\n",
			"	_ = lease.Unlock(ctx)\n	read, err := r.attempt()\n",
		}},
	},

	// Leaders.
	{
		name:   "leader-context",
		breaks: "leader: the context of a term does not end with the lease",
		danger: "The function leads on beside another leader.",
		edits: []edit{{
			"sync/leader/context.go",
			"context.WithCancelCause(lease.Context())",
			"context.WithCancelCause(context.WithoutCancel(lease.Context()))",
		}},
	},
	{
		name:   "leader-resigns",
		breaks: "leader: Resign unlocks before the function has returned",
		danger: "Another leads beside it.",
		edits: []edit{{
			"sync/leader/status.go",
			"	t.ctx.end(ErrResigned)\n",
			"	t.ctx.end(ErrResigned)\n	_ = t.lease.Unlock(context.WithoutCancel(ctx))\n",
		}},
	},
	{
		name:   "leader-ends",
		breaks: "leader: the lease ends with the context of Run, not with the function",
		danger: "The same, when a process is shut down.",
		edits: []edit{{
			"sync/leader/term.go",
			"	return lead(t.ctx, t.lease) //nolint",
			"	context.AfterFunc(ctx, func() { _ = t.lease.Unlock(context.WithoutCancel(ctx)) })\n	return lead(t.ctx, t.lease) //nolint",
		}},
	},
}
