// Package page shows the lock table on a page of the application's own web server: who holds
// which lock, since when and for how much longer, who waits in this process, who leads, and
// what has happened.
//
// The page has no authentication. Anyone who can request it sees the keys and holders of all locks:
// put it behind what protects the application's other internal pages.
//
//	mux.Handle("/locks/", requireOperator(page.Handler(registry, nil)))
//
// A network that only operators reach does not protect it: their browsers reach it, and a web site
// can let its own name lead to its address (DNS rebinding). What asks for a password or a cookie
// protects against that; without one, refuse requests whose Host is not the page's.
//
// It can be mounted under any path, with or without [http.StripPrefix] and behind proxies that
// rewrite paths, because it has only relative links. The path must end in a slash for a browser;
// where a router leaves nothing of the path, the page redirects to the slash.
//
// # What it costs
//
// Viewers share what was read. While the page has viewers, one statement a second reads at most
// [Options.Limit] rows, another one their names, a third one which processes wait for long, and a fourth one the times-to-live
// of holders, less often if they take long, and every ten seconds one more the runs of jobs: the answers take at most a tenth of the time. Nothing is read while it has none, or while the browser hides the page.
//
// # Unlocking
//
// The page is read-only unless [Options.AllowUnlock] is set. It then offers to remove the row of
// a lock, asks for confirmation, and removes the row only if it still has the holder that was
// shown. Requests from other sites are refused, by [http.CrossOriginProtection], but not those of a
// site whose name leads here: see above.
//
// # What a browser gets
//
// HTML that works without JavaScript, a style sheet and a script from the same place, and
// locks.json beside it. A Content-Security-Policy allows nothing else, so no text in the table
// can become part of the page. No answer may be stored.
package page
